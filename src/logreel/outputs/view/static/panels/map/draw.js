// What is drawn on the map: grid, scale, tracks, the place at the cursor, and a small map of the world.

import { css } from "../../dom.js";
import { RAMP, fade, seriesColour } from "../../colours.js";
import { HALF, Sight, metres, round } from "./flat.js";
import { country, drawWorld } from "./world.js";
import { values } from "./tracks.js";

/** Metres for each pixel from which the coarse outline of the world says something. */
const COARSE = 60;

export function colours() {
  const line = css("--line"), faint = css("--faint");
  return { panel: css("--panel"), ground: css("--ground"), line, faint, text: css("--text"), bad: css("--bad"), accent: css("--accent"), land: fade(line, 0.35), border: fade(faint, 0.6) };
}

/** Draw the ground: tiles, or the outline of the world, and a grid in metres. Return the step of the grid in metres. */
export function ground(pen, sight, { outline, tiles, palette, origin }) {
  const { width, height } = sight;
  pen.fillStyle = palette.panel;
  pen.fillRect(0, 0, width, height);
  const pixel = sight.metres / sight.scale; // metres of one pixel
  if (sight.geographic && outline && pixel > COARSE) drawWorld(pen, outline, sight, { land: palette.land, line: palette.border });
  if (tiles) tiles.draw(pen, sight);
  const step = round(72 * pixel);
  if (pixel < 2000) grid(pen, sight, step / sight.metres, origin, tiles ? fade(palette.faint, 0.25) : fade(palette.line, 0.8));
  return step;
}

function grid(pen, sight, step, origin, colour) {
  const [left, top] = sight.from(0, 0), [right, bottom] = sight.from(sight.width, sight.height);
  pen.beginPath();
  for (let i = Math.ceil((left - origin.x) / step); origin.x + i * step <= right; i++) {
    const px = Math.round(sight.at(origin.x + i * step, 0)[0]) + 0.5;
    pen.moveTo(px, 0);
    pen.lineTo(px, sight.height);
  }
  for (let i = Math.ceil((bottom - origin.y) / step); origin.y + i * step <= top; i++) {
    const py = Math.round(sight.at(0, origin.y + i * step)[1]) + 0.5;
    pen.moveTo(0, py);
    pen.lineTo(sight.width, py);
  }
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.stroke();
}

/** Draw the bar that shows a length. */
export function scaleBar(pen, sight, step, palette) {
  const length = (step / sight.metres) * sight.scale, x = 10, y = sight.height - 12;
  pen.font = "11px system-ui, sans-serif";
  const text = metres(step);
  pen.fillStyle = fade(palette.panel, 0.85);
  pen.fillRect(x - 5, y - 17, Math.max(length, pen.measureText(text).width) + 10, 23);
  pen.strokeStyle = palette.text;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, y - 4);
  pen.lineTo(x, y);
  pen.lineTo(x + length, y);
  pen.lineTo(x + length, y - 4);
  pen.stroke();
  pen.fillStyle = palette.text;
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  pen.fillText(text, x, y - 4);
}

/** Draw tracks; `limits` is the range of the colours, and `inside(t)` whether a time is in the window of the page. */
export function drawTracks(pen, sight, tracks, { colour, limits, palette, inside, own }) {
  pen.lineJoin = pen.lineCap = "round";
  for (const [number, track] of tracks.entries()) {
    const list = limits ? values(track, colour) : null, plain = seriesColour(number);
    outline(pen, sight, track, fade(palette.panel, 0.8), 5);
    const buckets = new Map();
    const { t, x, y } = track;
    let before = null, last = null;
    for (let i = 0; i < t.length; i++) {
      if (Number.isNaN(t[i])) { before = null; continue; }
      const [px, py] = sight.at(x[i], y[i]);
      // Steps below a third of a pixel cannot be seen.
      const small = before && i + 1 < t.length && Math.abs(px - before[0]) + Math.abs(py - before[1]) < 0.35;
      if (small) continue;
      const key = !inside(own(track, t[i])) ? -2 : list && Number.isFinite(list[i]) ? bucket(list[i], limits) : -1;
      if (before) {
        if (!buckets.has(key)) buckets.set(key, new Path2D());
        const path = buckets.get(key);
        if (last !== path) path.moveTo(before[0], before[1]);
        path.lineTo(px, py);
        last = path;
      } else last = null;
      before = [px, py];
    }
    pen.lineWidth = 2.6;
    for (const key of [...buckets.keys()].sort((a, b) => a - b)) {
      pen.strokeStyle = key === -2 ? palette.line : key === -1 ? (list ? palette.faint : plain) : `rgb(${RAMP[key].join(",")})`;
      pen.stroke(buckets.get(key));
    }
    // One single place has no line.
    if (track.total === 1) dot(pen, ...sight.at(x[0], y[0]), 4, plain);
  }
}

function bucket(value, [low, high]) {
  const part = high > low ? (value - low) / (high - low) : 0.5;
  return 24 + 4 * Math.round(Math.max(0, Math.min(1, part)) * 56);
}

function outline(pen, sight, { t, x, y }, colour, width) {
  pen.beginPath();
  let first = true, ax = 0, ay = 0;
  for (let i = 0; i < t.length; i++) {
    if (Number.isNaN(t[i])) { first = true; continue; }
    const [px, py] = sight.at(x[i], y[i]);
    if (!first && Math.abs(px - ax) + Math.abs(py - ay) < 1) continue;
    if (first) pen.moveTo(px, py); else pen.lineTo(px, py);
    [ax, ay, first] = [px, py, false];
  }
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.stroke();
}

