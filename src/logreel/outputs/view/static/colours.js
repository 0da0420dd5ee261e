// Colours of curves and bands, from the variables of the style sheet.

import { css } from "./dom.js";

const COUNT = 8;

export function seriesColour(i) {
  return css(`--series-${(i % COUNT) + 1}`);
}

/** A colour for a name: the same name has the same colour in each panel. */
export function bandColour(name, alpha = 0.14) {
  let sum = 7;
  for (const letter of String(name)) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return fade(seriesColour(sum % (COUNT - 1)), alpha);
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
