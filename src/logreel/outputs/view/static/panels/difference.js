// The differences of one field of some logs and another one, over time as they are aligned.

import { seriesColour } from "../colours.js";
import { css, el } from "../dom.js";
import { before, nameOf, short, valueAt, wish } from "../series.js";
import { STEPS } from "../time.js";
import { LEFT, RIGHT } from "./plot.js";
import { bands } from "./plot_draw.js";
import { sentence } from "./sentence.js";

/** Pixels that are asked for: a difference of curves that lack messages would have steps that nothing measured. */
const PIXELS = 16384;
/** Functions whose values are angles in degrees: half a turn is the most by which two differ. */
const ANGLES = new Set(["roll", "pitch", "yaw", "heading"]);

export function create(context, settings) {
  return new Difference(context, settings);
}

/**
 * Return {t, v} of one curve minus another at the times of the first that the second covers: NaN outside, and in gaps.
 * @param {{t, v, gaps, held}} one the curve
 * @param {{t, v, gaps, held}} other the one that is subtracted, taken between its messages unless it holds
 * @param {boolean} turns whether values are angles in degrees
 */
export function minus(one, other, turns = false) {
  const t = [], v = [];
  one.t.forEach((at, i) => {
    const n = before(other.t, at);
    let value = n < 0 || (n === other.t.length - 1 && other.t[n] !== at) ? NaN : valueAt(other, at);
    if (Number.isFinite(value) && !other.held && n + 1 < other.t.length) value += ((at - other.t[n]) / (other.t[n + 1] - other.t[n])) * (other.v[n + 1] - value);
    const difference = one.v[i] - value;
    t.push(at);
    v.push(turns ? difference - 360 * Math.round(difference / 360) : difference);
  });
  return { t, v };
}

class Difference {
  constructor(context, { series = null, logs: chosen = [], other = null }) {
    this.context = context;
    const { logs } = context, known = (id) => logs.some((one) => one.id === id);
    this.series = series;
    this.other = known(other) ? other : logs[0].id;
    this.logs = chosen.filter(known);
    if (!this.logs.length) this.logs = [(logs.find(({ id }) => id !== this.other) ?? logs[0]).id];
    this.curves = [];
  }

  get title() {
    const name = (id) => this.context.log(id).name;
    return this.series ? `${nameOf(this.series)}: ${this.logs.map(name).join(", ")} − ${name(this.other)}` : "Difference of logs";
  }

  mount(element) {
    this.element = element;
    const { bus } = this.context;
    this.offs = [bus.on("theme", () => this.#build()), bus.on("shift", () => this.#load()), bus.on("grown", () => this.#load())];
    this.#changed();
  }

  settings() {
    return { series: this.series, logs: this.logs, other: this.other };
  }

  drop({ topic, field, function: applied, where, label, unit }) {
    this.series = Object.fromEntries(Object.entries({ topic, field, function: applied, where, label, unit }).filter(([, value]) => value));
    this.#changed();
  }

  menu() {
    const { logs } = this.context;
    const turn = (id) => {
      const turned = logs.map((one) => one.id).filter((one) => (one === id) !== this.logs.includes(one));
      if (turned.length) this.logs = turned;
      this.#changed();
    };
    const subtract = (id) => {
      // The log that was subtracted takes the place of the one that is now.
      this.logs = this.logs.map((one) => (one === id ? this.other : one));
      this.other = id;
      this.#changed();
    };
    return [{ text: "Difference of" }, ...logs.map(({ id, name }) => ({ text: name, on: this.logs.includes(id), run: () => turn(id) })),
      { text: "minus" }, ...logs.map(({ id, name }) => ({ text: name, on: this.other === id, run: () => subtract(id) }))];
  }

  resize(width, height) {
    this.size = { width, height };
    if (this.plot) this.plot.setSize(this.size); else this.#build();
  }

  window(from, to) {
    this.from = from;
    this.to = to;
    this.#load();
  }

  cursor(axis) {
    this.at = axis;
    this.#values();
  }

  dispose() {
    this.stop?.abort();
    for (const off of this.offs) off();
    this.plot?.destroy();
  }

  #changed() {
    this.context.state.changed();
    this.context.title(this.title);
    this.#load();
  }

  async #load() {
    if (this.from == null) return undefined;
    if (!this.series) return this.#say("Drag a field here whose difference between two logs is wanted.");
    this.stop?.abort();
    const stop = new AbortController(), { api, time } = this.context;
    this.stop = stop;
    this.element.classList.add("busy");
    try {
      const [other, ...several] = await Promise.all([this.other, ...this.logs].map(async (id) => {
        const shift = time.shift(id), { columns, metadata } = await api.series(id, wish(this.series), { from: Math.round(this.from - shift), to: Math.round(this.to - shift), px: PIXELS }, stop);
        if (metadata.error) throw new Error(`${this.context.log(id).name}: ${metadata.error}`);
        if (metadata.points !== "all") throw new Error("Too many messages in this window for an exact difference: zoom in.");
        return { t: Array.from(columns.t, (t) => t + shift), v: columns.v, unit: metadata.unit, held: metadata.held === "yes", gaps: JSON.parse(metadata.gaps ?? "[]").map(([a, b]) => [a + shift, b + shift]) };
      }));
      this.unit = this.series.unit || other.unit || "";
      this.curves = several.map((one, i) => ({ log: this.logs[i], ...minus(one, other, ANGLES.has(this.series.function)) }));
      const measured = this.curves.reduce((sum, { v }) => sum + v.filter(Number.isFinite).length, 0);
      this.element.dataset.points = measured;
      this.#say(measured ? "" : "The logs have no common time in this window.");
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      this.curves = [];
      this.#say(error.message, true);
    }
    this.element.classList.remove("busy");
    this.#build();
    return undefined;
  }

