// The plane of the map: metres to the right and up; geographic positions in the projection of map tiles (Web Mercator).

const RADIUS = 6378137, MOST = 85.0511;
export const HALF = Math.PI * RADIUS;

/** Return x and y in metres of the projection. */
export function project(lat, lon) {
  const safe = Math.max(-MOST, Math.min(MOST, lat));
  return [RADIUS * lon * Math.PI / 180, RADIUS * Math.log(Math.tan(Math.PI / 4 + safe * Math.PI / 360))];
}

/** Return latitude and longitude of a place of the projection. */
export function unproject(x, y) {
  return [(2 * Math.atan(Math.exp(y / RADIUS)) - Math.PI / 2) * 180 / Math.PI, x / RADIUS * 180 / Math.PI];
}

/** Which part of the plane is seen: the middle, and pixels for each unit of the plane. */
export class Sight {
  constructor(geographic) {
    this.geographic = geographic;
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    this.width = 1;
    this.height = 1;
  }

  /** Length of one unit of the plane in metres on the ground, in the middle. */
  get metres() {
    return this.geographic ? 1 / Math.cosh(this.y / RADIUS) : 1;
  }

  /** Place of a point of the plane in pixels. */
  at(x, y) {
    return [this.width / 2 + (x - this.x) * this.scale, this.height / 2 - (y - this.y) * this.scale];
  }

  /** The point of the plane at a place in pixels. */
  from(px, py) {
    return [this.x + (px - this.width / 2) / this.scale, this.y - (py - this.height / 2) / this.scale];
  }

  /** Show a box of the plane, with room for what stands at the edges; at least `least` metres are seen. */
  fit({ left, right, bottom, top }, least = 20) {
    if (!(left <= right)) return;
    const above = Math.min(46, this.height / 5), below = Math.min(this.geographic ? 62 : 36, this.height / 5), side = Math.min(24, this.width / 8);
    const smallest = least / this.metres;
    const wide = (this.width - 2 * side) / Math.max(right - left, smallest), high = (this.height - above - below) / Math.max(top - bottom, smallest);
    this.scale = Math.min(wide, high);
    this.#bound();
    this.x = (left + right) / 2;
    this.y = (bottom + top) / 2 + (above - below) / 2 / this.scale;
  }

  /** Zoom with the point at a place where it is. */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = this.from(px, py);
    this.scale *= factor;
    this.#bound();
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y + (py - this.height / 2) / this.scale;
  }

  move(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
  }

  #bound() {
    const least = this.geographic ? this.width / (2.2 * HALF) : 1e-7;
    this.scale = Math.max(least, Math.min(this.scale, 2000 / this.metres));
  }
}

/** Return 1, 2 or 5 times a power of ten, at least `size`. */
export function round(size) {
  const power = 10 ** Math.floor(Math.log10(size));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= size * 0.999);
}

/** Return a length for people. */
export function metres(size) {
  const short = (number) => String(Number(number.toPrecision(3)));
  if (size >= 1000) return `${short(size / 1000)} km`;
  return size >= 1 ? `${short(size)} m` : `${short(size * 100)} cm`;
}
