// Several logs over each other: what each is, how their clocks are aligned, and where they differ.

import { button, el, plain } from "../dom.js";
import { startOf } from "../head.js";
import { short, wish } from "../series.js";
import { EVENT, length } from "../time.js";
import { sentence } from "./sentence.js";

const ALIGN = { start: "by their starts", utc: "by UTC", armed: "by arming", air: "by take-off" };
const FINE = 10e6, COARSE = 1e9;
/** Fields of which statistics are listed at once. */
const FIELDS = 100;

export function create(context) {
  return new Compare(context);
}

class Compare {
  constructor(context) {
    this.context = context;
    this.title = "Compare logs";
    // Of more than two logs, which ones are subtracted from which.
    this.of = "";
    this.minus = context.logs[0].id;
    this.statistics = new Statistics(context);
  }

  async mount(element) {
    this.element = element;
    element.classList.add("scroll", "compare");
    const { bus, logs, data } = this.context;
    this.context.title?.(this.title);
    this.offs = [bus.on("shift", () => this.#draw()), bus.on("overview", () => this.#draw())];
    await Promise.all(logs.map(({ id }) => data.overview(id).catch(() => null)));
    this.#draw();
    element.dataset.ready = "yes";
    this.summaries = await Promise.all(logs.map(({ id }) => data.findings(id).catch(() => ({ summary: [] }))));
    if (!this.gone) this.#draw();
  }

  settings() {
    return {};
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs) off();
  }

  #draw() {
    const { logs, time, state } = this.context;
    const align = (value) => { time.setAlign(value, {}); this.context.view.all(); state.changed(); };
    const all = (name) => logs.every(({ id }) => time.anchor(id, name) != null);
    const possible = { start: true, utc: logs.every((log) => log.utc_shift != null), armed: all("armed"), air: all("air") };
    const option = (value, text) => el("option", { value, selected: value === time.align, disabled: possible[value] === false }, text);
    const events = time.events();
    const choice = el("select", { "aria-label": "Alignment", on: { change: (event) => align(event.target.value) } },
      Object.entries(ALIGN).map(([value, text]) => option(value, text)),
      events.length ? el("optgroup", { label: "by the first text" }, events.map((text) => option(`${EVENT}${text}`, plain(text)))) : null);
    const rows = logs.flatMap((log, i) => {
      const offset = time.offsets[log.id] ?? 0, shift = time.shift(log.id);
      const set = (ns) => { time.setAlign(time.align, { ...time.offsets, [log.id]: Math.round(ns) }); state.changed(); };
      const input = el("input", { type: "number", step: "any", value: offset / 1e9, "aria-label": `Offset of ${log.name} in seconds`, on: { change: (event) => set(Number(event.target.value) * 1e9) } });
      input.style.width = "110px";
      return [el("tr", {}, el("td", { title: log.name }, log.name), el("td", {}, startOf(log)), el("td", { class: "number" }, length(log.duration)), el("td", { class: "number" }, shift ? `${shift < 0 ? "−" : "+"}${length(Math.abs(shift))}` : "0 s")),
        i === 0 ? [] : el("tr", {}, el("td", { class: "faint" }, "by hand"), el("td", { colspan: 3 }, [button("«", "Earlier by 1 s", () => set(offset - COARSE)), button("‹", "Earlier by 10 ms", () => set(offset - FINE)), input, " s", button("›", "Later by 10 ms", () => set(offset + FINE)), button("»", "Later by 1 s", () => set(offset + COARSE))]))];
    });
    this.element.replaceChildren(
      el("div", { class: "tool" }, el("span", {}, "Align the logs"), choice,
        button("Same curves of all logs", "Add to each plot the same fields of the other logs", () => overlay(this.context), { class: "main" }),
        button("Differences", "Show how far the curves of the chosen plot are apart", () => this.#differences()), logs.length > 2 ? this.#which() : null),
      table(["Log", "Start", "Length", "Shift"], rows.flat(), [2, 3]),
      el("p", { class: "faint small" }, "A log's row in the strip of time can also be dragged, with Alt held."),
      ...this.#facts(), this.statistics.element);
  }

  /** Choose the logs whose differences are shown. */
  #which() {
    const { logs } = this.context;
    const choice = (label, chosen, options, set) => el("select", { "aria-label": label, on: { change: (event) => { set(event.target.value); this.#draw(); } } }, options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)));
    const others = logs.filter(({ id }) => id !== this.minus).map(({ id, name }) => [id, name]);
    return [choice("Logs whose differences are shown", this.of, [["", "all others"], ...others], (id) => { this.of = id; }), "minus",
      choice("Log that is subtracted", this.minus, logs.map(({ id, name }) => [id, name]), (id) => { this.minus = id; if (this.of === id) this.of = ""; })];
  }

  /** Add a plot of the differences of each curve of the chosen plot. */
  async #differences() {
    const { plots, logs, say } = this.context, own = new Map();
    for (const one of plots.chosen?.panel?.series?.() ?? []) if (!one.sql) own.set(JSON.stringify(wish(one)), { ...wish(one), ...(one.label ? { label: one.label } : {}), ...(one.unit ? { unit: one.unit } : {}) });
    if (!own.size) return say("Choose a plot with curves first.");
    const of = this.of ? [this.of] : logs.filter(({ id }) => id !== this.minus).map(({ id }) => id);
    for (const series of own.values()) await plots.add("difference", { series, logs: of, other: this.minus });
    return undefined;
  }

  /** What summaries say of each log, side by side: what differs comes first. */
  #facts() {
    const { logs } = this.context, facts = new Map();
    (this.summaries ?? []).forEach(({ summary }, i) => {
      for (const { title, facts: own } of summary) {
        for (const [label, text] of own) {
          const key = `${title}\n${label}`;
          if (!facts.has(key)) facts.set(key, { title, label, texts: logs.map(() => "") });
          facts.get(key).texts[i] = text;
        }
      }
    });
    if (!facts.size) return [];
    const differs = ({ texts }) => new Set(texts).size > 1;
    const rows = [...facts.values()].sort((a, b) => differs(b) - differs(a)).map((one) => el("tr", { class: differs(one) ? "differs" : "faint" },
      el("td", { class: "faint" }, one.title), el("td", { title: one.label }, one.label), one.texts.map((text) => el("td", { class: "wrap" }, plain(text)))));
    return [el("h3", {}, "Side by side"), table(["", "", ...logs.map(({ name }) => name)], rows, [], "Summaries side by side")];
  }
}

function table(heads, rows, numbers, label = null) {
  return el("table", { class: "plain", "aria-label": label }, el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { class: numbers.includes(i) ? "number" : "" }, text)))), el("tbody", {}, rows));
}

