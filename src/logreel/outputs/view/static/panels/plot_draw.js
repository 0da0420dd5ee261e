// What stands behind and above the curves: modes as bands, texts and parameter changes as markers, states as stripes.

import { bandColour, fade, levelColour } from "../colours.js";
import { css } from "../dom.js";
import { hatch } from "../hatch.js";
import { COLOURS, titleOf } from "../notes.js";
import { kindColour } from "../timeline_draw.js";

function clip(u, work) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  work(ctx, bbox, devicePixelRatio);
  ctx.restore();
}

/** Logs of one plot that have bands behind the curves, each in its part of the height. */
const BESIDE = 4;

/**
 * Return what lies behind the curves of some logs: modes, dropouts, failsafe, and armed as a line at the foot, since most of
 * a flight is that: [{from, to, label, colour, ink, foot, row, top, high}], with labels in rows from the lower edge, that of a
 * foot at its end; top and high are shares of the height: several logs lie above each other.
 */
export function bandsOf(context, logs) {
  const shown = logs.slice(0, BESIDE);
  return shown.flatMap(({ id }, i) => {
    const overview = context.data.overviewNow(id), shift = context.time.shift(id), ink = css("--text");
    const of = (kind, about) => (overview?.bands ?? []).filter((one) => one.kind === kind).map((one) => ({ from: one.from, to: one.to, label: one.label, ink, row: 0, ...about(one) }));
    const modes = of("mode", ({ label }) => ({ colour: bandColour(label, 0.1) }));
    const lost = (overview?.dropouts ?? []).map(({ from, to }) => ({ from, to, label: "", colour: fade(css("--bad"), 0.16) }));
    const failsafe = of("failsafe", (one) => ({ colour: kindColour(one, 0.16), ink: css("--bad"), row: 1 }));
    const armed = of("armed", (one) => ({ colour: kindColour(one, 0.8), foot: 3 }));
    return [...modes, ...lost, ...failsafe, ...armed].map((band) => ({ ...band, from: band.from + shift, to: band.to + shift, top: i / shown.length, high: 1 / shown.length }));
  });
}

/** Draw modes, failsafe, armed and dropouts behind the curves, or their names, above the grid, on a ground on which they can be read. */
export function bands(u, context, logs, names = false) {
  clip(u, (ctx, box, ratio) => {
    const ends = [];
    for (const { from, to, label, colour, ink, foot, row, top, high } of bandsOf(context, logs)) {
      const left = Math.max(u.valToPos(from, "x", true), box.left), right = Math.min(u.valToPos(to, "x", true), box.left + box.width);
      if (right < box.left || left > box.left + box.width) continue;
      const base = box.top + (top + high) * box.height, tall = foot ? foot * ratio : high * box.height;
      ctx.fillStyle = colour;
      if (!names) { ctx.fillRect(left, base - tall, Math.max(ratio, right - left), tall); continue; }
      const size = label ? ctx.measureText(label).width : Infinity;
      if (size + 8 * ratio >= right - left) continue;
      const at = foot ? right - size - 4 * ratio : left + 4 * ratio, low = base - (4 + 13 * row) * ratio;
      // The end of a foot may lie where a mode begins, whose label says more.
      if (foot && ends.some((one) => one.top === top && at < one.to && one.from < at + size)) continue;
      if (!foot && row === 0) ends.push({ from: at, to: at + size, top });
      ctx.fillStyle = fade(css("--panel"), 0.7);
      ctx.fillRect(at - 2 * ratio, low - 11 * ratio, size + 4 * ratio, 12 * ratio);
      ctx.fillStyle = ink;
      ctx.textBaseline = "bottom";
      ctx.fillText(label, at, low);
    }
  });
}

/** Hatch the intervals in which nothing was measured of some curves. */
export function gaps(u, curves) {
  clip(u, (ctx, box, ratio) => {
    ctx.strokeStyle = fade(css("--faint"), 0.45);
    ctx.lineWidth = ratio;
    const every = new Map(curves.flatMap((curve) => (curve.gaps ?? []).map((gap) => [gap.join(" "), gap])));
    for (const [from, to] of every.values()) {
      const left = Math.max(box.left, u.valToPos(from, "x", true)), right = Math.min(box.left + box.width, u.valToPos(to, "x", true));
      if (right - left >= ratio) hatch(ctx, left, right, box.top, box.height, 8 * ratio);
    }
  });
}

/** Return the markers of some logs that the filter of the text panel lets through: [{t (axis), level, text, kind}]. */
export function shownMarks(context, logs) {
  const filter = context.bus.last("marks") ?? {}, found = [];
  for (const { id } of logs) {
    const shift = context.time.shift(id);
    for (const mark of context.data.overviewNow(id)?.marks ?? []) {
      if (filter.accepts && !filter.accepts(mark)) continue;
      found.push({ ...mark, t: mark.t + shift, log: id });
    }
    for (const note of context.notes?.of(id) ?? []) found.push({ kind: "note", t: note.from + shift, to: note.to, colour: note.colour, text: titleOf(note), log: id });
    for (const change of filter.changes?.[id] ?? []) found.push({ ...change, t: change.t + shift, log: id });
  }
  return found;
}

