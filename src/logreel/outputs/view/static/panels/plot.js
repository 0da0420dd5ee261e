// Curves over time.

import { el } from "../dom.js";
import { seriesColour } from "../colours.js";
import { before, Curves, nameOf, reached, short, valueAt, wish } from "../series.js";
import { STEPS, length } from "../time.js";
import { sentence } from "./sentence.js";
import { bands, bandsOf, gaps, marks, stripes, stripesOf } from "./plot_draw.js";
import { pointer } from "./plot_pointer.js";
import { derive } from "./derive.js";

export const LEFT = 58;
export const RIGHT = 12;
/** Curves with fewer points than this may cross the window without any. */
const SPARSE = 400;

export function create(context, settings) {
  return new Plot(context, settings);
}

class Plot {
  constructor(context, settings) {
    this.context = context;
    this.list = (settings.series ?? []).map((one) => ({ ...one }));
    this.given = settings.title ?? "";
    this.y = settings.y ?? null;
    this.bands = settings.bands !== false;
    this.fields = new Map();
    this.curves = new Curves(context, (fresh) => this.#arrived(fresh));
    this.offs = [];
  }

  get title() {
    if (this.given) return this.given;
    const topics = [...new Set(this.list.map((one) => one.topic))];
    return topics.length ? topics.slice(0, 2).join(", ") + (topics.length > 2 ? " …" : "") : "Plot";
  }

  mount(element) {
    this.element = element;
    this.hover = null;
    const { bus } = this.context;
    this.offs.push(
      bus.on("hover", (axis) => { this.hover = axis; this.#lines(); }),
      bus.on("cursor2", () => this.#lines()),
      bus.on("theme", () => this.#build()),
      bus.on("ready", (about) => { if (this.curves.ready(about)) this.#ask(); }),
      bus.on("shift", () => this.#ask()),
      bus.on("clock", () => this.plot?.redraw(false)),
      bus.on("overview", () => this.plot?.redraw(false)),
      bus.on("marks", () => this.plot?.redraw(false)),
      bus.on("grown", ({ log }) => { if (this.list.some((one) => (one.log ?? this.context.logs[0].id) === log)) { this.curves.stale(); this.#ask(); } }),
    );
    this.#changed();
  }

  settings() {
    return { title: this.given, series: this.list, ...(this.y ? { y: this.y } : {}), ...(this.bands ? {} : { bands: false }) };
  }

  series() {
    // Of a curve that cannot be had, there is nothing to take.
    const failed = new Set(this.curves.list.filter(({ error }) => error).map(({ series }) => series));
    return this.list.filter((one) => !one.hidden && !failed.has(one)).map((one) => ({ ...one, log: one.log ?? this.context.logs[0].id }));
  }

  /** Whether a curve is in the plot. */
  has(series) {
    const key = (one) => JSON.stringify([one.log ?? this.context.logs[0].id, one.topic, one.field ?? "", one.function ?? "", one.sql ?? "", one.where ?? ""]);
    return this.list.some((one) => key(one) === key(series));
  }

  /** Take a field that was dropped or chosen. */
  drop(series) {
    if (this.has(series)) return this.context.say("This curve is already in the plot.");
    this.list.push({ ...series });
    return this.#changed();
  }

  menu() {
    const toggle = (one) => ({ text: nameOf(one), on: !one.hidden, run: () => { one.hidden = !one.hidden; this.#changed(); } });
    return [
      { text: "Curves" }, ...this.list.map(toggle), null,
      ...this.list.map((one) => ({ text: `Remove ${nameOf(one)}`, run: () => { this.list.splice(this.list.indexOf(one), 1); this.#changed(); } })), null,
      { text: "Add a derived curve…", run: () => derive(this.context, this.list.at(-1), (series) => this.drop(series)) },
      { text: "Modes behind the curves", on: this.bands, run: () => { this.bands = !this.bands; this.plot?.redraw(false); this.context.state.changed(); } },
      { text: "Spectrogram of the first curve", run: () => this.context.plots.add("spectrogram", this.list[0]), off: !this.list.length || Boolean(this.list[0].sql) },
      { text: "First curve over the second (XY)", run: () => this.context.plots.add("xy", { x: this.list[1], y: this.list[0] }), off: this.list.length < 2 },
      { text: "Save as PNG", run: () => this.context.takeaway.png(this) },
      { text: "Save as SVG", run: () => this.context.takeaway.svg(this) },
    ];
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    if (this.plot) this.plot.setSize({ width, height });
    else this.#build();
    this.#lines();
    this.#ask();
  }

  window(from, to) {
    this.from = from;
    this.to = to;
    if (this.plot && this.#isSparse()) this.plot.setData(this.#table(), false);
    this.plot?.setScale("x", { min: from, max: to });
    this.#lines();
    this.#ask();
  }

  cursor(axis) {
    this.at = axis;
    this.#lines();
  }

  dispose() {
    for (const off of this.offs) off();
    this.curves.dispose();
    clearTimeout(this.retry);
    this.plot?.destroy();
  }

  async #changed() {
    this.curves.set(this.list.filter((one) => !one.hidden), this.context.logs[0]?.id);
    this.context.state.changed();
    await Promise.all(this.list.map(async (one) => {
      if (this.fields.has(one) || !one.field) return;
      try { this.fields.set(one, await this.context.data.field(one.log ?? this.context.logs[0].id, one.topic, one.field)); } catch { /* drawn without its unit */ }
    }));
    this.#build();
    this.#ask();
  }

  #ask() {
    if (!this.width || this.from == null) return;
    this.element.classList.add("busy");
    this.curves.ask(this.from, this.to, Math.max(64, Math.round((this.width - LEFT - RIGHT) / 32) * 32));
  }

  /** Draw curves that came; `fresh` says whether any did. */
  #arrived(fresh) {
    if (!this.element?.isConnected) return;
    this.element.classList.toggle("busy", this.curves.wanted !== null);
    if (fresh && this.plot) this.plot.setData(this.#table(), false);
    if (fresh && this.plot) this.plot.setScale("x", { min: this.from, max: this.to });
    this.#sentence();
    this.#lines();
    // An event says when samples become exact; one that was missed is made up for.
    clearTimeout(this.retry);
    if (this.curves.list.some((curve) => curve.sample)) this.retry = setTimeout(() => { this.curves.stale(); this.#ask(); }, 4000);
    this.element.dataset.points = this.curves.list.reduce((sum, curve) => sum + curve.t.length, 0);
    this.element.dataset.count = this.curves.list.reduce((sum, curve) => sum + (curve.count ?? 0), 0);
    this.element.dataset.ready = "yes";
  }

  #sentence() {
    this.element.querySelector(".sentence")?.remove();
    const errors = this.curves.list.filter((curve) => curve.error);
    const none = this.list.length === 0 ? "Drag a field here, or press Ctrl-K and type its name."
      : errors.length && errors.length === this.curves.list.length ? errors[0].error
      : this.curves.list.length && this.curves.list.every((curve) => curve.asked && !curve.t.length) ? "No messages in this window." : "";
    if (none) this.element.append(sentence(none, errors.length > 0));
    // A curve that cannot be had says why beside those that can.
    const { legend } = this.context;
    legend.querySelector(".why")?.remove();
    if (errors.length && !none) legend.append(el("li", { class: "why bad", role: "alert" }, errors.map((curve) => `${nameOf(curve.series)}: ${curve.error}`).join("; ")));
  }

  /** Whether a curve has so few points that its line may cross the window without any. */
  #isSparse() {
    return this.curves.list.some((curve) => curve.t.length < SPARSE || this.#isHeld(curve));
  }

  /** Whether values hold until the next one. */
  #isHeld(curve) {
    const field = this.fields.get(curve.series);
    return Boolean(curve.held || field?.enum || field?.type === "bool");
  }

  /** The end of the log of a curve, to which its last value holds. */
  #end({ log }) {
    return this.context.time.toAxis(log, this.context.log(log).duration);
  }

  #table() {
    const tables = this.curves.list.map((curve) => {
      const { t, v } = curve, x = Array.from(t), y = Array.from(v, (one) => (Number.isFinite(one) ? one : null)), held = this.#isHeld(curve);
      const end = this.#end(curve);
      for (const at of [this.from, Math.min(this.to, end)]) {
        const value = at >= this.from ? reached({ t, v, held }, at, end) : NaN;
        if (!Number.isFinite(value)) continue;
        const place = before(x, at) + 1;
        x.splice(place, 0, at);
        y.splice(place, 0, value);
      }
      return [x, y];
    });
    if (!tables.length) return [[]];
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  /** The rows that get a dot: all where they are few, else those between two gaps; none for the edges of the window. */
  #dots(u, n, show) {
    const [x] = u.data, y = u.data[n], curve = this.curves.list[n - 1], rows = [];
    const next = (row, step) => { let at = row + step; while (at in y && y[at] === undefined) at += step; return y[at] ?? null; };
    for (let row = 0; row < x.length; row++) {
      if (x[row] < this.from || x[row] > this.to || y[row] == null) continue;
      const measured = curve.t[before(curve.t, x[row])] === x[row];
      if (measured && (show || (next(row, -1) === null && next(row, 1) === null))) rows.push(row);
    }
    return rows.length || show ? rows : null;
  }

  /** A state is drawn as stripes, where it is alone in its plot. */
  #isState(curve) {
    return Boolean(this.fields.get(curve.series)?.enum) && this.curves.list.length === 1;
  }

  #build() {
    if (!this.width || !this.element) return;
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const line = colour("--line"), faint = colour("--faint"), font = "11px system-ui, sans-serif";
    const grid = { stroke: line, width: 1 / devicePixelRatio };
    const state = this.curves.list.length === 1 && this.#isState(this.curves.list[0]);
    const range = (u, min, max) => (this.y ? this.y : min == null ? [0, 1] : roomy(min, max));
    const many = this.context.logs.length > 1, linear = uPlot.paths.linear(), stepped = uPlot.paths.stepped({ align: 1 });
    this.plot = new uPlot({
      width: this.width, height: this.height, padding: [6, RIGHT, 6, 0], legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, min: this.from, max: this.to, range: () => [this.from, this.to] }, y: { range } },
      axes: [
        { show: true, size: 0, stroke: faint, grid, ticks: { show: false }, values: () => [], splits: (u, i, min, max, step) => this.#splits(min, max, step), incrs: STEPS, space: 80 },
        { show: true, size: LEFT, stroke: faint, font, gap: 4, grid: state ? { show: false } : grid, ticks: { show: false }, space: 22, values: (u, ticks) => (state ? [] : numbers(ticks)) },
      ],
      series: [{}, ...this.curves.list.map((curve) => {
        return {
          label: nameOf(curve.series), stroke: state ? "transparent" : this.colour(curve.series), width: 1.25,
          dash: many && curve.log !== this.context.logs[0].id ? [6, 4] : undefined,
          paths: (u, n, i0, i1) => (this.#isHeld(curve) ? stepped : linear)(u, n, i0, i1),
          pxAlign: 0,
          points: { show: (u, n, i0, i1) => !state && curve.all && i1 - i0 < this.width / 12, filter: (u, n, show) => (state ? null : this.#dots(u, n, show)), size: 4, fill: this.colour(curve.series) },
        };
      })],
      hooks: {
        // Places are known when it is laid out, which is after this function.
        ready: [() => this.#lines()],
        drawClear: [(u) => { if (this.bands && !state) bands(u, this.context, this.logs()); gaps(u, this.curves.list); }],
        draw: [(u) => { if (state) stripes(u, this.curves.list[0], this.fields.get(this.curves.list[0].series), this.#end(this.curves.list[0])); marks(u, this.context, this.logs()); }],
      },
    }, this.#table(), this.element);
    this.lines = Object.fromEntries(["hover", "first", "second"].map((name) => [name, el("div", { class: `line ${name}`, hidden: true })]));
    this.plot.over.append(...Object.values(this.lines));
    pointer(this.plot, this.context, this);
    this.#legend();
    this.#lines();
  }

  /** The curves as they are drawn: points, colours, and what the legend says of them. */
  drawn() {
    const state = this.curves.list.length === 1 && this.#isState(this.curves.list[0]);
    return this.curves.list.map((curve, i) => ({
      x: this.plot.data[0], y: this.plot.data[i + 1] ?? [], held: this.#isHeld(curve), gaps: curve.gaps ?? [], colour: this.colour(curve.series),
      dash: curve.log !== this.context.logs[0].id ? "6 4" : null,
      dots: this.#dots(this.plot, i + 1, curve.all && curve.t.length < this.width / 12) ?? [],
      stripes: state ? stripesOf(curve, this.fields.get(curve.series), this.#end(curve)) : null,
      text: [...(this.context.legend.children[i]?.children ?? [])].map((one) => one.textContent).filter(Boolean).join(" ") || nameOf(curve.series),
    }));
  }

  /** What lies behind the curves. */
  behind() {
    return this.bands && !(this.curves.list.length === 1 && this.#isState(this.curves.list[0])) ? bandsOf(this.context, this.logs()) : [];
  }

  logs() {
    const ids = new Set(this.list.map((one) => one.log ?? this.context.logs[0].id));
    return this.context.logs.filter(({ id }) => ids.has(id) || !ids.size);
  }

  #splits(min, max, step) {
    const zero = this.context.time.zero(), ticks = [];
    for (let at = Math.ceil((min - zero) / step) * step + zero; at <= max; at += step) ticks.push(at);
    return ticks;
  }

  colour(series) {
    // The same field of another log has the same colour, and is dashed.
    const keys = new Set(this.list.map((one) => JSON.stringify(wish(one))));
    return seriesColour([...keys].indexOf(JSON.stringify(wish(series))));
  }

  /** The unit that all curves have, or the empty string. */
  get unit() {
    const units = [...new Set(this.curves.list.map((curve) => curve.unit || this.fields.get(curve.series)?.unit || ""))];
    return units.length === 1 ? units[0] : "";
  }

  #legend() {
    this.context.legend.replaceChildren(...this.curves.list.map((curve) => {
      const mark = el("i", { class: curve.log !== this.context.logs[0].id ? "other" : "" });
      mark.style.background = mark.className ? "none" : this.colour(curve.series);
      mark.style.borderColor = this.colour(curve.series);
      const unit = curve.unit || this.fields.get(curve.series)?.unit || "";
      const text = [`${curve.series.topic}${curve.series.field ? `.${curve.series.field}` : ""}`, curve.series.sql, unit && `[${unit}]`, this.fields.get(curve.series)?.text].filter(Boolean).join("\n");
      return el("li", { title: text }, mark, el("span", { class: "name" }, this.#short(curve.series)), el("span", { class: "value" }));
    }));
    this.context.title(this.title, this.unit);
    this.#sentence();
  }

  /** The name of a curve in the legend: without the topic where the title says it. */
  #short(series) {
    const name = nameOf(series);
    return name === `${series.topic}.${series.field}` && this.title.startsWith(series.topic) ? series.field : name;
  }

  /** Put the cursors where they are, and the values beside the names. */
  #lines() {
    if (!this.plot || this.from == null) return;
    const { cursor2 } = this.context.view, at = this.hover ?? this.at;
    const place = (line, axis) => {
      const shown = axis != null && axis >= this.from && axis <= this.to;
      line.hidden = !shown;
      if (shown) line.style.transform = `translateX(${this.plot.valToPos(axis, "x")}px)`;
    };
    place(this.lines.hover, this.hover);
    place(this.lines.first, this.at);
    place(this.lines.second, cursor2);
    const common = this.unit;
    if (common !== this.said) { this.said = common; this.context.title(this.title, common); }
    [...this.context.legend.children].forEach((item, i) => {
      const curve = this.curves.list[i], field = curve && this.fields.get(curve.series);
      if (!curve || !item.lastElementChild) return;
      const value = valueAt(curve, at), unit = common ? "" : curve.unit || field?.unit || "";
      const name = field?.enum?.[String(value)];
      let text = at == null || Number.isNaN(value) ? (unit && `[${unit}]`) : `${name ?? short(value)}${unit ? ` ${unit}` : ""}`;
      if (cursor2 != null && at != null && !name) {
        const other = valueAt(curve, cursor2);
        if (Number.isFinite(other) && Number.isFinite(value)) text += `  Δ ${short(other - value)}`;
      }
      if (curve.error) text = "not available";
      item.lastChild.textContent = text;
      item.lastChild.classList.toggle("faint", text.startsWith("["));
    });
    this.element.dataset.cursor = at == null ? "" : String(at);
    this.element.dataset.delta = cursor2 != null && this.at != null ? length(cursor2 - this.at) : "";
  }
}

/** A range with some room above and below; a curve that never changes is in its middle. */
function roomy(low, high) {
  const room = (high - low) * 0.08 || Math.max(Math.abs(high) * 0.02, 0.5);
  return [low - room, high + room];
}

/** Write the numbers of an axis, all with the decimals that the distance between them needs. */
function numbers(ticks) {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1, most = Math.max(...ticks.map(Math.abs));
  if (most >= 1e7 || most < 1e-4) return ticks.map((tick) => (tick === 0 ? "0" : tick.toExponential(Math.min(6, Math.max(1, Math.ceil(Math.log10(most / step)))))));
  let digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  // Steps such as 0.025 need one more.
  if (digits < 9 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return ticks.map((tick) => tick.toFixed(digits));
}
