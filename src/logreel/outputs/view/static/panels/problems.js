// What is wrong with the log, and where.

import { el } from "../dom.js";
import { sentence } from "./sentence.js";

export function create(context) {
  return new Problems(context);
}

class Problems {
  constructor(context) {
    this.title = "Problems";
    this.context = context;
  }

  async mount(element) {
    this.element = element;
    this.off = this.context.bus.on("clock", () => this.#load());
    await this.#load();
  }

  settings() {
    return {};
  }

  dispose() {
    this.off();
  }

  async #load() {
    const { api, logs, time, view } = this.context;
    const lists = await Promise.all(logs.map(async ({ id, name }) => (await api.get(`/api/logs/${id}/problems`)).map((one) => ({ ...one, log: id, name }))));
    const rows = lists.flat().map((one) => {
      const from = one.from == null ? null : time.toAxis(one.log, one.from), to = one.to == null ? from : time.toAxis(one.log, one.to);
      const go = () => {
        const margin = Math.max(1e9, (to - from) * 0.5);
        view.setWindow(from - margin, to + margin);
        view.setCursor(from);
      };
      const place = from == null ? el("span", { class: "faint" }, one.offset == null ? "" : `byte ${one.offset.toLocaleString("en")}`)
        : el("button", { type: "button", title: "Show this place", on: { click: go } }, time.full(from));
      return el("tr", {}, el("td", { class: one.lost ? "bad" : "warn" }, one.code), el("td", { class: "wrap" }, one.text, logs.length > 1 ? el("span", { class: "faint small" }, ` ${one.name}`) : null), el("td", { class: "number" }, place));
    });
    this.element.replaceChildren(rows.length
      ? el("div", { class: "scroll", tabindex: 0, "aria-label": "Problems" }, el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ["Code", "What was found", "Where"].map((text) => el("th", {}, text)))), el("tbody", {}, rows)))
      : sentence("No problems were found while reading this log."));
    this.element.dataset.ready = "yes";
    this.element.dataset.count = rows.length;
  }
}
