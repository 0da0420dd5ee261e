// Curves over time.

import { el } from "../dom.js";
import { colourOf, dashOf, seriesColour } from "../colours.js";
import { Curves, nameOf, wish } from "../series.js";
import { STEPS, length } from "../time.js";
import { sentence } from "./sentence.js";
import { axesDialog, isLimits, moments, numbers, stampOf, yAxis, yRange } from "./plot_axes.js";
import { bands, bandsOf, gaps, marks, stripes, stripesOf, units } from "./plot_draw.js";
import { legendItems, legendValues, toggle } from "./plot_legend.js";
import { pointer } from "./plot_pointer.js";
import { dots, points } from "./plot_points.js";
import { Statistics } from "./plot_statistics.js";
import { isStamp } from "./plot_values.js";
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
    // Limits {y, y2: [low, high]} of the axis at the left and at the right, null for what the values say; and {y, y2: true}.
    this.limits = { y: isLimits(settings.y) ? settings.y : null, y2: isLimits(settings.y2) ? settings.y2 : null };
    this.log = { y: Boolean(settings.log?.y), y2: Boolean(settings.log?.y2) };
    this.statistics = new Statistics(context, this, Boolean(settings.statistics));
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
      bus.on("cursor2", () => { this.#lines(); this.statistics.later(); }),
      bus.on("theme", () => this.#build()),
      bus.on("ready", (about) => { if (this.curves.ready(about)) this.#ask(); }),
      bus.on("shift", () => this.#ask()),
      bus.on("clock", () => this.plot?.redraw(false)),
      bus.on("overview", () => this.plot?.redraw(false)),
      bus.on("marks", () => this.plot?.redraw(false)), bus.on("notes", () => this.plot?.redraw(false)),
      bus.on("grown", ({ log }) => { if (this.list.some((one) => (one.log ?? this.context.logs[0].id) === log)) { this.curves.stale(); this.#ask(); } }),
    );
    this.#changed();
  }

  settings() {
    const { y, y2 } = this.limits;
    return {
      title: this.given, series: this.list, ...(y ? { y } : {}), ...(y2 ? { y2 } : {}), ...(this.log.y || this.log.y2 ? { log: this.log } : {}),
      ...(this.statistics.on ? { statistics: true } : {}), ...(this.bands ? {} : { bands: false }),
    };
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
    const toggle = (one) => ({ text: nameOf(one), on: !one.hidden, run: () => this.hide(one) });
    return [
      { text: "Curves" }, ...this.list.map(toggle), null,
      ...this.list.map((one) => ({ text: `Remove ${nameOf(one)}`, run: () => { this.list.splice(this.list.indexOf(one), 1); this.#changed(); } })), null,
      { text: "Axes and limits…", run: () => axesDialog(this), off: !this.list.length },
      { text: "Fit the vertical axes", run: () => { this.setLimits("y", null); this.setLimits("y2", null); }, off: !this.limits.y && !this.limits.y2 },
      { text: "Statistics", on: this.statistics.on, run: () => { this.statistics.turn(); this.context.state.changed(); } },
      { text: "Add a derived curve…", run: () => derive(this.context, this.list.at(-1), (series) => this.drop(series)) },
      { text: "Modes behind the curves", on: this.bands, run: () => { this.bands = !this.bands; this.plot?.redraw(false); this.context.state.changed(); } },
      { text: "Spectrogram of the first curve", run: () => this.context.plots.add("spectrogram", this.list[0]), off: !this.list.length || Boolean(this.list[0].sql) },
      { text: "First curve over the second (XY)", run: () => this.context.plots.add("xy", { x: this.list[1], y: this.list[0] }), off: this.list.length < 2 },
      { text: "Save as PNG", run: () => this.context.takeaway.png(this) },
      { text: "Save as SVG", run: () => this.context.takeaway.svg(this) },
    ];
  }

  /** Hide a curve, or show it. */
  hide(series, alone = false) {
    toggle(this.list, series, alone);
    const at = this.list.indexOf(series), focused = this.context.legend.contains(document.activeElement);
    this.#changed();
    this.#legend();
    if (focused) this.context.legend.children[at]?.querySelector("button")?.focus();
  }

  /** Set the limits of an axis, "y" or "y2"; null for what the values say. */
  setLimits(key, limits) {
    this.limits[key] = limits;
    this.context.state.changed();
    if (!this.plot) return;
    this.plot.setScale("x", { min: this.from, max: this.to });
  }

  /** Take what the dialog about the axes says of them, and of the axis of each curve. */
  setAxes({ limits, log, right }) {
    this.limits = limits;
    this.log = log;
    this.list.forEach((one, i) => { if (right[i]) one.axis = 2; else delete one.axis; });
    this.context.state.changed();
    this.#build();
  }

  /** The scale of a curve: "y", or "y2" of those at the right. */
  scaleOf(series) {
    return series.axis === 2 && this.list.some((one) => one.axis !== 2 && !one.hidden) ? "y2" : "y";
  }

  #tell() {
    for (const key of ["y", "y2"]) {
      const { min, max } = this.plot.scales[key] ?? {};
      this.element.dataset[key] = min == null ? "" : `${min} ${max}`;
    }
  }

  resize(width, height) {
    this.width = width;
    this.whole = height;
    this.height = Math.max(60, height - this.statistics.height);
    if (this.plot) this.plot.setSize({ width, height: this.height });
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
    this.statistics.later();
  }

  cursor(axis) {
    this.at = axis;
    this.#lines();
    this.statistics.later();
  }

  dispose() {
    for (const off of this.offs) off();
    this.curves.dispose();
    this.statistics.dispose();
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
    this.statistics.later();
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
    const none = this.list.length && this.list.every((one) => one.hidden) ? "All curves are hidden: click on a name above to show one."
      : this.list.length === 0 ? "Drag a field here, or press Ctrl-K and type its name."
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
    const tables = this.curves.list.map((curve) => points(curve, {
      // A logarithm is of numbers above 0 only.
      from: this.from, to: this.to, end: this.#end(curve), held: this.#isHeld(curve), least: this.log[this.scaleOf(curve.series)] ? Number.MIN_VALUE : -Infinity,
    }));
    if (!tables.length) return [[]];
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  #dots(u, n, show) {
    return dots(u.data[0], u.data[n], this.curves.list[n - 1], { from: this.from, to: this.to, show });
  }

  /** Whether all curves are states, which are drawn as stripes below each other. */
  #isStates() {
    const isState = ({ series }) => !series.function && !series.sql && (this.fields.get(series)?.enum || this.fields.get(series)?.type === "bool");
    return this.curves.list.length > 0 && this.curves.list.every(isState);
  }

  /** The stripes of each curve: [{name, stripes}]. */
  #lanes() {
    return this.curves.list.map((curve) => ({ name: curve.series.label || curve.series.field, stripes: stripesOf(curve, this.fields.get(curve.series), this.#end(curve)) }));
  }

  #build() {
    if (!this.width || !this.element) return;
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const line = colour("--line"), faint = colour("--faint"), font = "11px system-ui, sans-serif";
    const grid = { stroke: line, width: 1 / devicePixelRatio };
    const state = this.#isStates(), scales = [...new Set(["y", ...this.curves.list.map(({ series }) => this.scaleOf(series))])];
    const scale = (key) => [key, { range: (u, min, max) => yRange(this.limits[key], this.log[key], min, max), ...(this.log[key] ? { distr: 3 } : {}) }];
    // The axis at the right stands inside, so that all plots have the same time below each other.
    const inside = { side: 1, size: 0, gap: -4, align: 2, grid: { show: false }, space: 36 };
    const vertical = (key) => ({
      show: true, scale: key, size: LEFT, stroke: faint, font, gap: 4, grid: state ? { show: false } : grid, ticks: { show: false }, space: 22, ...(key === "y2" ? inside : {}),
      values: (u, ticks) => (state ? [] : numbers(ticks, { log: this.log[key], stamp: stampOf(this, key) })),
    });
    const linear = uPlot.paths.linear(), stepped = uPlot.paths.stepped({ align: 1 });
    this.plot = new uPlot({
      width: this.width, height: this.height, padding: [6, RIGHT, 6, 0], legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, min: this.from, max: this.to, range: () => [this.from, this.to] }, ...Object.fromEntries(scales.map(scale)) },
      axes: [
        { show: true, size: 0, stroke: faint, grid, ticks: { show: false }, values: () => [], splits: (u, i, min, max, step) => moments(this.context.time.zero(), min, max, step), incrs: STEPS, space: 80 },
        ...scales.map(vertical),
      ],
      series: [{}, ...this.curves.list.map((curve) => {
        return {
          label: nameOf(curve.series), scale: this.scaleOf(curve.series), stroke: state ? "transparent" : this.colour(curve.series), width: 1.25,
          dash: this.dash(curve.series) ?? undefined,
          paths: (u, n, i0, i1) => (this.#isHeld(curve) ? stepped : linear)(u, n, i0, i1),
          pxAlign: 0,
          points: { show: (u, n, i0, i1) => !state && curve.all && i1 - i0 < this.width / 12, filter: (u, n, show) => (state ? null : this.#dots(u, n, show)), size: 4, fill: this.colour(curve.series) },
        };
      })],
      hooks: {
        ready: [() => this.#lines()],
        setScale: [() => this.#tell()],
        drawClear: [(u) => { if (this.bands && !state) bands(u, this.context, this.logs()); gaps(u, this.curves.list); }],
        drawAxes: [(u) => { if (this.bands && !state) bands(u, this.context, this.logs(), true); }],
        draw: [(u) => { if (state) stripes(u, this.#lanes()); else units(u, scales.map((key) => [key, this.unitsOf(key)])); marks(u, this.context, this.logs()); }],
      },
    }, this.#table(), this.element);
    for (const [name, text] of [["role", "img"], ["aria-label", `Curves: ${this.curves.list.map(({ series }) => nameOf(series)).join(", ") || "none"}`]]) this.plot.ctx.canvas.setAttribute(name, text);
    this.lines = Object.fromEntries(["hover", "first", "second"].map((name) => [name, el("div", { class: `line ${name}`, hidden: true })]));
    this.plot.over.append(...Object.values(this.lines));
    pointer(this.plot, this.context, this);
    if (!state) for (const key of scales) yAxis(this.plot, key, this, LEFT);
    this.element.dataset.lanes = state ? this.curves.list.length : 0;
    this.#legend();
    this.#lines();
  }

  /** The curves as they are drawn: points, colours, and what the legend says of them. */
  drawn() {
    const lanes = this.#isStates() ? this.#lanes() : null;
    return this.curves.list.map((curve, i) => ({
      scale: this.scaleOf(curve.series), lane: i, name: curve.series.label || curve.series.field, x: this.plot.data[0], y: this.plot.data[i + 1] ?? [], held: this.#isHeld(curve), gaps: curve.gaps ?? [], colour: this.colour(curve.series),
      dash: this.dash(curve.series)?.join(" ") ?? null,
      dots: this.#dots(this.plot, i + 1, curve.all && curve.t.length < this.width / 12) ?? [],
      stripes: lanes?.[i].stripes ?? null,
      text: [...(this.context.legend.children[this.list.indexOf(curve.series)]?.children ?? [])].map((one) => one.textContent).filter(Boolean).join(" ") || nameOf(curve.series),
    }));
  }

  /** What lies behind the curves. */
  behind() {
    return this.bands && !this.#isStates() ? bandsOf(this.context, this.logs()) : [];
  }

  logs() {
    const ids = new Set(this.list.map((one) => one.log ?? this.context.logs[0].id));
    return this.context.logs.filter(({ id }) => ids.has(id) || !ids.size);
  }

  colour(series) {
    const keys = new Set(this.list.map((one) => JSON.stringify(wish(one))));
    return seriesColour(colourOf([...keys].indexOf(JSON.stringify(wish(series))), this.context.logs, series));
  }

  /** The lengths of strokes and gaps of a curve: those of further logs are dashed. */
  dash(series) {
    return dashOf(this.context.logs, series);
  }

  /** The kind of time that a series is: "utc", "length" of a number of ns, "us", "ms", "s"; or null. */
  stamp(series) {
    const isUlog = this.context.log(series.log ?? this.context.logs[0].id).format === "ulog";
    // The definitions in a ULog state no units; its stamps count microseconds.
    return series.function || series.sql ? null : isStamp(this.fields.get(series), isUlog ? "us" : "");
  }

  /** The units of the curves of an axis, as text. */
  unitsOf(key) {
    const own = this.curves.list.filter(({ series }) => this.scaleOf(series) === key);
    return [...new Set(own.map((curve) => (this.stamp(curve.series) === "utc" ? "UTC" : this.stamp(curve.series) ? "" : curve.unit || this.fields.get(curve.series)?.unit || "")))].filter(Boolean).join(", ");
  }

  /** The unit that all curves have, or the empty string. */
  get unit() {
    const units = [...new Set(this.curves.list.map((curve) => curve.unit || this.fields.get(curve.series)?.unit || ""))];
    return units.length === 1 ? units[0] : "";
  }

  #legend() {
    this.context.legend.replaceChildren(...legendItems(this));
    this.context.title(this.title, this.unit);
    this.#sentence();
  }

  /** The name of a curve in the legend: without the topic where the title says it. */
  shortName(series) {
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
    legendValues(this, at);
    this.element.dataset.cursor = at == null ? "" : String(at);
    this.element.dataset.delta = cursor2 != null && this.at != null ? length(cursor2 - this.at) : "";
  }
}