/** Statistics of all fields of each log, the most different first; the server works them out when they are opened. */
class Statistics {
  constructor(context) {
    this.context = context;
    this.body = el("div", {});
    this.element = el("details", { class: "fields", on: { toggle: () => { if (this.element.open) this.#load(); } } }, el("summary", {}, "Statistics of all fields, the most different first"), this.body);
  }

  async #load() {
    if (this.asked) return;
    this.asked = true;
    this.body.replaceChildren(sentence("All fields of all logs are read …"));
    try {
      this.answer = await this.context.api.get("/api/fields");
    } catch (error) {
      this.asked = false;
      return this.body.replaceChildren(sentence(error.message, true));
    }
    this.list = el("div", {});
    const search = el("input", { type: "search", placeholder: "Find a field …", "aria-label": "Find a field by its statistics", on: { input: () => this.#draw(search.value) } });
    this.body.replaceChildren(el("div", { class: "tool" }, search), this.list);
    this.#draw("");
    this.element.dataset.ready = "yes";
    return undefined;
  }

  #draw(text) {
    const { logs } = this.context, { fields, statistics, more } = this.answer, words = text.toLowerCase().split(/\s+/);
    const found = fields.filter(({ topic, field }) => words.every((word) => `${topic}.${field}`.toLowerCase().includes(word)));
    const rows = found.slice(0, FIELDS).flatMap((one) => [
      el("tr", { class: one.distance ? "differs" : "faint" }, el("th", { scope: "rowgroup", colspan: statistics.length + 1 },
        button(`${one.topic}.${one.field}`, "Plot this field of all logs", () => this.#plot(one), { class: "link" }),
        one.distance == null ? null : el("span", { class: "faint", title: "Greatest distance of the statistics, of the range of all values" }, ` ${(100 * one.distance).toFixed(one.distance < 0.1 ? 1 : 0)} % apart`))),
      ...logs.map(({ name }, i) => el("tr", {}, el("td", { class: "faint", title: name }, name),
        one.logs[i] ? one.logs[i].map((value) => el("td", { class: "number" }, value == null ? "" : short(value))) : el("td", { class: "faint", colspan: statistics.length }, "does not have it"))),
    ]);
    const rest = found.length - Math.min(found.length, FIELDS) + more;
    this.list.replaceChildren(rows.length ? table(["", ...statistics], rows, statistics.map((_, i) => i + 1), "Statistics side by side") : sentence("No field has such a name."),
      rest ? el("p", { class: "faint small" }, `${rest} more fields, less different: search for their names.`) : "");
  }

  #plot({ topic, field, logs: has }) {
    const { plots, logs } = this.context;
    plots.add("plot", { series: logs.flatMap(({ id }, i) => (has[i] ? [{ topic, field, ...(i ? { log: id } : {}) }] : [])) });
  }
}

/** Add to each plot the same fields of the other logs. */
export async function overlay(context) {
  const { plots, logs, data } = context;
  const topics = new Map();
  for (const { id } of logs) topics.set(id, new Set((await data.channels(id)).map(({ topic }) => topic)));
  for (const { kind, mount } of plots.frames) {
    if (kind !== "plot") continue;
    const panel = await mount();
    for (const one of panel.series()) {
      for (const { id } of logs) if (!panel.has({ ...one, log: id }) && topics.get(id).has(one.topic)) panel.drop({ ...one, log: id });
    }
  }
}
