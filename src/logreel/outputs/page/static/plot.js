"use strict";
// Draws the curves that the page carries as JSON: {utc, span, bands, panels: [{title, group, unit, kind, y, curves}]}.
// A curve has times and values as base64 of little-endian bytes: times are float64 seconds, or {from, step, data} with
// uint32 steps; values are float64, or float32 if the times are steps and the curve is not "wide". NaN breaks a line; values of
// a curve that is "held" hold until the next one; "gaps" are intervals without measurements. A panel of kind "spectrum" has
// frequencies first + n * step in place of times. "states" of a curve are names of its numbers. The page has a figure for each panel, with a still picture of it: charts that
// can be zoomed are put in its place on the screen, and paper gets the picture.

const LIGHT = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000"];
const DARK = ["#56B4E9", "#E69F00", "#2CC295", "#CC79A7", "#F0E442", "#D55E00", "#FFFFFF"];
// Pixels of a chart: its height, and what is left and right of the curves.
const HEIGHT = 210, LEFT = 64, RIGHT = 18;

const data = JSON.parse(document.getElementById("data").textContent);
const system = matchMedia("(prefers-color-scheme: dark)");
const sync = { key: "time", busy: false };
// What is drawn: {plot, panel, box}. What waits until it is seen: {panel, box}.
let plots = [], waiting = [];
let shownSpan = data.span.slice();

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

function bytesOf(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}

function decode(panel, curve) {
  if (panel.kind === "spectrum") {
    curve.values = new Float32Array(bytesOf(curve.values));
    curve.times = Float64Array.from(curve.values, (_, i) => curve.first + i * curve.step);
  } else if (typeof curve.times === "string") {
    curve.times = new Float64Array(bytesOf(curve.times));
    curve.values = new Float64Array(bytesOf(curve.values));
  } else {
    const { from, step } = curve.times;
    curve.times = Float64Array.from(new Uint32Array(bytesOf(curve.times.data)), (n) => from + n * step);
    const kind = curve.wide ? Float64Array : Float32Array;
    curve.values = new kind(bytesOf(curve.values));
  }
}

// The first row whose time is not below the given one.
function row(times, at) {
  let lo = 0, hi = times.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (times[middle] < at) lo = middle + 1; else hi = middle;
  }
  return lo;
}

// The points between two times, and one at each side: at most four for each pixel (first, least, greatest, last).
function visible(curve, from, to, pixels) {
  const { times, values } = curve;
  const lo = Math.max(0, row(times, from) - 1), hi = Math.min(times.length, row(times, to) + 1);
  if (hi - lo <= 4 * pixels) return reaching(curve, lo, hi, from, to);
  const keep = [], width = (to - from) / pixels;
  for (let i = lo; i < hi;) {
    const cell = Math.floor((times[i] - from) / width);
    let j = i, least = i, greatest = i;
    for (; j < hi && Math.floor((times[j] - from) / width) === cell; j++) {
      if (values[j] < values[least] || Number.isNaN(values[least])) least = j;
      if (values[j] > values[greatest] || Number.isNaN(values[greatest])) greatest = j;
    }
    keep.push(...[...new Set([i, least, greatest, j - 1])].sort((a, b) => a - b));
    i = j;
  }
  return [keep.map((k) => times[k]), shown(keep.map((k) => values[k]))];
}

// The same points, and one at each edge of the window, to which lines between distant points, and held values, reach.
function reaching(curve, lo, hi, from, to) {
  const { times, values } = curve;
  const x = Array.from(times.subarray(lo, hi)), y = shown(values.subarray(lo, hi));
  if (!Number.isFinite(from) || !x.length) return [x, y];
  for (const at of [from, Math.min(to, data.span[1])]) {
    const next = row(times, at), before = next - 1;
    if (before < 0 || times[next] === at || times[before] === at || (next === times.length && !curve.held)) continue;
    const last = values[before], part = (at - times[before]) / (times[next] - times[before]);
    const reached = curve.held ? last : last + part * (values[next] - last);
    if (!Number.isFinite(reached)) continue;
    const place = row(x, at);
    x.splice(place, 0, at);
    y.splice(place, 0, reached);
  }
  return [x, y];
}

