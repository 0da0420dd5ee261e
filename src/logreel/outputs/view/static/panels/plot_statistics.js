// Statistics of the curves of a plot: of the window, and between the cursors. The server works them out of all values.

import { el } from "../dom.js";
import { wish } from "../series.js";
import { length } from "../time.js";
import { named } from "./plot_values.js";

const NAMES = ["min", "mean", "max", "rms", "count"];
/** ms without a motion after which is asked, and the greatest part of the height of a plot for the table. */
const QUIET = 120, PART = 0.5;

export class Statistics {
  /**
   * @param {Object} context
   * @param {Object} panel the plot
   * @param {boolean} on whether they are shown
   */
  constructor(context, panel, on) {
    this.context = context;
    this.panel = panel;
    this.on = on;
    this.rows = [];
    this.table = el("div", { class: "statistics", hidden: true, tabindex: 0, role: "region", "aria-label": "Statistics" });
    this.height = 0;
  }

  turn() {
    this.on = !this.on;
    this.rows = [];
    this.#draw();
    this.later();
  }

  dispose() {
    clearTimeout(this.timer);
    this.stop?.abort();
  }

  /** Ask when nothing moves any more. */
  later() {
    clearTimeout(this.timer);
    if (this.on) this.timer = setTimeout(() => this.#ask(), QUIET);
  }

  /** The spans that are described: [{name, from, to}] on the axis, ends included. */
  #spans() {
    const { cursor, cursor2 } = this.context.view, { from, to } = this.panel, spans = [{ name: "visible", from, to }];
    if (cursor != null && cursor2 != null) spans.push({ name: `cursors, ${length(Math.abs(cursor2 - cursor))}`, from: Math.min(cursor, cursor2), to: Math.max(cursor, cursor2) });
    return spans;
  }

  async #ask() {
    const { panel, context } = this, { api, time } = context;
    if (panel.from == null || !panel.element?.isConnected) return;
    this.stop?.abort();
    const stop = new AbortController();
    this.stop = stop;
    const shown = panel.list.filter((one) => !one.hidden), logOf = (one) => one.log ?? context.logs[0].id, rows = [];
    try {
      for (const span of this.#spans()) {
        const found = new Map();
        await Promise.all([...new Set(shown.map(logOf))].map(async (log) => {
          const own = shown.filter((one) => logOf(one) === log);
          const ends = { from: Math.ceil(time.toLog(log, span.from)), to: Math.floor(time.toLog(log, span.to)) + 1 };
          const answers = await api.get(`/api/logs/${log}/statistics`, { s: own.map((one) => JSON.stringify(wish(one))), ...ends }, { signal: stop.signal });
          own.forEach((one, i) => found.set(one, answers[i]));
        }));
        for (const one of shown) rows.push({ series: one, span: span.name, ...found.get(one) });
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      rows.splice(0, rows.length, { span: "", error: error.message });
    }
    if (stop.signal.aborted || !this.on) return;
    this.rows = rows;
    this.#draw();
  }

  /** The cells of a row as texts: name, span, values. */
  #cells({ series, span, error, unit, ...values }) {
    const stamp = series && this.panel.stamp(series), tail = unit && !stamp ? ` ${unit}` : "";
    const text = (name) => (name === "count" ? String(values.count ?? "") : values[name] == null ? "–" : named(values[name], stamp) + tail);
    return [series ? this.panel.shortName(series) : "", span, ...(error ? [error] : NAMES.map(text))];
  }

  /** Lines of text for a drawing. */
  lines() {
    return this.on ? this.rows.map((row) => { const [name, span, ...values] = this.#cells(row); return `${name} (${span}): ${row.error ? values[0] : NAMES.map((one, i) => `${one} ${values[i]}`).join("  ")}`; }) : [];
  }

  #draw() {
    const { panel } = this;
    this.table.hidden = !this.on || !this.rows.length;
    if (!this.table.isConnected && panel.element) panel.element.prepend(this.table);
    this.table.replaceChildren(el("table", {},
      el("thead", {}, el("tr", {}, ["curve", "span", ...NAMES].map((name, i) => el("th", { class: i > 1 ? "number" : "", scope: "col" }, name)))),
      el("tbody", {}, this.rows.map((row) => el("tr", { dataset: { span: row.span.split(",")[0] } }, this.#cells(row).map((text, i) => {
        const cell = el("td", { class: i > 1 && !row.error ? "number" : "", title: text, colspan: row.error && i === 2 ? NAMES.length : null }, text);
        // What is written is rounded; the exact value is here.
        if (i > 1 && !row.error) cell.dataset[NAMES[i - 2]] = row[NAMES[i - 2]] ?? "";
        return cell;
      }))))));
    this.table.style.maxHeight = `${Math.round((panel.whole ?? 0) * PART)}px`;
    const height = this.table.hidden ? 0 : this.table.offsetHeight;
    if (height === this.height) return;
    this.height = height;
    if (panel.width) panel.resize(panel.width, panel.whole);
  }
}
