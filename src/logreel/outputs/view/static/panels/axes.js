// Axes of pictures that are drawn by hand: XY plots, spectrograms.

import { css } from "../dom.js";
import { short } from "../series.js";

export const EDGE = { left: 58, right: 14, top: 8, bottom: 30 };

/** Return round values between two numbers, about `most` of them. */
export function ticks(from, to, most) {
  const rough = (to - from) / Math.max(1, most), power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
  const found = [];
  for (let i = Math.ceil(from / step); i * step <= to + step * 1e-9; i++) found.push(i * step);
  return found;
}

/** Return [least, greatest] of the finite numbers, with some room around them. */
export function extent(values, room = 0.06) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high) || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  const margin = (high - low) * room || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

/**
 * Draw grid, numbers and names of two axes; return the functions from values to pixels.
 * @param {CanvasRenderingContext2D} pen
 * @param {{width: number, height: number, x: number[], y: number[], xName?: string, yName?: string, grid?: boolean}} what
 */
export function axes(pen, { width, height, x: [x0, x1], y: [y0, y1], xName = "", yName = "", grid = true }) {
  const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
  const toX = (value) => EDGE.left + ((value - x0) / (x1 - x0)) * inner.width;
  const toY = (value) => EDGE.top + inner.height - ((value - y0) / (y1 - y0)) * inner.height;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  for (const value of ticks(x0, x1, inner.width / 90)) {
    pen.fillStyle = css("--line");
    if (grid) pen.fillRect(toX(value), EDGE.top, 1, inner.height);
    pen.fillStyle = css("--faint");
    pen.textAlign = "center";
    pen.fillText(short(value), toX(value), height - EDGE.bottom + 9);
  }
  for (const value of ticks(y0, y1, inner.height / 32)) {
    pen.fillStyle = css("--line");
    if (grid) pen.fillRect(EDGE.left, toY(value), inner.width, 1);
    pen.fillStyle = css("--faint");
    pen.textAlign = "right";
    pen.fillText(short(value), EDGE.left - 6, toY(value));
  }
  pen.fillStyle = css("--faint");
  pen.font = "10px system-ui, sans-serif";
  pen.textAlign = "right";
  pen.fillText(xName, width - EDGE.right, height - 7);
  pen.textAlign = "left";
  pen.fillText(yName, 5, EDGE.top + 2);
  return { toX, toY, inner };
}