// Null is a gap.
function shown(values) {
  return Array.from(values, (v) => (Number.isFinite(v) ? v : null));
}

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function value(number) {
  return number == null ? "–" : Number(number.toPrecision(7)).toString();
}

function moment(seconds) {
  if (!data.utc) return seconds.toFixed(3) + " s";
  return new Date(seconds * 1000).toISOString().slice(0, -1).replace("T", " ");
}

// Times of day of the marks of the axis, with decimals where they are close to each other.
function clock(plot, marks) {
  const apart = marks.length > 1 ? marks[1] - marks[0] : 1;
  const digits = apart < 0.01 ? 3 : apart < 1 ? 2 : 0;
  return marks.map((at) => new Date(at * 1000).toISOString().slice(11, digits ? 20 + digits : 19));
}

function seconds(plot, marks) {
  return marks.map((at) => `${Number(at.toPrecision(12))} s`);
}

function hertz(plot, marks) {
  return marks.map((at) => `${Number(at.toPrecision(12))} Hz`);
}

// Numbers of a value axis; powers of ten where digits would not fit.
function labels(plot, marks) {
  // Marks without a label are null on logarithmic axes.
  return marks.map((v) => (v == null ? "" : v === 0 || (Math.abs(v) < 1e6 && Math.abs(v) >= 1e-4) ? Number(v.toPrecision(7)).toString() : v.toExponential(1)));
}

// The value axis: constant values lie in the middle, not between 0 and 100.
function range(least, most) {
  if (least == null) return [0, 1];
  if (least === most) return [least - (Math.abs(least) * 0.01 || 1), most + (Math.abs(most) * 0.01 || 1)];
  return uPlot.rangeNum(least, most, 0.1, true);
}

// The names of the numbers on the value axis: of states, if all curves have the same ones.
function statesOf(panel) {
  const [first, ...others] = panel.curves.map((curve) => JSON.stringify(curve.states ?? null));
  return first !== "null" && others.every((one) => one === first) ? panel.curves[0].states : null;
}

function short(text) {
  return text.length > 10 ? text.slice(0, 9) + "…" : text;
}

// Bands of modes, and hatched gaps, behind the curves.
function drawBands(plot, gaps) {
  const bands = (data.bands || []).filter((band) => band.color);
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const band of bands) {
    const left = plot.valToPos(band.from, "x", true), right = plot.valToPos(band.to, "x", true);
    ctx.fillStyle = band.color;
    ctx.globalAlpha = band.alpha;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
  }
  ctx.globalAlpha = 0.5;
  ctx.strokeStyle = style("--faint");
  for (const [from, to] of gaps) {
    const left = plot.valToPos(from, "x", true), right = plot.valToPos(to, "x", true);
    if (right - left < 1 || right < bbox.left || left > bbox.left + bbox.width) continue;
    hatch(ctx, Math.max(left, bbox.left), Math.min(right, bbox.left + bbox.width), bbox.top, bbox.height, 8 * devicePixelRatio);
  }
  ctx.restore();
}

