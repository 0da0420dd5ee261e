// All messages of a channel as rows; those in sight are asked for, and the one at the cursor is marked.

import { el, frame } from "../dom.js";
import { short } from "../series.js";
import { sentence } from "./sentence.js";

/** Pixels of a row, rows of one request, pages that are kept, and pixels that browsers can scroll. */
const ROW = 20, PAGE = 50, KEPT = 40, TALL = 8e6;

export function create(context, settings) {
  return new Table(context, settings);
}

class Table {
  constructor(context, { topic, log }) {
    const chosen = context.bus.last("select");
    this.title = "Table";
    this.context = context;
    this.topic = topic ?? chosen?.topic ?? null;
    this.log = context.log(log ?? chosen?.log ?? "").id;
    this.pages = new Map();
    this.later = frame(() => this.#draw());
    this.follow = frame(() => this.#mark());
  }

  async mount(element) {
    const { bus, data, title } = this.context;
    this.element = element;
    element.classList.add("column");
    this.head = el("tr", {});
    this.rows = el("tbody", {});
    this.table = el("table", { class: "plain rows-table" }, el("thead", {}, this.head), this.rows);
    this.tall = el("div", { class: "tall" });
    this.scroll = el("div", { class: "scroll", tabindex: 0, "aria-label": "Messages as rows", on: { scroll: this.later } }, this.tall, this.table);
    element.replaceChildren(this.scroll);
    this.offs = [bus.on("clock", this.later), bus.on("grown", ({ log }) => { if (log === this.log) { this.pages.clear(); this.follow(); } })];
    const known = await data.channels(this.log).catch(() => []);
    if (!known.some(({ topic }) => topic === this.topic)) this.topic = null;
    if (!this.topic) {
      element.replaceChildren(sentence("Choose a channel in the tree, then add its table."));
      element.dataset.ready = "empty";
      return;
    }
    title?.(this.topic);
    await this.#mark();
  }

  settings() {
    return { topic: this.topic ?? undefined, log: this.log };
  }

  resize() {
    if (this.topic) this.later();
  }

  cursor() {
    if (this.topic) this.follow();
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs ?? []) off();
  }

  /** Ask for a page of rows, once; null while it is under way. */
  #page(number) {
    if (!this.pages.has(number)) {
      this.pages.set(number, null);
      this.#ask({ first: number * PAGE, count: PAGE }).then((found) => { this.pages.set(number, found); this.later(); }, (error) => this.#fail(error));
      // The oldest pages go; those in sight are asked for again.
      for (const key of [...this.pages.keys()].slice(0, Math.max(0, this.pages.size - KEPT))) this.pages.delete(key);
    }
    return this.pages.get(number);
  }

  #ask(more) {
    const { api, time, view } = this.context;
    const at = Math.round(time.toLog(this.log, view.cursor ?? view.window.from));
    return api.get(`/api/logs/${this.log}/rows`, { topic: this.topic, at, ...more });
  }

  #fail(error) {
    if (this.gone) return;
    this.element.replaceChildren(sentence(error.message, true));
    this.element.dataset.ready = "error";
  }

  /** Find the row at the cursor, and bring it into sight. */
  async #mark() {
    if (this.gone) return;
    // While an answer is under way the newest cursor waits.
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    try {
      const { row, count } = await this.#ask({ first: 0, count: 0 });
      if (this.gone) return;
      Object.assign(this, { count, row });
      const top = this.#top(row ?? 0), { scroll } = this;
      if (top < scroll.scrollTop || top + 2 * ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top - scroll.clientHeight / 2;
      this.#draw();
    } catch (error) {
      this.#fail(error);
    } finally {
      this.busy = false;
      if (this.again) { this.again = false; this.follow(); }
    }
  }

  /** Pixels of all rows; of more rows than a browser can scroll, less than ROW each. */
  get #height() {
    return Math.min(TALL, this.count * ROW);
  }

  #top(row) {
    return (row * this.#height) / Math.max(1, this.count);
  }

  #draw() {
    if (this.gone || this.count == null) return;
    if (!this.count) {
      this.element.replaceChildren(sentence("This channel has no messages."));
      this.element.dataset.ready = "empty";
      return;
    }
    const { time } = this.context, { scroll } = this, seen = Math.ceil(scroll.clientHeight / ROW);
    this.tall.style.height = `${this.#height + ROW}px`;
    const most = Math.max(1, this.#height + ROW - scroll.clientHeight), part = Math.min(1, scroll.scrollTop / most);
    const first = Math.max(0, Math.min(this.count - seen + 1, this.#height < TALL ? Math.floor(scroll.scrollTop / ROW) : Math.round(part * (this.count - seen + 1))));
    const rows = [];
    let fields = this.fields ?? [], error = null;
    for (let row = first; row < Math.min(this.count, first + seen); row++) {
      const page = this.#page(Math.floor(row / PAGE)), at = row % PAGE, t = page?.times[at];
      if (page) ({ fields, error } = page);
      const cells = page?.rows[at] ?? [];
      rows.push(el("tr", { "aria-current": row === this.row ? "true" : null, dataset: { row }, on: { click: () => t != null && this.#go(t) } },
        el("td", { class: "number faint" }, (row + 1).toLocaleString("en")), el("td", { class: "number" }, t == null ? "…" : time.text(time.toAxis(this.log, t), 1e6)),
        cells.map((value) => el("td", { class: typeof value === "number" ? "number" : "", title: String(value ?? "") }, write(value)))));
    }
    if (this.fields !== fields || !this.head.childNodes.length) {
      this.fields = fields;
      this.head.replaceChildren(...["#", "Time", ...fields].map((name, i) => el("th", { class: i < 2 ? "number" : "", title: name }, name)));
    }
    this.rows.replaceChildren(...rows);
    this.table.style.top = `${Math.max(0, Math.min(scroll.scrollTop, most))}px`;
    this.element.dataset.first = first;
    this.element.dataset.row = this.row ?? "";
    this.element.dataset.ready = [...this.pages.values()].includes(null) ? "" : "yes";
    if (!this.element.dataset.ready) delete this.element.dataset.ready;
    if (error) this.head.title = error;
  }

  #go(t) {
    const { time, view } = this.context;
    view.setCursor(time.toAxis(this.log, t));
    view.reveal();
  }
}

function write(value) {
  if (value == null) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : short(value, 7);
  return String(value);
}
