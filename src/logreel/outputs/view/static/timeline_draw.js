// One log in the strip of time.

import { bandColour, fade, levelColour } from "./colours.js";
import { css } from "./dom.js";
import { hatch } from "./hatch.js";
import { COLOURS } from "./notes.js";

export const HEAD = 16;
/** Heights of the row of a log: of one or two logs, and of more. */
const TALL = 76, LOW = 62;
const MARKS = 8, BAND = 13, LEAST = 14;
/** Kinds of bands in the order of their lanes; others follow. */
const KINDS = ["failsafe", "mode", "armed", "air"];

/** Return the height of the row of each of some logs. */
export function rowHeight(logs) {
  return logs.length > 2 ? LOW : TALL;
}

/** Return the kinds of some bands, each a lane of the strip. */
export function lanes(list) {
  const kinds = new Set(list.map(({ kind }) => kind)), known = KINDS.filter((kind) => kinds.has(kind));
  return [...known, ...[...kinds].filter((kind) => !KINDS.includes(kind))];
}

/** Return what a band is, for people: the name of a mode alone says little. */
export function bandText({ kind, label }) {
  return kind === "mode" ? `mode ${label}` : label;
}

/** The colour of a band: modes by their names, what must be seen at once in red. */
export function kindColour({ kind, label }, alpha) {
  return kind === "failsafe" || kind === "collision" ? fade(css("--bad"), alpha) : kind === "armed" || kind === "air" ? fade(css("--series-3"), alpha * (kind === "air" ? 0.6 : 1)) : bandColour(label, alpha);
}

/**
 * Draw marks, density, modes, gaps, dropouts and damage of a log.
 * @param {CanvasRenderingContext2D} pen
 * @param {Object} what overview (or null), top, high, x (ns of the log to pixel), width, name, filter of marks
 */
export function drawLog(pen, { overview, log, top, high, x, width, name, filter }) {
  const kinds = overview ? lanes(overview.bands).slice(0, Math.floor((high - MARKS - 2 - LEAST) / BAND)) : [];
  const density = top + MARKS, deep = high - MARKS - 2 - BAND * Math.max(1, kinds.length), below = density + deep + 2;
  pen.textBaseline = "middle";
  if (!overview) {
    pen.fillStyle = css("--faint");
    pen.fillText("Reading …", 8, density + deep / 2);
    return;
  }
  area(pen, calm(overview.density, log.messages), x(0), x(log.duration), density, deep);
  pen.save();
  for (const { from, to, share } of silent(overview)) {
    const height = Math.max(7, share * deep);
    pen.strokeStyle = css("--faint");
    pen.lineWidth = 1;
    hatch(pen, x(from), Math.max(x(from) + 2, x(to)), density + deep - height, height, 5);
  }
  pen.restore();
  pen.fillStyle = css("--warn");
  for (const { from, to } of overview.dropouts) pen.fillRect(x(from), density + deep - 4, Math.max(1.5, x(to) - x(from)), 4);
  bands(pen, overview.bands, kinds, x, below, width);
  pen.fillStyle = css("--bad");
  for (const { from, to } of overview.damage) pen.fillRect(Math.min(x(from), width - 3), density, Math.max(3, x(to ?? from) - x(from)), high - MARKS);
  for (const mark of overview.marks.toSorted((a, b) => (b.level ?? 9) - (a.level ?? 9))) {
    if (filter?.accepts && !filter.accepts(mark)) continue;
    const tall = mark.level != null && mark.level <= 4 ? MARKS : MARKS - 3;
    pen.fillStyle = levelColour(mark.level);
    pen.fillRect(x(mark.t) - 0.75, top + MARKS - tall, 1.5, tall);
  }
  if (name) {
    const size = pen.measureText(name).width;
    pen.fillStyle = css("--panel");
    pen.globalAlpha = 0.75;
    pen.fillRect(4, density + 1, size + 8, 13);
    pen.globalAlpha = 1;
    pen.fillStyle = css("--text");
    pen.fillText(name, 8, density + 8);
  }
}