function options(panel, width) {
  const colors = isDark() ? DARK : LIGHT;
  const axis = { stroke: style("--ink"), grid: { stroke: style("--grid"), width: 1 }, ticks: { stroke: style("--grid"), width: 1 } };
  const spectrum = panel.kind === "spectrum";
  const time = data.utc && !spectrum;
  const drag = { x: true, y: false };
  const states = statesOf(panel);
  const named = states && {
    splits: (plot, i, least, most) => Object.keys(states).map(Number).filter((n) => n >= least && n <= most).sort((a, b) => a - b),
    values: (plot, marks) => marks.map((n) => short(states[n])),
    filter: (plot, marks) => marks,
  };
  return {
    width,
    height: HEIGHT,
    // The strip of the report has the same edges.
    padding: [null, RIGHT, null, null],
    cursor: spectrum ? { drag } : { sync: { key: sync.key, setSeries: false }, drag },
    scales: {
      x: spectrum ? { time: false } : { time, min: shownSpan[0], max: shownSpan[1] },
      y: spectrum ? { distr: 3 } : { range: panel.y || ((_, least, most) => range(least, most)) },
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
    axes: [
      { ...axis, size: 34, space: 90, values: spectrum ? hertz : time ? clock : seconds },
      { ...axis, size: LEFT, values: labels, ...named },
    ],
    legend: { live: true },
    series: [
      { label: spectrum ? "Hz" : data.utc ? "UTC" : "time", value: (_, at) => (at == null ? "–" : spectrum ? at.toFixed(2) : moment(at)) },
      ...panel.curves.map((curve, i) => ({
        label: curve.name + (curve.unit && !panel.unit ? ` [${curve.unit}]` : ""),
        stroke: colors[i % colors.length],
        dash: i >= colors.length ? [6, 3] : undefined,
        width: 1,
        paths: curve.held ? uPlot.paths.stepped({ align: 1 }) : undefined,
        points: { show: !spectrum && curve.times.length < 60 },
        value: (_, v) => curve.states?.[v] ?? value(v),
      })),
    ],
    hooks: {
      drawClear: spectrum ? [] : [(plot) => drawBands(plot, panel.curves.flatMap((curve) => curve.gaps ?? []))],
      setScale: spectrum ? [] : [(plot, key) => key === "x" && !sync.busy && zoom(plot)],
      setCursor: spectrum ? [] : [(plot) => tell("cursor", plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") : null)],
    },
  };
}

function tell(kind, detail) {
  document.dispatchEvent(new CustomEvent(`logreel-${kind}`, { detail }));
}

// Shows the same interval in all plots, with the points that it needs.
function zoom(from) {
  const { min, max } = from.scales.x;
  showSpan(min, max);
}

function showSpan(min, max) {
  sync.busy = true;
  shownSpan = [min, max];
  for (const { plot, panel } of plots) {
    if (panel.kind === "spectrum") continue;
    plot.batch(() => {
      plot.setData(joined(panel, plot.width), false);
      plot.setScale("x", { min, max });
      if (!panel.y) plot.setScale("y", { min: null, max: null });
    });
  }
  sync.busy = false;
  tell("window", shownSpan);
}

function showWhole() {
  showSpan(data.span[0], data.span[1]);
}

function joined(panel, width) {
  const [min, max] = panel.kind === "spectrum" ? [-Infinity, Infinity] : shownSpan;
  const pixels = panel.kind === "spectrum" ? 1e6 : Math.max(100, width);
  const tables = panel.curves.map((curve) => visible(curve, min, max, pixels));
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function drawOne(one) {
  const width = one.box.clientWidth;
  one.box.dataset.live = "yes";
  one.plot = new uPlot(options(one.panel, width), joined(one.panel, width), one.box);
  if (one.panel.kind !== "spectrum") one.plot.over.addEventListener("dblclick", showWhole);
  plots.push(one);
}

// Charts are drawn when they come near the visible part of the page.
const seen = "IntersectionObserver" in window && new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const one = entry.isIntersecting && waiting.find((w) => w.box === entry.target);
    if (one) drawWaiting([one]);
  }
}, { rootMargin: "800px" });

function drawWaiting(some) {
  for (const one of some) {
    if (seen) seen.unobserve(one.box);
    drawOne(one);
  }
  waiting = waiting.filter((one) => !some.includes(one));
  document.documentElement.dataset.drawn = String(plots.length);
}

function draw() {
  const boxes = document.querySelectorAll("#panels figure");
  for (const { plot } of plots) plot.destroy();
  plots = [];
  waiting = data.panels.map((panel, i) => ({ panel, box: boxes[i] })).filter(({ panel }) => panel.curves.some((curve) => curve.times.length));
  if (seen) for (const { box } of waiting) seen.observe(box);
  else drawWaiting(waiting);
  tell("window", shownSpan);
}

// Charts that are folded have no width; they get it when they are shown.
function resize() {
  for (const { plot, box } of plots) {
    if (box.clientWidth) plot.setSize({ width: box.clientWidth, height: HEIGHT });
  }
}

for (const panel of data.panels) for (const curve of panel.curves) decode(panel, curve);
document.getElementById("whole").onclick = showWhole;
draw();
system.addEventListener("change", draw);
addEventListener("resize", resize);
for (const one of document.querySelectorAll("details.more")) one.addEventListener("toggle", resize);
addEventListener("keydown", (event) => event.key === "0" && !event.target.matches("input, textarea") && showWhole());
