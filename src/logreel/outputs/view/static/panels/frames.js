// The tree of frames at the cursor: parent, rate, age of the last transform, interruptions.

import { el, frame } from "../dom.js";
import { length } from "../time.js";
import { sentence } from "./sentence.js";

/** An age is old from this many periods on, and from this many ns. */
const OLD_PERIODS = 5, OLD = 0.5e9;

export function create(context, settings) {
  return new Frames(context, settings);
}

class Frames {
  constructor(context, { log }) {
    this.title = "Frames";
    this.context = context;
    this.log = context.log(log ?? "").id;
    this.later = frame(() => this.#load());
  }

  async mount(element) {
    const { bus, title } = this.context;
    this.element = element;
    element.classList.add("column");
    this.body = el("div", { class: "scroll", tabindex: 0, "aria-label": "Tree of frames" });
    element.replaceChildren(this.body);
    title?.(this.context.logs.length > 1 ? `Frames of ${this.context.log(this.log).name}` : "Frames");
    this.offs = [bus.on("clock", this.later), bus.on("shift", this.later), bus.on("grown", this.later)];
    await this.#load();
  }

  settings() {
    return this.context.logs.length > 1 ? { log: this.log } : {};
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
    const { api, time, view } = this.context;
    try {
      this.#draw(await api.get(`/api/logs/${this.log}/frames`, { at: Math.round(time.toLog(this.log, view.cursor ?? view.window.from)) }));
    } catch (error) {
      if (!this.gone) this.body.replaceChildren(sentence(error.message, true));
    }
    this.element.dataset.ready = "yes";
    this.busy = false;
    if (this.again) { this.again = false; this.later(); }
  }

  #draw({ frames, whole }) {
    if (this.gone) return;
    if (!frames.length) {
      this.body.replaceChildren(sentence("The log holds no transforms."));
      return;
    }
    const rows = frames.map((one) => {
      const { name, depth, parent, rate, age, topics, is_gap: inGap } = one, name_ = el("td", { title: name }, name);
      name_.style.paddingLeft = `${8 + 14 * depth}px`;
      const old = age != null && (age < 0 || inGap || age > Math.max(OLD, rate ? (OLD_PERIODS * 1e9) / rate : OLD));
      const said = !parent ? "" : one.static ? "static" : age < 0 ? `in ${length(-age)}` : length(age);
      return el("tr", { dataset: { frame: name, old } }, name_, el("td", { class: "faint", title: parent }, parent), el("td", { class: "number" }, rate == null ? "" : `${Number(rate.toPrecision(3))} Hz`),
        el("td", { class: old ? "number warn" : "number" }, said), el("td", { class: "wrap" }, this.#gaps(one)), el("td", { class: "faint", title: topics.join(", ") }, topics.join(", ")));
    });
    const names = ["Frame", "Parent", "Rate", "Age", "Interruptions", "Topic"];
    const top = this.body.scrollTop;
    this.body.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, names.map((text, i) => el("th", { class: i === 2 || i === 3 ? "number" : "" }, text)))), el("tbody", {}, rows)),
      ...(whole ? [] : [el("p", { class: "faint" }, "The log has many transforms: rates and interruptions are those around the cursor.")]));
    this.body.scrollTop = top;
    this.element.dataset.count = frames.length;
  }

  #gaps({ gaps, gap_count: count }) {
    const { time, view } = this.context;
    const go = ([from, to]) => {
      const start = time.toAxis(this.log, from), end = time.toAxis(this.log, to), margin = Math.max(1e9, (end - start) / 2);
      view.setWindow(start - margin, end + margin);
      view.setCursor(start);
    };
    const shown = gaps.slice(0, 3).map((gap) => el("button", { type: "button", class: "small", title: "Show this interruption", on: { click: () => go(gap) } }, `${time.full(time.toAxis(this.log, gap[0]))}: ${length(gap[1] - gap[0])}`));
    return [...shown, ...(count > shown.length ? [el("span", { class: "faint small" }, ` ${count - shown.length} more`)] : [])];
  }
}
