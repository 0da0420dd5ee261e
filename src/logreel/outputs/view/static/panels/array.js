// An array as a curve over its index, of the message at the cursor.

import { css, el, fit, frame } from "../dom.js";
import { nameOf, short } from "../series.js";
import { axes, extent } from "./axes.js";
import { sentence } from "./sentence.js";

export function create(context, settings) {
  return new ArrayPanel(context, settings);
}

class ArrayPanel {
  constructor(context, settings) {
    this.context = context;
    const { title = "", kind: _kind, height: _height, ...wanted } = settings ?? {};
    this.given = title;
    this.wanted = wanted.topic ? wanted : null;
    this.later = frame(() => this.#load());
    this.draw = frame(() => this.#draw());
  }

  get title() {
    return this.given || (this.wanted ? nameOf(this.wanted) : "Array at the cursor");
  }

  mount(element) {
    this.element = element;
    this.canvas = el("canvas", { role: "img" });
    element.replaceChildren(this.canvas);
    const { bus } = this.context;
    this.offs = [bus.on("theme", () => this.draw()), bus.on("grown", () => this.later())];
    this.context.title(this.title);
    if (!this.wanted) this.#say("Drag an array here to see its values at the cursor.");
  }

  settings() {
    return { ...(this.given ? { title: this.given } : {}), ...this.wanted };
  }

  series() {
    return [];
  }

  drop(series) {
    this.wanted = { ...series, field: series.field.replace(/\[\d+\]$/, "") };
    this.context.title(this.title);
    this.context.state.changed();
    this.later();
  }

  menu() {
    return [{ text: "Save as PNG", run: () => this.context.takeaway.png(this) }];
  }

  resize(width, height) {
    this.size = [width, height];
    this.draw();
  }

  window(from) {
    this.from = from;
    if (this.at == null) this.later();
  }

  cursor(axis) {
    this.at = axis;
    this.later();
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
    if (!this.wanted || this.from == null) return;
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const { api, time, logs } = this.context, log = this.wanted.log ?? logs[0].id;
    try {
      const { topic, field } = this.wanted, ask = (at) => api.get(`/api/logs/${log}/array`, { topic, field, at: Math.round(at) });
      let found = await ask(time.toLog(log, this.at ?? this.from));
      if (found.t == null && this.at == null) {
        // Before a cursor is set, the first message is a better beginning than none.
        const { t } = await api.get(`/api/logs/${log}/message`, { topic, at: Math.round(time.toLog(log, this.from)), step: 1 });
        if (t != null) found = await ask(t);
      }
      this.found = found.t == null ? null : found;
      if (!this.found) { this.#say("No message of this channel at or before the cursor."); fit(this.canvas, ...(this.size ?? [1, 1])); this.busy = false; return; }
      this.element.dataset.points = found.values.length;
      this.context.legend.replaceChildren(el("li", {}, el("span", {}, `${found.values.length} values at ${time.full(time.toAxis(log, found.t))}`)));
      this.#say(found.values.length ? "" : "This array is empty.");
      this.draw();
    } catch (error) {
      this.found = null;
      this.#say(error.message, true);
    }
    this.busy = false;
    if (this.again) { this.again = false; this.later(); }
  }

  #draw() {
    if (!this.size || !this.found) return;
    const [width, height] = this.size, pen = fit(this.canvas, width, height);
    const values = this.found.values.map((value) => (value == null ? NaN : Number(value))), n = values.length;
    if (!n) return;
    const { toX, toY } = axes(pen, { width, height, x: [-0.5, n - 0.5], y: extent(values.filter(Number.isFinite)), xName: "index", yName: this.found.unit ? `[${this.found.unit}]` : "" });
    pen.strokeStyle = pen.fillStyle = css("--series-1");
    pen.lineWidth = 1.25;
    pen.beginPath();
    let on = false;
    values.forEach((value, i) => {
      if (!Number.isFinite(value)) { on = false; return; }
      if (on) pen.lineTo(toX(i), toY(value)); else pen.moveTo(toX(i), toY(value));
      on = true;
    });
    pen.stroke();
    if (n <= width / 10) values.forEach((value, i) => Number.isFinite(value) && pen.fillRect(toX(i) - 2, toY(value) - 2, 4, 4));
    if (n <= 12) {
      pen.fillStyle = css("--text");
      pen.textAlign = "center";
      pen.textBaseline = "bottom";
      values.forEach((value, i) => pen.fillText(short(value, 4), toX(i), toY(value) - 4));
    }
  }
}
