// One field over another.

import { RAMP } from "../colours.js";
import { css, el, fit, frame } from "../dom.js";
import { before, nameOf, short, wish } from "../series.js";
import { axes, EDGE, extent } from "./axes.js";
import { sentence } from "./sentence.js";

const PIXELS = 4000;

export function create(context, settings) {
  return new Xy(context, settings);
}

class Xy {
  constructor(context, { title = "", x = null, y = null, equal = false }) {
    this.context = context;
    this.given = title;
    this.x = x ?? null;
    this.y = y ?? null;
    this.equal = equal;
    this.later = frame(() => this.#load());
    this.draw = frame(() => this.#draw());
  }

  get title() {
    return this.given || (this.x && this.y ? `${nameOf(this.y)} over ${nameOf(this.x)}` : "XY plot");
  }

  mount(element) {
    this.element = element;
    this.canvas = el("canvas", { role: "img" });
    element.replaceChildren(this.canvas);
    const { bus } = this.context;
    this.offs = [bus.on("theme", () => this.draw()), bus.on("grown", () => this.later()), bus.on("hover", (axis) => { this.hover = axis; this.draw(); })];
    this.canvas.addEventListener("click", (event) => this.#choose(event));
    this.context.title(this.title);
    this.canvas.setAttribute("aria-label", this.title);
    if (!this.x || !this.y) this.#say(this.x ? "Drag the field for the vertical axis here." : "Drag the field for the horizontal axis here, then the one for the vertical axis.");
  }

  settings() {
    return { ...(this.given ? { title: this.given } : {}), x: this.x, y: this.y, ...(this.equal ? { equal: true } : {}) };
  }

  series() {
    return [this.x, this.y].filter(Boolean).map((one) => ({ ...one, log: one.log ?? this.context.logs[0].id }));
  }

  drop(series) {
    this.given = "";
    if (!this.x) this.x = series;
    else this.y = series;
    this.context.title(this.title);
    this.context.state.changed();
    if (this.x && this.y) this.later(); else this.#say("Drag the field for the vertical axis here.");
  }

  menu() {
    return [
      { text: "Swap the axes", run: () => { [this.x, this.y] = [this.y, this.x]; this.context.title(this.title); this.later(); }, off: !this.x || !this.y },
      { text: "Same scale on both axes", on: this.equal, run: () => { this.equal = !this.equal; this.draw(); this.context.state.changed(); } },
      { text: "Save as PNG", run: () => this.context.takeaway.png(this) },
    ];
  }

  resize(width, height) {
    this.size = [width, height];
    this.draw();
  }

  window(from, to) {
    this.from = from;
    this.to = to;
    this.later();
  }

  cursor(axis) {
    this.at = axis;
    this.draw();
  }

  dispose() {
    this.stop?.abort();
    for (const off of this.offs) off();
  }

  #say(text, bad = false) {
    this.element.querySelector(".sentence")?.remove();
    if (text) this.element.append(sentence(text, bad));
    this.element.dataset.ready = "yes";
  }

  async #load() {
    if (!this.x || !this.y || this.from == null) return;
    this.stop?.abort();
    this.stop = new AbortController();
    const { api, time, logs } = this.context, log = this.x.log ?? logs[0].id, s = [this.x, this.y].map((one) => JSON.stringify(wish(one)));
    this.element.classList.add("busy");
    try {
      const { columns, metadata } = await api.arrow(`/api/logs/${log}/pairs`, { s, from: Math.round(time.toLog(log, this.from)), to: Math.round(time.toLog(log, this.to)), px: PIXELS }, this.stop);
      this.points = { ...columns, t: columns.t.map((t) => time.toAxis(log, t)) };
      this.units = [this.x.unit || metadata.unit_x || "", this.y.unit || metadata.unit_y || ""];
      this.element.dataset.units = this.units.join(" ");
      this.element.dataset.points = columns.x.length;
      this.#say(columns.x.length ? "" : "No messages in this window.");
      this.draw();
    } catch (error) {
      if (error.name !== "AbortError") this.#say(error.message, true);
    }
    this.element.classList.remove("busy");
  }

  #draw() {
    if (!this.size || !this.points?.x.length) return;
    this.#paint(fit(this.canvas, ...this.size));
  }

  /** Return a canvas with what is seen, in `scale` pixels for each of the screen. */
  picture(scale) {
    if (!this.size || !this.points?.x.length) return null;
    const sheet = document.createElement("canvas");
    this.#paint(fit(sheet, ...this.size, scale));
    return sheet;
  }

  #paint(pen) {
    const [width, height] = this.size, { x, y, t } = this.points;
    let across = extent(x), up = extent(y);
    if (this.equal) {
      const scale = Math.max((across[1] - across[0]) / (width - EDGE.left - EDGE.right), (up[1] - up[0]) / (height - EDGE.top - EDGE.bottom));
      const widen = ([low, high], pixels) => [(low + high - scale * pixels) / 2, (low + high + scale * pixels) / 2];
      across = widen(across, width - EDGE.left - EDGE.right);
      up = widen(up, height - EDGE.top - EDGE.bottom);
    }
    const label = (one, unit) => nameOf(one) + (unit ? ` [${unit}]` : "");
    const { toX, toY } = axes(pen, { width, height, x: across, y: up, xName: label(this.x, this.units[0]), yName: label(this.y, this.units[1]) });
    this.place = { toX, toY };
    this.element.dataset.scales = `${(toX(1) - toX(0)).toPrecision(6)} ${(toY(0) - toY(1)).toPrecision(6)}`;
    // From dark to bright over time, in steps: one path for each colour.
    const steps = 64, n = x.length, dark = this.context.theme() === "dark";
    pen.lineWidth = 1.25;
    for (let step = 0; step < steps; step++) {
      const first = Math.floor((step * n) / steps), last = Math.min(n - 1, Math.floor(((step + 1) * n) / steps));
      const shade = Math.round((dark ? 60 : 0) + (step / steps) * 190);
      pen.strokeStyle = `rgb(${RAMP[shade].join(" ")})`;
      pen.beginPath();
      let on = false;
      for (let i = first; i <= last; i++) {
        if (!Number.isFinite(x[i]) || !Number.isFinite(y[i])) { on = false; continue; }
        if (on) pen.lineTo(toX(x[i]), toY(y[i])); else pen.moveTo(toX(x[i]), toY(y[i]));
        on = true;
      }
      pen.stroke();
    }
    const at = before(t, this.hover ?? this.at ?? -Infinity);
    if (at < 0) return;
    pen.fillStyle = css("--text");
    pen.beginPath();
    pen.arc(toX(x[at]), toY(y[at]), 4, 0, 7);
    pen.fill();
    this.context.legend.replaceChildren(el("li", {}, el("span", { class: "value" }, `${short(x[at])}, ${short(y[at])}`)));
  }

  /** Set the cursor to the time of the nearest point. */
  #choose(event) {
    if (!this.place) return;
    const { x, y, t } = this.points, { toX, toY } = this.place;
    let best = -1, least = 30 ** 2;
    for (let i = 0; i < x.length; i++) {
      const far = (toX(x[i]) - event.offsetX) ** 2 + (toY(y[i]) - event.offsetY) ** 2;
      if (far < least) [best, least] = [i, far];
    }
    if (best >= 0) this.context.view.setCursor(t[best]);
  }
}
