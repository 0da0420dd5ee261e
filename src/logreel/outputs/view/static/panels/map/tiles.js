// Map tiles of the user (`--tiles`), which the server reads: no request leaves the machine of the viewer.

import { HALF } from "./flat.js";

const SIZE = 256, KEPT = 300, AT_ONCE = 4;

export class Tiles {
  /**
   * @param {Object} api
   * @param {{min_zoom: number, max_zoom: number}} about
   * @param {Function} arrived called when a tile has come
   */
  constructor(api, about, arrived) {
    this.api = api;
    this.about = about;
    this.arrived = arrived;
    this.kept = new Map();
    this.wanted = [];
    this.open = 0;
  }

  /** Draw all tiles that are there, and ask for the others; smaller tiles stand in for them. */
  draw(pen, sight) {
    const { min_zoom: least, max_zoom: most } = this.about;
    const exact = Math.log2((sight.scale * 2 * HALF) / SIZE);
    const zoom = Math.max(least, Math.min(most, Math.ceil(exact - 0.3)));
    if (zoom - exact > 3) return; // The whole world in thousands of tiles helps nobody.
    const count = 2 ** zoom, size = (2 * HALF) / count;
    const [left, top] = sight.from(0, 0), [right, bottom] = sight.from(sight.width, sight.height);
    const column = (x) => Math.floor((x + HALF) / size), row = (y) => Math.floor((HALF - y) / size);
    this.wanted = [];
    for (let y = Math.max(0, row(top)); y <= Math.min(count - 1, row(bottom)); y++) {
      for (let x = column(left); x <= column(right); x++) {
        const [px, py] = sight.at(x * size - HALF, HALF - y * size), side = size * sight.scale;
        this.#draw(pen, zoom, ((x % count) + count) % count, y, px, py, side);
      }
    }
    this.#ask();
  }

  #draw(pen, zoom, x, y, px, py, side) {
    const own = this.kept.get(`${zoom}/${x}/${y}`);
    if (own === undefined) this.wanted.push([zoom, x, y]);
    for (let up = 0; up <= Math.min(zoom, 4); up++) {
      const picture = this.kept.get(`${zoom - up}/${x >> up}/${y >> up}`);
      if (!picture) continue;
      const part = picture.width / 2 ** up, mask = 2 ** up - 1;
      pen.drawImage(picture, (x & mask) * part, (y & mask) * part, part, part, px, py, side + 0.5, side + 0.5);
      return;
    }
  }

  async #ask() {
    while (this.wanted.length && this.open < AT_ONCE) {
      const place = this.wanted.shift().join("/");
      if (this.kept.has(place)) continue;
      this.kept.set(place, null);
      this.open += 1;
      this.#fetch(place).finally(() => { this.open -= 1; this.#ask(); });
    }
  }

  async #fetch(place) {
    try {
      const blob = await this.api.blob(`/api/tiles/${place}`);
      if (blob.size) this.kept.set(place, await createImageBitmap(blob));
    } catch (error) {
      this.failed = error.message;
    }
    while (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    this.arrived();
  }
}
