// A plot as SVG, for files: what is seen, with title, units, legend, both axes, bands, gaps, markers and cursors.

import { levelColour } from "./colours.js";
import { css } from "./dom.js";
import { COLOURS } from "./notes.js";
import { cutMiddle, laneOf, shownMarks } from "./panels/plot_draw.js";
import { STEPS } from "./time.js";

/** The name of the language, which is no address that is asked. */
const SVG = ["http:", "", "www.w3.org", "2000", "svg"].join("/");
const TOP = 30, BOTTOM = 42, LINE = 17;

const escaped = (text) => String(text).replace(/[\x00-\x08\x0b-\x1f]/g, " ").replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

function tag(name, attributes, text = null) {
  const written = Object.entries(attributes).filter(([, value]) => value != null).map(([key, value]) => ` ${key}="${escaped(typeof value === "number" ? Math.round(value * 100) / 100 : value)}"`);
  return text === null ? `<${name}${written.join("")}/>` : `<${name}${written.join("")}>${text}</${name}>`;
}

/** A colour `#rrggbbaa` as what SVG knows everywhere. */
function fill(colour) {
  return colour.length === 9 ? { fill: colour.slice(0, 7), "fill-opacity": parseInt(colour.slice(7), 16) / 255 } : { fill: colour };
}

/**
 * Return {text, width, height} of a drawing of a plot.
 * @param {Object} panel the plot, as it is on the screen
 * @param {Object} context
 * @param {Function} [measure] the width of a text in pixels
 */
