// Colours of measured values of points, in 3D and on pictures.

import { RAMP } from "../../colours.js";
import { el } from "../../dom.js";
import { short } from "../../series.js";

/** The first and the last colour of points: the darkest cannot be told from a dark ground, the brightest not from a light one. */
const FIRST = 50, LAST = 220;

/** Return the values between which colours differ: from the 2nd to the 98th percentile. */
export function range(values) {
  const step = Math.max(1, Math.floor(values.length / 5000)), some = [];
  for (let i = 0; i < values.length; i += step) some.push(values[i]);
  some.sort((a, b) => a - b);
  return [some[Math.floor(some.length * 0.02)] ?? 0, some[Math.floor(some.length * 0.98)] ?? 1];
}

/** Return [red, green, blue] of a value. */
export function shade(value, [low, high]) {
  const wide = high > low ? high - low : 1;
  return RAMP[FIRST + Math.round((LAST - FIRST) * Math.max(0, Math.min(1, (value - low) / wide)))];
}

/** Return an element that says what colours mean: a text, the least value, the colours, the greatest value. */
export function key(text, [low, high], tag = "li") {
  const strip = el("i", { class: "ramp" });
  strip.style.background = `linear-gradient(to right, ${[0, 1, 2, 3, 4].map((k) => `rgb(${shade(k, [0, 4]).join(" ")})`).join(", ")})`;
  return el(tag, { class: "key" }, `${text} ${short(low, 4)} `, strip, ` ${short(high, 4)}`);
}