/** Mark the ends of jumps: a cross, and a dashed line towards the other end, which may be far away. */
export function drawJumps(pen, sight, tracks, palette) {
  const taken = [];
  pen.font = "11px system-ui, sans-serif";
  for (const { jumps } of tracks) for (const { about, places } of jumps) {
    const ends = places.map((place) => sight.at(...place)), far = Math.hypot(ends[1][0] - ends[0][0], ends[1][1] - ends[0][1]);
    for (const [i, [px, py]] of ends.entries()) {
      if (px < 0 || py < 0 || px > sight.width || py > sight.height) continue;
      const [qx, qy] = ends[1 - i], part = Math.min(0.5, 44 / Math.max(far, 1));
      pen.strokeStyle = pen.fillStyle = palette.bad;
      pen.lineWidth = 1.5;
      pen.setLineDash([4, 3]);
      pen.beginPath();
      pen.moveTo(px, py);
      pen.lineTo(px + (qx - px) * part, py + (qy - py) * part);
      pen.stroke();
      pen.setLineDash([]);
      pen.beginPath();
      for (const way of [1, -1]) { pen.moveTo(px - 4, py - 4 * way); pen.lineTo(px + 4, py + 4 * way); }
      pen.stroke();
      // Where a track jumps away and back, one word is enough.
      if (taken.some(([x, y]) => Math.abs(x - px) < 90 && Math.abs(y - py) < 14)) continue;
      taken.push([px, py]);
      pen.textAlign = px > sight.width - 110 ? "right" : "left";
      pen.textBaseline = "middle";
      pen.lineWidth = 3;
      pen.strokeStyle = palette.panel;
      const x = px + (pen.textAlign === "left" ? 9 : -9);
      pen.strokeText(about, x, py);
      pen.fillText(about, x, py);
    }
  }
}

function dot(pen, px, py, radius, colour) {
  pen.beginPath();
  pen.arc(px, py, radius, 0, 2 * Math.PI);
  pen.fillStyle = colour;
  pen.fill();
}

/** Draw the place at the cursor: an arrow where it moves to, else a dot. */
export function marker(pen, px, py, heading, colour, rim, hollow = false) {
  pen.save();
  pen.translate(px, py);
  pen.beginPath();
  if (heading === null) pen.arc(0, 0, 6, 0, 2 * Math.PI);
  else {
    pen.rotate(-heading);
    pen.moveTo(11, 0);
    pen.lineTo(-7, 7);
    pen.lineTo(-4, 0);
    pen.lineTo(-7, -7);
    pen.closePath();
  }
  pen.lineJoin = "round";
  pen.strokeStyle = hollow ? colour : rim;
  pen.lineWidth = hollow ? 1.5 : 4;
  pen.stroke();
  if (!hollow) {
    pen.fillStyle = colour;
    pen.fill();
  }
  pen.restore();
}

/** Draw the colours with their values. */
export function colourBar(pen, sight, [low, high], title, text, palette) {
  const width = 108, height = 7, x = sight.width - width - 12, y = 10;
  pen.fillStyle = fade(palette.panel, 0.85);
  pen.fillRect(x - 6, y - 6, width + 12, height + 33);
  for (let i = 0; i < width; i++) {
    pen.fillStyle = `rgb(${RAMP[bucket(i / (width - 1), [0, 1])].join(",")})`;
    pen.fillRect(x + i, y, 1.5, height);
  }
  pen.fillStyle = palette.text;
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "top";
  pen.textAlign = "left";
  pen.fillText(text(low), x, y + height + 2);
  pen.textAlign = "right";
  pen.fillText(text(high), x + width, y + height + 2);
  pen.textAlign = "center";
  pen.fillStyle = palette.faint;
  pen.fillText(title, x + width / 2, y + height + 14, width);
}

/** Draw a small map of the world with the place of the tracks, while only a part of a country is seen. */
export function inset(pen, sight, outline, palette) {
  if (!sight.geographic || !outline || sight.width * sight.metres / sight.scale > 800e3 || sight.width < 220 || sight.height < 180) return;
  const width = 80, height = 48, small = new Sight(true);
  const x = sight.width - width - 10, y = sight.height - height - 10;
  small.width = width;
  small.height = height;
  small.scale = width / (0.55 * HALF);
  small.x = sight.x;
  small.y = sight.y;
  pen.save();
  pen.translate(x, y);
  pen.beginPath();
  pen.rect(0, 0, width, height);
  pen.clip();
  pen.fillStyle = palette.ground;
  pen.fillRect(0, 0, width, height);
  drawWorld(pen, outline, small, { land: palette.line, line: palette.border });
  dot(pen, width / 2, height / 2, 3.5, palette.accent);
  const name = country(outline, sight.x, sight.y);
  if (name) {
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    pen.lineWidth = 3;
    pen.strokeStyle = palette.ground;
    pen.strokeText(name, width / 2, height - 3, width - 6);
    pen.fillStyle = palette.text;
    pen.fillText(name, width / 2, height - 3, width - 6);
  }
  pen.restore();
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  pen.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
}