export function plotSvg(panel, context, measure = measured) {
  const { plot } = panel, { view, time } = context, { over } = plot;
  const left = over.offsetLeft, width = panel.width, inner = over.clientWidth, high = over.clientHeight;
  const curves = panel.drawn();
  // The legend takes as many lines as it needs.
  const keys = [];
  let x = 10 + measure(panel.title + unitOf(panel), true) + 18, row = 0;
  for (const curve of curves) {
    const { text } = curve, size = measure(text) + 34;
    if (x + size > width - 6 && x > 10) { x = 10; row += 1; }
    keys.push({ x, y: TOP / 2 + row * LINE, text, curve });
    x += size;
  }
  const told = panel.statistics.lines(), top = TOP + row * LINE, height = top + high + BOTTOM + told.length * LINE, clip = `clip-${Math.round(performance.now())}`;
  const px = (axis) => left + plot.valToPos(axis, "x"), py = (value, scale = "y") => top + plot.valToPos(value, scale);
  const faint = css("--faint"), text = css("--text"), line = css("--line"), out = [];
  out.push(tag("rect", { width, height, fill: css("--panel") }));
  out.push(tag("text", { x: 10, y: TOP / 2 + 4, "font-weight": 600, "font-size": 12, fill: text }, escaped(panel.title) + tag("tspan", { "font-weight": 400, fill: faint }, escaped(unitOf(panel)))));
  for (const { x: at, y, text: name, curve } of keys) {
    out.push(tag("line", { x1: at, x2: at + 12, y1: y, y2: y, stroke: curve.colour, "stroke-width": 3, "stroke-dasharray": curve.dash }), tag("text", { x: at + 16, y: y + 4, fill: text }, escaped(name)));
  }
  const inside = [];
  const span = (from, to) => [Math.max(left, px(from)), Math.min(left + inner, px(to))];
  for (const { from, to, label, colour, ink = faint, foot, row = 0, top: above, high: share } of panel.behind()) {
    const [a, b] = span(from, to), tall = foot ?? share * high, base = top + (above + share) * high;
    if (b <= a) continue;
    inside.push(tag("rect", { x: a, y: base - tall, width: b - a, height: tall, ...fill(colour) }));
    if (label && measure(label) + 8 < b - a) inside.push(tag("text", { x: foot ? b - 4 : a + 4, "text-anchor": foot ? "end" : null, y: base - 4 - 13 * row, "font-size": 10, fill: ink }, escaped(label)));
  }
  for (const [from, to] of new Map(curves.flatMap(({ gaps }) => gaps.map((gap) => [gap.join(), gap]))).values()) {
    const [a, b] = span(from, to), parts = [];
    for (let at = a - high; at < b; at += 8) {
      const low = Math.max(at, a), end = Math.min(at + high, b);
      if (end > low) parts.push(`M${low.toFixed(1)} ${(top + high - (low - at)).toFixed(1)}L${end.toFixed(1)} ${(top + high - (end - at)).toFixed(1)}`);
    }
    if (parts.length) inside.push(tag("path", { d: parts.join(""), stroke: faint, "stroke-opacity": 0.45, fill: "none", class: "gap" }));
  }
  // The numbers of the axes, and their units.
  for (const axis of plot.axes.slice(1)) {
    const { scale } = axis, isLeft = scale === "y";
    (axis._splits ?? []).forEach((value, i) => {
      const y = py(value, scale), number = axis._values?.[i];
      if (y < top - 1 || y > top + high + 1) return;
      if (axis.grid.show) inside.push(tag("line", { x1: left, x2: left + inner, y1: y, y2: y, stroke: line }));
      if (number) out.push(tag("text", { x: isLeft ? left - 6 : left + inner - 4, y: y + 4, "text-anchor": "end", fill: faint }, escaped(number)));
    });
    const unit = panel.unitsOf(scale);
    if (unit && !curves[0]?.stripes) out.push(tag("text", { x: isLeft ? left + 4 : left + inner - 36, y: top + 16, "text-anchor": isLeft ? "start" : "end", "font-size": 10, fill: faint, class: "unit" }, escaped(unit)));
  }
  const widest = measure(time.text(view.window.to, view.span / 1000)) + 26;
  const step = STEPS.find((one) => (one / view.span) * inner > Math.max(70, widest)) ?? STEPS.at(-1);
  for (let at = Math.ceil((panel.from - time.zero()) / step) * step + time.zero(); at <= panel.to; at += step) {
    inside.push(tag("line", { x1: px(at), x2: px(at), y1: top, y2: top + high, stroke: line }));
    // The cursors stand in the way of the numbers.
    if (![view.cursor, view.cursor2].some((cursor) => cursor != null && Math.abs(px(cursor) - px(at)) < widest / 2 + 14)) out.push(tag("text", { x: px(at), y: top + high + 15, "text-anchor": "middle", fill: faint, class: "time" }, escaped(time.text(at, step))));
  }
  out.push(tag("text", { x: 6, y: top + high + 15, fill: faint }, { start: "s", utc: "UTC", log: "log" }[time.clock]));
  for (const curve of curves) {
    if (curve.stripes) {
      const lane = laneOf(curve.lane, curves.length, high), y = top + lane.top, tall = lane.height;
      if (curves.length > 1) out.push(tag("text", { x: left - 4, y: y + tall / 2 + 4, "text-anchor": "end", "font-size": 10, fill: faint }, escaped(cutMiddle(curve.name, (text) => measure(text) < left - 6))));
      for (const { from, to, label, colour } of curve.stripes) {
        const [a, b] = span(from, to);
        if (b <= a) continue;
        inside.push(tag("rect", { x: a, y, width: Math.max(1, b - a - 1), height: tall, ...fill(colour) }));
        if (measure(label) + 8 < b - a) inside.push(tag("text", { x: a + 4, y: y + tall / 2 + 4, "font-size": 10, fill: text }, escaped(label)));
      }
      continue;
    }
    inside.push(tag("path", { d: path(curve, px, (value) => py(value, curve.scale)), stroke: curve.colour, "stroke-width": 1.25, "stroke-linejoin": "round", "stroke-dasharray": curve.dash, fill: "none", class: "curve" }));
    for (const row of curve.dots ?? []) inside.push(tag("circle", { cx: px(curve.x[row]), cy: py(curve.y[row], curve.scale), r: 2, fill: curve.colour }));
  }
  for (const mark of shownMarks(context, panel.logs())) {
    const at = px(mark.t);
    if (at < left - 4 || at > left + inner + 4) continue;
    const ink = mark.kind === "note" ? css(COLOURS[mark.colour] ?? "--accent") : mark.kind === "parameter" ? css("--accent") : levelColour(mark.level);
    const shape = mark.kind === "note" ? `M${at} ${top}l8 3.5l-8 3.5V${top + high}h-1V${top}z` : mark.kind === "parameter" ? `M${at} ${top}l3.5 3.5l-3.5 3.5l-3.5-3.5z` : `M${at - 3.5} ${top}h7l-3.5 6z`;
    inside.push(tag("path", { d: shape, fill: ink }));
  }
  for (const [cursor, colour] of [[view.cursor2, css("--accent")], [view.cursor, text]]) {
    if (cursor == null || cursor < panel.from || cursor > panel.to) continue;
    inside.push(tag("line", { x1: px(cursor), x2: px(cursor), y1: top, y2: top + high, stroke: colour, class: "cursor" }));
    const label = time.text(cursor, view.span / 3000), size = measure(label) + 8, at = Math.min(Math.max(px(cursor) - size / 2, 0), width - size);
    out.push(tag("rect", { x: at, y: top + high + 3, width: size, height: 16, fill: colour }), tag("text", { x: at + 4, y: top + high + 15, fill: css("--panel") }, escaped(label)));
  }
  out.push(tag("g", { "clip-path": `url(#${clip})` }, inside.join("")));
  told.forEach((text, i) => out.push(tag("text", { x: 10, y: top + high + 32 + i * LINE, fill: faint, class: "statistics" }, escaped(text))));
  const about = `${context.log(panel.series()[0]?.log).name}   ${time.full(panel.from)} to ${time.full(panel.to)}`;
  out.push(tag("text", { x: 10, y: height - 8, fill: faint }, escaped(about)));
  const defs = tag("defs", {}, tag("clipPath", { id: clip }, tag("rect", { x: left, y: top, width: inner, height: high })));
  const body = tag("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 11 }, `${tag("title", {}, escaped(panel.title))}${defs}${out.join("")}`);
  return { text: `<?xml version="1.0" encoding="UTF-8"?>\n${body}\n`, width, height };
}

function unitOf({ unit }) {
  return unit ? ` [${unit}]` : "";
}

/** A line in steps where values hold; null breaks it. */
function path({ x, y, held }, px, py) {
  const parts = [];
  let on = false, before = 0;
  for (let i = 0; i < x.length; i++) {
    if (y[i] === undefined) continue;
    if (y[i] === null) { on = false; continue; }
    const at = px(x[i]).toFixed(1), up = py(y[i]).toFixed(1);
    if (!on) parts.push(`M${at} ${up}`);
    else parts.push(held ? `H${at}${up === before ? "" : `V${up}`}` : `L${at} ${up}`);
    [on, before] = [true, up];
  }
  return parts.join("");
}

const pens = new Map();

function measured(text, firm = false) {
  if (!pens.has(firm)) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${firm ? "600 12px" : "11px"} system-ui, sans-serif`;
    pens.set(firm, pen);
  }
  return pens.get(firm).measureText(text).width;
}
