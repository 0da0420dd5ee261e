// The outline of the world, bundled with the program: countries of Natural Earth 1:110 million as TopoJSON.

import { project } from "./flat.js";

let known = null;

/** Return {arcs, lands}: lines of coasts and borders, and polygons with names, both in metres of the projection. */
export function world(api) {
  known ??= api.get("/api/world").then(decode);
  known.catch(() => { known = null; });
  return known;
}

function decode({ arcs, transform: { scale, translate }, objects }) {
  const lines = arcs.map((arc) => {
    let x = 0, y = 0;
    return arc.map(([dx, dy]) => {
      x += dx;
      y += dy;
      return project(y * scale[1] + translate[1], x * scale[0] + translate[0]);
    });
  });
  // A ring is a list of numbers of arcs; ~number is an arc in the other direction.
  const ring = (numbers) => numbers.flatMap((n, i) => {
    const line = n < 0 ? [...lines[~n]].reverse() : lines[n];
    return i ? line.slice(1) : line;
  });
  const lands = objects.countries.geometries.flatMap(({ type, arcs: parts, properties }) => {
    const polygons = type === "Polygon" ? [parts] : type === "MultiPolygon" ? parts : [];
    return polygons.map((rings) => ({ name: properties?.name ?? "", rings: rings.map(ring) }));
  });
  return { arcs: lines, lands };
}

/** Return the name of the country at a place of the projection, or "". */
export function country({ lands }, x, y) {
  const inside = (line) => {
    let odd = false;
    for (let i = 0, j = line.length - 1; i < line.length; j = i++) {
      const [ax, ay] = line[i], [bx, by] = line[j];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
    }
    return odd;
  };
  return lands.find(({ rings }) => rings.filter(inside).length % 2)?.name ?? "";
}

/** Draw land and borders. */
export function drawWorld(pen, { arcs, lands }, sight, { land, line }) {
  pen.beginPath();
  for (const { rings } of lands) for (const points of rings) trace(pen, points, sight, true);
  pen.fillStyle = land;
  pen.fill("evenodd");
  pen.beginPath();
  for (const points of arcs) trace(pen, points, sight, false);
  pen.strokeStyle = line;
  pen.lineWidth = 0.7;
  pen.stroke();
}

function trace(pen, points, sight, close) {
  let first = true;
  for (const [x, y] of points) {
    const place = sight.at(x, y);
    if (first) pen.moveTo(...place); else pen.lineTo(...place);
    first = false;
  }
  if (close) pen.closePath();
}