/** Draw notes as flags at the upper edge of the row of their log; spans also have a bar. */
export function flags(pen, notes, { top, high, x }) {
  for (const { from, to, colour } of notes) {
    const left = Math.round(x(from)), ink = css(COLOURS[colour] ?? "--accent");
    pen.fillStyle = ink;
    if (to != null) {
      pen.globalAlpha = 0.16;
      pen.fillRect(left, top, Math.max(2, x(to) - left), high);
      pen.globalAlpha = 1;
      pen.fillRect(left, top, Math.max(2, x(to) - left), 2);
    }
    pen.fillRect(left, top, 1.5, high);
    pen.beginPath();
    for (const [dx, dy] of [[0, 0], [9, 4.5], [0, 9]]) pen.lineTo(left + dx, top + dy);
    pen.fill();
  }
}

/** Return when at least a tenth of the channels is silent, and which share of them: single ones are told by the tip, and by their plots. */
export function silent({ gaps, channels }) {
  const all = Math.max(1, channels.length), open = new Map(), found = [];
  const edges = gaps.flatMap((gap) => [[gap.from, 1, gap.topic], [gap.to, -1, gap.topic]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [i, [at, step, topic]] of edges.entries()) {
    open.set(topic, (open.get(topic) ?? 0) + step);
    if (!open.get(topic)) open.delete(topic);
    const share = open.has("") ? 1 : open.size / all, to = edges[i + 1]?.[0];
    if (share < 0.1 || !(to > at)) continue;
    if (found.at(-1)?.to === at && found.at(-1).share === share) found.at(-1).to = to; else found.push({ from: at, to, share });
  }
  return found;
}

/** Put bins together where messages are few: a comb of single messages says nothing. */
function calm(counts, messages) {
  const step = Math.min(Math.ceil((8 * counts.length) / Math.max(1, messages)), Math.ceil(counts.length / 120));
  if (step <= 1) return counts;
  return Array.from({ length: Math.ceil(counts.length / step) }, (_, i) => counts.slice(i * step, (i + 1) * step).reduce((a, b) => a + b, 0));
}

/** Messages per time: the square root shows thin parts beside thick ones. */
function area(pen, counts, left, right, top, deep) {
  const most = Math.max(1, ...counts), step = (right - left) / (counts.length || 1);
  pen.fillStyle = css("--series-5");
  pen.globalAlpha = 0.55;
  pen.beginPath();
  pen.moveTo(left, top + deep);
  counts.forEach((count, i) => {
    const y = top + deep - (count ? Math.max(1.5, Math.sqrt(count / most) * deep) : 0);
    pen.lineTo(left + i * step, y);
    pen.lineTo(left + (i + 1) * step, y);
  });
  pen.lineTo(right, top + deep);
  pen.fill();
  pen.globalAlpha = 1;
  pen.fillStyle = css("--line");
  pen.fillRect(left, top + deep, right - left, 1);
}

/** A lane with names for each kind: failsafe, mode, armed, in the air, others. */
function bands(pen, list, kinds, x, top, width) {
  for (const band of list) {
    const lane = kinds.indexOf(band.kind), left = x(band.from), right = x(band.to), y = top + lane * BAND;
    if (lane < 0) continue;
    pen.fillStyle = kindColour(band, band.kind === "failsafe" || band.kind === "collision" ? 0.9 : 0.3);
    pen.fillRect(left, y, Math.max(band.kind === "mode" ? 1 : 2, right - left - 1), BAND - 1);
    const room = Math.min(right, width) - Math.max(left, 0);
    if (pen.measureText(band.label).width + 8 < room) {
      pen.fillStyle = css(band.kind === "failsafe" ? "--panel" : "--text");
      pen.fillText(band.label, Math.max(left, 0) + 4, y + BAND / 2);
    }
  }
}