  #say(text, bad = false) {
    this.element.querySelector(".sentence")?.remove();
    if (text) this.element.append(sentence(text, bad));
    this.element.dataset.ready = "yes";
  }

  #build() {
    if (!this.size || this.from == null) return;
    this.plot?.destroy();
    const line = css("--line"), faint = css("--faint"), grid = { stroke: line, width: 1 / devicePixelRatio };
    this.plot = new uPlot({
      ...this.size, padding: [6, RIGHT, 6, 0], legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, min: this.from, max: this.to, range: () => [this.from, this.to] } },
      axes: [
        { size: 0, grid, ticks: { show: false }, values: () => [], incrs: STEPS, space: 80 },
        { size: LEFT, stroke: faint, font: "11px system-ui, sans-serif", gap: 4, grid, ticks: { show: false }, space: 22 },
      ],
      series: [{}, ...this.curves.map((_, i) => ({ stroke: seriesColour(i), width: 1.25, points: { show: false } }))],
      hooks: { drawClear: [(u) => bands(u, this.context, this.context.logs.filter(({ id }) => id === this.other || this.logs.includes(id)))] },
    }, this.#table(), this.element);
    this.line = el("div", { class: "line first", hidden: true });
    this.plot.over.append(this.line);
    this.plot.over.addEventListener("click", (event) => this.context.view.setCursor(this.plot.posToVal(event.offsetX, "x")));
    this.#values();
  }

  #table() {
    // Not measured is a break of the line; a time that only another curve has is none.
    const tables = this.curves.filter(({ t }) => t.length).map(({ t, v }) => [t, v.map((one) => (Number.isFinite(one) ? one : null))]);
    if (tables.length === this.curves.length && tables.length) return tables.length === 1 ? tables[0] : uPlot.join(tables);
    return [[], ...this.curves.map(() => [])];
  }

  #values() {
    if (!this.plot) return;
    const { at } = this, shown = at != null && at >= this.from && at <= this.to;
    this.line.hidden = !shown;
    if (shown) this.line.style.transform = `translateX(${this.plot.valToPos(at, "x")}px)`;
    this.context.title(this.title, this.unit ?? "");
    this.context.legend.replaceChildren(...this.curves.map((curve, i) => {
      const value = shown ? valueAt(curve, at) : NaN, key = el("i", {});
      key.style.background = seriesColour(i);
      return el("li", {}, ...(this.curves.length > 1 ? [key, el("span", {}, this.context.log(curve.log).name)] : []), el("span", { class: "value" }, Number.isFinite(value) ? short(value) : ""));
    }));
  }
}
