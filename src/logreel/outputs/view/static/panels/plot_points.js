// The points of a curve that are handed to the drawing, and which of them get a dot.

import { before, reached } from "../series.js";

/**
 * Return [times, values] of a curve, null where its line breaks, with its values at the edges of the window.
 * @param {Object} curve
 * @param {{from: number, to: number, end: number, held: boolean, least: number}} how window, end of the log on the axis,
 *   whether values hold until the next one, and the least value that can be drawn
 */
export function points({ t, v }, { from, to, end, held, least }) {
  const x = Array.from(t), y = Array.from(v, (one) => (Number.isFinite(one) && one >= least ? one : null));
  for (const at of [from, Math.min(to, end)]) {
    const value = at >= from ? reached({ t, v, held }, at, end) : NaN;
    if (!Number.isFinite(value) || value < least) continue;
    const place = before(x, at) + 1;
    x.splice(place, 0, at);
    y.splice(place, 0, value);
  }
  return [x, y];
}

/** The rows that get a dot: all where they are few, else those between two gaps; none for the edges of the window. */
export function dots(x, y, curve, { from, to, show }) {
  const rows = [], next = (row, step) => { let at = row + step; while (at in y && y[at] === undefined) at += step; return y[at] ?? null; };
  for (let row = 0; row < x.length; row++) {
    if (x[row] < from || x[row] > to || y[row] == null) continue;
    const measured = curve.t[before(curve.t, x[row])] === x[row];
    if (measured && (show || (next(row, -1) === null && next(row, 1) === null))) rows.push(row);
  }
  return rows.length || show ? rows : null;
}
