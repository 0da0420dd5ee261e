// What the parts of a robot say of themselves at the cursor, the worst first.

import { el, frame, plain } from "../dom.js";
import { match } from "../fuzzy.js";
import { length } from "../time.js";
import { sentence } from "./sentence.js";

const LEVELS = [["good", ""], ["warning", "warn"], ["error", "bad"], ["stale", "warn"]];
/** Parts that say nothing for longer than this, ns, are marked. */
const OLD = 5e9;

export function create(context, settings) {
  return new Diagnostics(context, settings);
}

class Diagnostics {
  constructor(context, { q = "", log }) {
    this.title = "Diagnostics";
    this.context = context;
    this.log = context.log(log ?? "").id;
    this.q = q;
    this.opened = new Set();
    this.later = frame(() => this.#load());
  }

  async mount(element) {
    const { bus, title } = this.context;
    this.element = element;
    element.classList.add("column");
    const search = el("input", { type: "search", placeholder: "Find a part …", "aria-label": "Find a part", value: this.q, on: { input: (event) => { this.q = event.target.value; this.#draw(); this.context.state.changed(); } } });
    this.count = el("span", { class: "faint" });
    this.body = el("div", { class: "scroll", tabindex: 0, "aria-label": "States of parts" });
    element.replaceChildren(el("div", { class: "tool" }, search, this.count), this.body);
    title?.(this.context.logs.length > 1 ? `Diagnostics of ${this.context.log(this.log).name}` : "Diagnostics");
    this.offs = [bus.on("clock", () => this.#draw()), bus.on("shift", this.later), bus.on("grown", this.later)];
    await this.#load();
  }

  settings() {
    return { q: this.q || undefined, log: this.context.logs.length > 1 ? this.log : undefined };
  }

  cursor() {
    this.later();
  }

  window() {
    if (this.context.view.cursor == null) this.later();
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs ?? []) off();
  }

  async #load() {
    if (this.gone) return;
    // While an answer is under way the newest cursor waits.
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const { api, time, view } = this.context, at = Math.round(time.toLog(this.log, view.cursor ?? view.window.from));
    try {
      this.answer = { at, ...await api.get(`/api/logs/${this.log}/diagnostics`, { at }) };
      this.#draw();
    } catch (error) {
      if (!this.gone) this.body.replaceChildren(sentence(error.message, true));
    }
    this.element.dataset.ready = "yes";
    this.busy = false;
    if (this.again) { this.again = false; this.later(); }
  }

  #draw() {
    if (this.gone || !this.answer) return;
    const { at, parts, topics } = this.answer, words = this.q.toLowerCase();
    const shown = parts.filter(({ name, message }) => !words || match(words, name) || message.toLowerCase().includes(words));
    this.count.textContent = LEVELS.map(([text], level) => [text, parts.filter((one) => Math.min(one.level, 3) === level).length]).filter(([, n]) => n).reverse().map(([text, n]) => `${n} ${text}`).join(", ");
    if (!shown.length) {
      this.body.replaceChildren(sentence(!topics.length ? "The log holds no diagnostics." : parts.length ? "No part passes the filter." : "No part has said anything before this moment."));
      return;
    }
    const top = this.body.scrollTop;
    this.body.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ["Level", "Part", "Message", "Since", "Age"].map((text, i) => el("th", { class: i > 2 ? "number" : "" }, text)))), el("tbody", {}, shown.flatMap((one) => this.#rows(one, at)))));
    this.body.scrollTop = top;
  }

  #rows({ topic, name, level, message, t, since, hardware, values }, at) {
    const { time, view } = this.context, [text, look] = LEVELS[Math.min(level, 3)], key = `${topic} ${name}`, open = this.opened.has(key);
    const toggle = () => { if (!this.opened.delete(key)) this.opened.add(key); this.#draw(); };
    const details = [...(hardware ? [["hardware", hardware]] : []), ...values];
    return [
      el("tr", { dataset: { level: text } }, el("td", { class: look }, text),
        el("td", { title: `${name}\n${topic}` }, details.length ? el("button", { type: "button", "aria-expanded": String(open), title: "Show what else it says", on: { click: toggle } }, `${open ? "▾" : "▸"} ${plain(name)}`) : plain(name)),
        el("td", { class: "wrap" }, plain(message)),
        el("td", { class: "number" }, el("button", { type: "button", title: "Set the cursor to where this level began", on: { click: () => { view.setCursor(time.toAxis(this.log, since)); view.reveal(); } } }, time.text(time.toAxis(this.log, since), 1e6))),
        el("td", { class: at - t > OLD ? "number warn" : "number faint" }, length(at - t))),
      ...(open ? details.map(([label, value]) => el("tr", { class: "faint" }, el("td", {}), el("td", { title: label }, plain(label)), el("td", { class: "wrap", colspan: 3 }, plain(value)))) : []),
    ];
  }
}
