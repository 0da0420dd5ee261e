// What is drawn on a picture: points of clouds where the calibration maps them, and boxes of detections.

import { el } from "../../dom.js";
import { decode } from "../scene/decode.js";
import { key, range, shade } from "../scene/ramp.js";

/** Answers that are kept. */
const KEPT = 24;

export class Overlay {
  /**
   * @param {Object} api
   * @param {Object} source of pictures, with its clouds and detections
   * @param {Object} chosen {clouds: topics, detections: topics or null for those of the source, colour}
   */
  constructor(api, source, chosen) {
    this.api = api;
    this.source = source;
    this.chosen = chosen;
    this.canvas = el("canvas", { class: "overlay", "aria-hidden": "true" });
    this.legend = el("div", { class: "drawn" });
    this.kept = new Map();
  }

  get detections() {
    return this.chosen.detections ?? this.source.detections;
  }

  /** Whether there is anything to draw. */
  get wanted() {
    return this.chosen.clouds.length + this.detections.length > 0;
  }

  /** Take another choice; what is kept belongs to the old one. */
  choose(chosen) {
    this.chosen = chosen;
    this.kept.clear();
  }

  /** Return what is drawn on the picture at the time `t`. */
  async get(t) {
    if (!this.kept.has(t)) {
      const { log, topic } = this.source, { clouds: cloud, colour: color } = this.chosen;
      this.kept.set(t, decode(await this.api.bytes(`/api/logs/${log}/overlay`, { topic, at: t, cloud, detections: this.detections, color })));
      if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    }
    return this.kept.get(t);
  }

  /** Draw on a picture of this size, which is shown `scale` times as large. */
  draw({ width, height, items: [{ arrays: { at, value, edges } }], boxes, solids, color, notes }, size, scale) {
    // Sharp lines also on small pictures, without more pixels than are seen.
    const sharp = Math.min(4, Math.max(1, scale)), pen = this.canvas.getContext("2d");
    Object.assign(this.canvas, { width: Math.round(size.width * sharp), height: Math.round(size.height * sharp) });
    // A calibration may be of pictures of another size.
    const x = (this.canvas.width / (width || size.width)), y = (this.canvas.height / (height || size.height));
    const unit = Math.max(1, sharp / Math.max(scale, 1e-3)), ends = range(value);
    const dot = 2.5 * unit;
    for (let i = 0; i < value.length; i++) {
      pen.fillStyle = `rgb(${shade(value[i], ends).join(" ")})`;
      pen.fillRect(x * at[2 * i] - dot / 2, y * at[2 * i + 1] - dot / 2, dot, dot);
    }
    // Boxes are in pixels of the picture itself.
    const own = sharp;
    pen.lineWidth = 2 * unit;
    pen.font = `${12 * unit}px system-ui, sans-serif`;
    pen.textBaseline = "bottom";
    const name = (text, rgb, left, top) => {
      if (!text) return;
      pen.fillStyle = `rgb(${rgb.join(" ")})`;
      pen.fillRect(left, top - 15 * unit, pen.measureText(text).width + 6 * unit, 15 * unit);
      pen.fillStyle = 0.3 * rgb[0] + 0.59 * rgb[1] + 0.11 * rgb[2] > 140 ? "#000" : "#fff";
      pen.fillText(text, left + 3 * unit, top - unit);
    };
    let row = 0;
    for (const { text, color: rgb, edges: count } of solids) {
      let left = Infinity, top = Infinity;
      pen.strokeStyle = `rgb(${rgb.join(" ")})`;
      pen.beginPath();
      for (const end = row + count; row < end; row++) {
        const [a, b, c, d] = edges.subarray(4 * row, 4 * row + 4);
        pen.moveTo(x * a, y * b);
        pen.lineTo(x * c, y * d);
        left = Math.min(left, x * a, x * c);
        top = Math.min(top, y * b, y * d);
      }
      pen.stroke();
      name(text, rgb, left, Math.max(15 * unit, top));
    }
    for (const { text, color: rgb, position, size: wide, angle } of boxes) {
      pen.save();
      pen.translate(own * position[0], own * position[1]);
      pen.rotate(angle);
      pen.strokeStyle = `rgb(${rgb.join(" ")})`;
      pen.strokeRect((-own * wide[0]) / 2, (-own * wide[1]) / 2, own * wide[0], own * wide[1]);
      pen.restore();
      name(text, rgb, Math.max(0, own * (position[0] - wide[0] / 2)), Math.max(15 * unit, own * (position[1] - wide[1] / 2)));
    }
    this.legend.replaceChildren(...(value.length ? [key(color === "distance" ? "distance [m]" : color, ends, "div")] : []), ...notes.map((text) => el("div", {}, text)));
    Object.assign(this.canvas.dataset, { points: value.length, boxes: boxes.length, solids: solids.length });
  }
}
