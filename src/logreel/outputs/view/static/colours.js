// Colours of curves and bands, from the variables of the style sheet.

import { css } from "./dom.js";

const COUNT = 8;

export function seriesColour(i) {
  return css(`--series-${(i % COUNT) + 1}`);
}

/** Lengths of strokes and gaps of the curves of the first log, which are whole, and of each further one. */
const DASHES = [null, [7, 4], [2, 3], [10, 3, 2, 3]];

const numberOf = (logs, series) => Math.max(0, logs.findIndex(({ id }) => id === series.log));

/** The dash of a curve of one of some logs; null for a whole line. */
export function dashOf(logs, series) {
  const log = numberOf(logs, series);
  return DASHES[log ? 1 + ((log - 1) % (DASHES.length - 1)) : 0];
}

/** The number of the colour of a curve: the same field of further logs has others, as far from each other as there is room. */
export function colourOf(field, logs, series) {
  return field + 3 * numberOf(logs, series);
}

/** Return the background of a mark in the legend, with the dash of its curve. */
export function dashed(colour, dash) {
  let at = 0;
  const stops = (dash ?? []).map((size, i) => `${i % 2 ? "transparent" : colour} ${at}px ${at += size}px`);
  return stops.length ? `repeating-linear-gradient(90deg, ${stops.join(", ")})` : colour;
}

const BANDS = [0, 5, 2, 3, 1, 6, 4], names = new Map();

/** A colour for a name: names have different ones in the order in which they come, and the same in each panel. */
export function bandColour(name, alpha = 0.14) {
  if (!names.has(name)) names.set(name, BANDS[names.size % BANDS.length]);
  return fade(seriesColour(names.get(name)), alpha);
}

/** A colour `#rrggbb` with an opacity. */
export function fade(colour, alpha) {
  return `${colour}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
}

export const LEVELS = ["emergency", "alert", "critical", "error", "warning", "notice", "info", "debug"];

/** The class of the style sheet for a level of text: syslog numbers 0 (emergency) to 7 (debug), or null. */
export function levelClass(level) {
  if (level == null) return "";
  return level <= 3 ? "bad" : level === 4 ? "warn" : "faint";
}

export function levelColour(level) {
  return css({ bad: "--bad", warn: "--warn" }[levelClass(level)] ?? "--faint");
}

const SCALE = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141], [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];

/** 256 colours from dark to bright, which differ in brightness for all eyes: uint8[256][3]. */
export const RAMP = Array.from({ length: 256 }, (_, i) => {
  const at = (i / 255) * (SCALE.length - 1), low = Math.min(Math.floor(at), SCALE.length - 2);
  return SCALE[low].map((value, k) => Math.round(value + (SCALE[low + 1][k] - value) * (at - low)));
});
