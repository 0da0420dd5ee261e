// Several logs over each other: how their clocks are aligned, and their offsets.

import { button, el } from "../dom.js";
import { length } from "../time.js";

const ALIGN = { start: "by their starts", utc: "by UTC", armed: "by arming" };
const FINE = 10e6, COARSE = 1e9;

export function create(context) {
  return new Compare(context);
}

class Compare {
  constructor(context) {
    this.context = context;
    this.title = "Compare logs";
  }

  async mount(element) {
    this.element = element;
    element.classList.add("scroll");
    const { bus, logs, time, data } = this.context;
    this.context.title(this.title);
    this.offs = [bus.on("shift", () => this.#draw())];
    for (const { id } of logs) {
      const overview = await data.overview(id).catch(() => null), first = overview?.bands.find(({ kind }) => kind === "armed");
      if (first) time.armed[id] = first.from;
    }
    this.#draw();
    element.dataset.ready = "yes";
  }

  settings() {
    return {};
  }

  dispose() {
    for (const off of this.offs) off();
  }

  #draw() {
    const { logs, time, state } = this.context;
    const align = (value) => { time.setAlign(value, {}); this.context.view.all(); state.changed(); };
    const possible = {
      start: true,
      utc: logs.every((log) => log.utc_shift != null),
      armed: logs.every((log) => log.id in time.armed),
    };
    const choice = el("select", { "aria-label": "Alignment", on: { change: (event) => align(event.target.value) } },
      Object.entries(ALIGN).map(([value, text]) => el("option", { value, selected: value === time.align, disabled: !possible[value] }, text)));
    const rows = logs.map((log, i) => {
      const offset = time.offsets[log.id] ?? 0;
      const set = (ns) => { time.setAlign(time.align, { ...time.offsets, [log.id]: Math.round(ns) }); state.changed(); };
      const input = el("input", { type: "number", step: "any", value: offset / 1e9, "aria-label": `Offset of ${log.name} in seconds`, on: { change: (event) => set(Number(event.target.value) * 1e9) } });
      input.style.width = "110px";
      return el("tr", {}, el("td", {}, log.name), el("td", { class: "number" }, length(log.duration)), el("td", { class: "number" }, `${time.shift(log.id) < 0 ? "−" : "+"}${length(Math.abs(time.shift(log.id)))}`),
        el("td", {}, i === 0 ? el("span", { class: "faint" }, "reference") : [button("«", "Earlier by 1 s", () => set(offset - COARSE)), button("‹", "Earlier by 10 ms", () => set(offset - FINE)), input, " s", button("›", "Later by 10 ms", () => set(offset + FINE)), button("»", "Later by 1 s", () => set(offset + COARSE))]));
    });
    this.element.replaceChildren(
      el("div", { class: "tool" }, el("span", {}, "Align the logs"), choice,
        button("Same curves of all logs", "Add to each plot the same fields of the other logs", () => overlay(this.context), { class: "main" }),
        el("span", { class: "faint" }, "or drag a log's row in the strip of time with Alt held")),
      el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ["Log", "Length", "Shift", "Offset"].map((text, i) => el("th", { class: i === 1 || i === 2 ? "number" : "" }, text)))), el("tbody", {}, rows)));
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
