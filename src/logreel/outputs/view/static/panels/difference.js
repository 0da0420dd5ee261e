// The difference of one field between two logs, over time as they are aligned.

import { seriesColour } from "../colours.js";
import { css, el } from "../dom.js";
import { before, nameOf, short, valueAt, wish } from "../series.js";
import { STEPS } from "../time.js";
import { LEFT, RIGHT } from "./plot.js";
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
  constructor(context, { series = null, log = null, other = null }) {
    this.context = context;
    const { logs } = context, known = (id) => logs.find((one) => one.id === id)?.id;
    this.series = series;
    this.log = known(log) ?? logs[1]?.id ?? logs[0].id;
    this.other = known(other) ?? logs[0].id;
    this.curve = { t: [], v: [] };
  }

  get title() {
    const name = (id) => this.context.log(id).name;
    return this.series ? `${nameOf(this.series)}: ${name(this.log)} − ${name(this.other)}` : "Difference of two logs";
  }

  mount(element) {
    this.element = element;
    const { bus } = this.context;
    this.offs = [bus.on("theme", () => this.#build()), bus.on("shift", () => this.#load()), bus.on("grown", () => this.#load())];
    this.#changed();
  }

  settings() {
    return { series: this.series, log: this.log, other: this.other };
  }

  drop({ topic, field, function: applied, where, label, unit }) {
    this.series = Object.fromEntries(Object.entries({ topic, field, function: applied, where, label, unit }).filter(([, value]) => value));
    this.#changed();
  }

  menu() {
    const { logs } = this.context, choose = (name) => logs.map((log) => ({ text: log.name, on: this[name] === log.id, run: () => { this[name] = log.id; this.#changed(); } }));
    return [{ text: "Difference of" }, ...choose("log"), { text: "minus" }, ...choose("other"), null,
      { text: "Swap", run: () => { [this.log, this.other] = [this.other, this.log]; this.#changed(); } }];
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
      const [one, other] = await Promise.all([this.log, this.other].map(async (id) => {
        const shift = time.shift(id), { columns, metadata } = await api.series(id, wish(this.series), { from: Math.round(this.from - shift), to: Math.round(this.to - shift), px: PIXELS }, stop);
        if (metadata.error) throw new Error(`${this.context.log(id).name}: ${metadata.error}`);
        if (metadata.points !== "all") throw new Error("Too many messages in this window for an exact difference: zoom in.");
        return { t: Array.from(columns.t, (t) => t + shift), v: columns.v, unit: metadata.unit, held: metadata.held === "yes", gaps: JSON.parse(metadata.gaps ?? "[]").map(([a, b]) => [a + shift, b + shift]) };
      }));
      this.unit = this.series.unit || one.unit || "";
      this.curve = minus(one, other, ANGLES.has(this.series.function));
      const measured = this.curve.v.filter(Number.isFinite).length;
      this.element.dataset.points = measured;
      this.#say(measured ? "" : "The two logs have no common time in this window.");
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      this.curve = { t: [], v: [] };
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
      series: [{}, { stroke: seriesColour(0), width: 1.25, points: { show: false } }],
    }, [this.curve.t, this.curve.v.map((one) => (Number.isFinite(one) ? one : null))], this.element);
    this.line = el("div", { class: "line first", hidden: true });
    this.plot.over.append(this.line);
    this.plot.over.addEventListener("click", (event) => this.context.view.setCursor(this.plot.posToVal(event.offsetX, "x")));
    this.#values();
  }

  #values() {
    if (!this.plot) return;
    const { at } = this, shown = at != null && at >= this.from && at <= this.to, value = shown ? valueAt(this.curve, at) : NaN;
    this.line.hidden = !shown;
    if (shown) this.line.style.transform = `translateX(${this.plot.valToPos(at, "x")}px)`;
    this.context.title(this.title, this.unit ?? "");
    this.context.legend.replaceChildren(el("li", {}, el("span", { class: "value" }, Number.isFinite(value) ? short(value) : "")));
  }
}