/** Draw markers at the upper edge: triangles for texts, diamonds for changed parameters, flags with a pole for notes. */
export function marks(u, context, logs) {
  clip(u, (ctx, box, ratio) => {
    for (const mark of shownMarks(context, logs)) {
      const x = u.valToPos(mark.t, "x", true), y = box.top, size = 3.5 * ratio;
      if (x < box.left - size || x > box.left + box.width + size) continue;
      ctx.fillStyle = mark.kind === "note" ? css(COLOURS[mark.colour] ?? "--accent") : mark.kind === "parameter" ? css("--accent") : levelColour(mark.level);
      ctx.beginPath();
      if (mark.kind === "note") {
        ctx.globalAlpha = 0.6;
        ctx.fillRect(x - ratio / 2, y, ratio, box.height);
        ctx.globalAlpha = 1;
        for (const [dx, dy] of [[0, 0], [2.4 * size, size], [0, 2 * size]]) ctx.lineTo(x + dx, y + dy);
      } else if (mark.kind === "parameter") {
        for (const [dx, dy] of [[0, 0], [size, size], [0, 2 * size], [-size, size]]) ctx.lineTo(x + dx, y + dy);
      } else for (const [dx, dy] of [[-size, 0], [size, 0], [0, 1.7 * size]]) ctx.lineTo(x + dx, y + dy);
      ctx.fill();
    }
  });
}

/** Return a state over time as stripes: [{from, to, label, colour}]. */
export function stripesOf({ t, v }, field, end) {
  const found = [];
  for (let i = 0; i < t.length;) {
    let next = i + 1;
    while (next < t.length && v[next] === v[i]) next += 1;
    // A state ends where nothing is known of it, and lasts to the end of the log.
    const gap = next < t.length && Number.isNaN(v[next]), to = next < t.length ? t[gap ? next - 1 : next] : end;
    const label = field.enum?.[String(v[i])] ?? (field.type === "bool" ? String(Boolean(v[i])) : String(v[i]));
    if (!Number.isNaN(v[i])) found.push({ from: t[i], to, label, colour: bandColour(label, 0.35) });
    i = next;
  }
  return found;
}

/** Return {top, height} of one of several lanes of stripes in a box of a height. */
export function laneOf(i, count, height) {
  const each = Math.min(count === 1 ? 46 : 30, (height - 10) / count);
  return { top: 10 + i * each, height: Math.max(3, Math.min(34, each - (count === 1 ? 12 : 3))) };
}

/** Cut a text in its middle so that it has room; both ends of a name say what it is. */
export function cutMiddle(text, fits) {
  if (fits(text)) return text;
  for (let keep = text.length - 1; keep > 2; keep--) {
    const cut = `${text.slice(0, Math.floor(keep / 3))}…${text.slice(text.length - Math.ceil((2 * keep) / 3))}`;
    if (fits(cut)) return cut;
  }
  return "…";
}

/** Draw states over time as lanes of stripes with their names; each lane has its name at the left, if there are several. */
export function stripes(u, lanes) {
  clip(u, (ctx, box, ratio) => {
    lanes.forEach(({ stripes: own }, i) => {
      const lane = laneOf(i, lanes.length, box.height / ratio), top = box.top + lane.top * ratio, height = lane.height * ratio;
      for (const { from, to, label, colour } of own) {
        const left = Math.max(box.left, u.valToPos(from, "x", true)), right = Math.min(box.left + box.width, u.valToPos(to, "x", true));
        if (right <= left) continue;
        ctx.fillStyle = colour;
        ctx.fillRect(left, top, Math.max(ratio, right - left - ratio), height);
        if (lane.height > 9 && ctx.measureText(label).width + 8 * ratio < right - left) {
          ctx.fillStyle = css("--text");
          ctx.textBaseline = "middle";
          ctx.fillText(label, left + 4 * ratio, top + height / 2);
        }
      }
    });
  });
  if (lanes.length < 2) return;
  const { ctx, bbox } = u, ratio = devicePixelRatio;
  ctx.save();
  ctx.font = `${10 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  ctx.fillStyle = css("--faint");
  lanes.forEach(({ name }, i) => {
    const lane = laneOf(i, lanes.length, bbox.height / ratio);
    ctx.fillText(cutMiddle(name, (text) => ctx.measureText(text).width < bbox.left - 6 * ratio), bbox.left - 4 * ratio, bbox.top + (lane.top + lane.height / 2) * ratio);
  });
  ctx.restore();
}

/** Write the units of the axes at their upper ends, on a ground on which they can be read: [[key, text]]. */
export function units(u, texts) {
  clip(u, (ctx, box, ratio) => {
    ctx.textBaseline = "top";
    for (const [key, text] of texts) {
      if (!text) continue;
      const size = ctx.measureText(text).width, top = box.top + 8 * ratio;
      const left = key === "y" ? box.left + 4 * ratio : box.left + box.width - 36 * ratio - size;
      ctx.fillStyle = fade(css("--panel"), 0.8);
      ctx.fillRect(left - 2 * ratio, top - ratio, size + 4 * ratio, 12 * ratio);
      ctx.fillStyle = css("--faint");
      ctx.fillText(text, left, top);
    }
  });
}
