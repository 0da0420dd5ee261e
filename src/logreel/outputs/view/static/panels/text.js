// Texts and events of the window, filtered, with the line at the cursor marked.

import { LEVELS, levelClass } from "../colours.js";
import { button, el, frame, plain } from "../dom.js";
import { sentence } from "./sentence.js";

const LIMIT = 400;

export function create(context, settings) {
  return new Text(context, settings);
}

class Text {
  constructor(context, { level = "", source = "", q = "" }) {
    this.title = "Text & events";
    this.context = context;
    this.filter = { level, source, q };
    this.lines = [];
    this.sources = new Set();
    this.offs = [];
    this.later = frame(() => this.#load());
  }

  mount(element) {
    this.element = element;
    const { bus } = this.context, change = (name) => (event) => { this.filter[name] = event.target.value; this.#filtered(); };
    this.level = el("select", { "aria-label": "Level", on: { change: change("level") } },
      [["", "all levels"], ["3", "errors"], ["4", "warnings and worse"], ["5", "notices and worse"], ["6", "infos and worse"]].map(([value, text]) => el("option", { value, selected: value === this.filter.level }, text)));
    this.source = el("select", { "aria-label": "Source", on: { change: change("source") } });
    this.search = el("input", { type: "search", placeholder: "Filter …", "aria-label": "Filter of texts", value: this.filter.q, on: { input: change("q") } });
    this.count = el("span", { class: "faint" });
    this.list = el("ol", { class: "lines", "aria-label": "Texts and events" });
    this.scroll = el("div", { class: "scroll" }, this.list);
    element.replaceChildren(el("div", { class: "tool" }, this.search, this.level, this.source, this.count), this.scroll);
    this.#names();
    this.offs.push(bus.on("clock", () => this.#draw()), bus.on("shift", () => this.later()), bus.on("grown", () => this.later()));
    this.#filtered();
  }

  settings() {
    return Object.fromEntries(Object.entries(this.filter).filter(([, value]) => value));
  }

  window(from, to) {
    this.from = from;
    this.to = to;
    this.later();
  }

  cursor(axis) {
    this.at = axis;
    this.#mark();
  }

  dispose() {
    this.stop?.abort();
    for (const off of this.offs) off();
    this.context.bus.send("marks", null);
  }

  /** The markers above the plots obey the same filter. */
  #filtered() {
    const { level, source, q } = this.filter, words = q.toLowerCase();
    this.context.bus.send("marks", {
      ...this.context.bus.last("marks"),
      accepts: (mark) => (!level || (mark.level != null && mark.level <= Number(level))) && (!source || mark.source === source) && (!words || mark.text.toLowerCase().includes(words)),
    });
    this.later();
  }

  #names() {
    this.source.replaceChildren(el("option", { value: "" }, "all sources"), ...[...this.sources].sort().map((name) => el("option", { value: name, selected: name === this.filter.source }, name)));
    this.source.hidden = this.sources.size < 2;
  }

  async #load(after = null) {
    if (this.from == null || !this.element.isConnected) return;
    this.stop?.abort();
    const stop = new AbortController(), { api, logs, time } = this.context;
    this.stop = stop;
    try {
      const answers = await Promise.all(logs.map(async ({ id, duration }) => {
        const from = Math.round(time.toLog(id, this.from)), to = Math.round(time.toLog(id, this.to)) + 1;
        if (from > duration || to <= 0 || (after && !(id in after))) return { id, lines: [], sources: [], next: null };
        // Texts before the first message of data, and after the last, belong to the ends of the log.
        const ends = { from: from <= 0 ? null : from, to: to >= duration ? null : to };
        return { id, ...await api.get(`/api/logs/${id}/text`, { ...ends, limit: LIMIT, ...this.filter, after: after?.[id] }, stop) };
      }));
      const found = answers.flatMap(({ id, lines }) => lines.map((line) => ({ ...line, log: id })));
      this.lines = (after ? [...this.lines, ...found] : found).sort((a, b) => time.toAxis(a.log, a.t) - time.toAxis(b.log, b.t));
      this.next = Object.fromEntries(answers.filter(({ next }) => next != null).map(({ id, next }) => [id, next]));
      const names = this.sources.size;
      for (const { sources } of answers) for (const name of sources ?? []) if (name) this.sources.add(name);
      if (this.sources.size !== names) this.#names();
      this.#draw();
    } catch (error) {
      if (error.name !== "AbortError") this.list.replaceChildren(el("li", { class: "bad" }, error.message));
    }
  }

  #draw() {
    const { time, view, logs } = this.context;
    this.list.replaceChildren(...this.lines.map((line) => {
      const axis = time.toAxis(line.log, line.t), level = LEVELS[line.level] ?? (line.kind === "text" ? "" : line.kind);
      const item = el("li", { tabindex: -1, title: line.text, on: { click: () => { view.setCursor(axis); item.focus(); } } },
        el("span", { class: "time" }, time.text(axis, 1e6)), el("span", { class: levelClass(line.level) || "faint" }, level),
        el("span", { class: "text" }, plain(line.text)), el("span", { class: "faint small" }, logs.length > 1 ? `${this.context.log(line.log).name} ${line.source}` : line.source));
      item.axis = axis;
      item.addEventListener("keydown", (event) => this.#key(event, item));
      return item;
    }));
    if (this.list.firstChild) this.list.firstChild.tabIndex = 0;
    if (Object.keys(this.next ?? {}).length) this.list.append(el("li", {}, button("Show more", "Show more lines", () => this.#load(this.next))));
    this.scroll.querySelector(".sentence")?.remove();
    if (!this.lines.length) this.scroll.append(sentence(Object.values(this.filter).some(Boolean) ? "No text in this window passes the filter." : "No texts or events in this window."));
    this.count.textContent = this.lines.length ? `${this.lines.length}${Object.keys(this.next ?? {}).length ? "+" : ""}` : "";
    this.element.dataset.ready = "yes";
    this.element.dataset.count = this.lines.length;
    this.marked = null;
    this.#mark();
    if (!this.lines.length && !this.sources.size && view.isWhole() && !Object.values(this.filter).some(Boolean)) this.context.bus.send("quiet", "text");
  }

  #key(event, item) {
    const next = { ArrowDown: item.nextSibling, ArrowUp: item.previousSibling }[event.key];
    if (event.altKey || event.key !== "Enter" && !(event.key in { ArrowDown: 1, ArrowUp: 1 })) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter") item.click(); else if (next?.axis != null) { next.focus(); this.context.view.setCursor(next.axis); }
  }

  /** Mark the last line at or before the cursor, and bring it into sight. */
  #mark() {
    if (!this.list) return;
    let found = null;
    if (this.at != null) for (const item of this.list.children) { if (item.axis > this.at) break; found = item; }
    if (found === this.marked) return;
    this.marked?.removeAttribute("aria-current");
    this.marked = found;
    if (!found) return;
    found.setAttribute("aria-current", "true");
    // Only the list may scroll: scrollIntoView would move the page, too.
    const { scroll } = this, top = found.offsetTop - this.list.offsetTop;
    if (top < scroll.scrollTop || top + found.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top - scroll.clientHeight / 2;
  }
}
