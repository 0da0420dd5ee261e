// The message of the chosen channel at the cursor.

import { button, el, frame } from "../dom.js";
import { short } from "../series.js";
import { sentence } from "./sentence.js";

const DEEP = 4;

export function create(context, settings) {
  return new Message(context, settings);
}

class Message {
  constructor(context, { topic, log }) {
    this.title = "Message";
    this.context = context;
    this.chosen = context.bus.last("select") ?? (topic ? { topic, log: log ?? context.logs[0].id } : null);
    this.closed = new Set();
    this.later = frame(() => this.#load());
  }

  mount(element) {
    const { bus } = this.context;
    this.element = element;
    this.name = el("b", { class: "label" });
    this.head = el("span", { class: "faint" });
    const step = (text, title, count) => button(text, title, () => this.#load(count));
    this.body = el("div", { class: "scroll message", tabindex: 0, "aria-label": "Fields of the message" });
    element.replaceChildren(el("div", { class: "tool" }, this.name, el("span", { class: "spring" }), this.head, button("Table", "Show all messages of this channel as rows", () => this.chosen && this.context.plots.add("table", { topic: this.chosen.topic, log: this.chosen.log })), step("‹", "Message before", -1), step("›", "Next message", 1)), this.body);
    this.name.style.cssText = "overflow:hidden;text-overflow:ellipsis;white-space:nowrap";
    this.offs = [bus.on("select", (chosen) => { this.chosen = chosen; this.later(); }), bus.on("clock", () => this.later()), bus.on("grown", () => this.later())];
    if (!this.chosen) {
      const first = this.context.plots.series()[0];
      if (first) this.chosen = { log: first.log, topic: first.topic, field: first.field };
    }
    this.later();
  }

  settings() {
    return this.chosen ? { topic: this.chosen.topic, log: this.chosen.log } : {};
  }

  cursor() {
    this.later();
  }

  window() {
    if (this.context.view.cursor == null) this.later();
  }

  dispose() {
    this.stop?.abort();
    for (const off of this.offs) off();
  }

  async #load(step = null) {
    if (!this.element.isConnected) return;
    const { api, data, time, view } = this.context;
    let chosen = this.chosen ?? this.#first();
    // A link of another log may name a channel that is not there.
    if (chosen && !(await data.channels(chosen.log).catch(() => [])).some(({ topic }) => topic === chosen.topic)) chosen = null;
    if (!chosen) {
      this.body.replaceChildren(sentence("Choose a channel in the tree to see its message at the cursor."));
      this.element.dataset.ready = "yes";
      return;
    }
    // While an answer is under way the newest cursor waits: a cursor that plays must not starve it.
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    const at = view.cursor ?? view.window.from;
    try {
      const ask = (count) => api.get(`/api/logs/${chosen.log}/message`, { topic: chosen.topic, at: Math.round(time.toLog(chosen.log, at)), step: count });
      let found = await ask(step);
      // Before a cursor is set, the first message is a better beginning than none.
      if (found.t == null && found.count && view.cursor == null) found = await ask(1);
      if (found.t == null) this.#none(found);
      else this.#show(chosen, found);
      if (step && found.t != null) { view.setCursor(time.toAxis(chosen.log, found.t)); view.reveal(); }
    } catch (error) {
      this.name.textContent = chosen.topic;
      this.head.textContent = "";
      this.body.replaceChildren(sentence(error.message));
    }
    this.element.dataset.ready = "yes";
    this.busy = false;
    if (this.again) { this.again = false; this.later(); }
  }

  #none({ topic, count }) {
    this.name.textContent = topic;
    this.head.textContent = "";
    this.body.replaceChildren(sentence(count ? "No message of this channel at or before the cursor." : "This channel has no messages."));
  }

  #first() {
    const [one] = this.context.plots.series();
    return one ? { log: one.log, topic: one.topic, field: one.field } : null;
  }

  #show(chosen, { topic, t, row, count, size, value, error }) {
    const { time } = this.context, top = this.body.scrollTop;
    this.name.textContent = topic;
    this.name.title = `${topic}\n${size == null ? "" : `${size} bytes`}`;
    this.head.textContent = `${(row + 1).toLocaleString("en")} of ${count.toLocaleString("en")} · ${time.full(time.toAxis(chosen.log, t))}`;
    this.body.replaceChildren(error ? sentence(error, true) : this.#fields(value, 0, ""));
    this.body.scrollTop = top;
    this.element.dataset.row = row;
    this.element.dataset.topic = topic;
  }

  /** Return an element for a value of any depth. */
  #fields(value, depth, path) {
    const list = el("dl", {}), entries = Array.isArray(value) ? value.map((one, i) => [`[${i}]`, one]) : Object.entries(value ?? {});
    for (const [name, one] of entries) {
      const place = `${path}.${name}`, plain = Array.isArray(one) && one.every((item) => item === null || typeof item !== "object" || "…" in item);
      if (one !== null && typeof one === "object" && !plain && !("…" in one) && !("hex" in one)) {
        const inside = el("details", { open: depth < DEEP && !this.closed.has(place) }, el("summary", {}, name + (Array.isArray(one) ? ` (${one.length})` : "")), this.#fields(one, depth + 1, place));
        inside.addEventListener("toggle", () => (inside.open ? this.closed.delete(place) : this.closed.add(place)));
        list.append(el("dd", { class: "deep" }, inside));
        continue;
      }
      const text = plain ? `[${one.map(plainText).join(", ")}]` : plainText(one);
      list.append(el("dt", { title: name }, name), el("dd", { title: text }, text));
    }
    return list;
  }
}

function plainText(value) {
  if (value === null) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : short(value, Math.fround(value) === value ? 7 : 12);
  if (typeof value === "object" && "hex" in value) return `${value.bytes.toLocaleString("en")} bytes: ${value.hex}${value.hex.length < 2 * value.bytes ? " …" : ""}`;
  if (typeof value === "object") return `… ${value["…"].toLocaleString?.("en") ?? value["…"]} more`;
  return String(value);
}
