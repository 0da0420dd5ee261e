// What happened: faults of the log, worst first, its events, its summary, and what was not looked at.

import { button, el, plain } from "../dom.js";
import { COLOURS, titleOf } from "../notes.js";
import { wish } from "../series.js";
import { length } from "../time.js";
import { sentence } from "./sentence.js";

/** What is seen before and after a finding: ns at least, and shares of its length; on short logs a share of the log. */
const BEFORE = 4e9, AFTER = 2e9, LEAD = 0.5, TAIL = 0.2, SHORT = 0.15;
/** Logs shorter than this have times to hundredths of a second, ns. */
const FINE = 20e9;
/** Other intervals of a finding that are listed. */
const OTHERS = 6;
/** How the title of the plot begins that shows the chosen finding: there is one at a time. */
const TITLE = "Finding: ";
const WORDS = { error: "error", warn: "warning", note: "note" };

export function create(context, settings) {
  return new Findings(context, settings);
}

/** Say how many faults there are, such as "2 errors, 1 warning". */
export function counted(faults) {
  const count = (severity) => faults.filter((one) => one.severity === severity).length;
  return ["error", "warn"].filter(count).map((one) => `${count(one)} ${WORDS[one]}${count(one) === 1 ? "" : "s"}`).join(", ");
}

class Findings {
  constructor(context, { sort = "worst" }) {
    this.title = "Findings";
    this.context = context;
    this.sort = sort;
    this.offs = [];
  }

  async mount(element) {
    this.element = element;
    const { bus } = this.context;
    this.offs.push(
      bus.on("clock", () => this.#draw()), bus.on("shift", () => this.#draw()), bus.on("notes", () => this.#draw()),
      bus.on("grown", () => { this.grown = true; this.#draw(); }),
    );
    element.replaceChildren(sentence("Looking for what happened in this log …"));
    // The panel is there at once; what it says comes after the plots and the strip.
    this.#load();
  }

  settings() {
    return this.sort === "worst" ? {} : { sort: this.sort };
  }

  dispose() {
    this.gone = true;
    for (const off of this.offs) off();
  }

  async #load() {
    const { data, logs } = this.context;
    try {
      this.answers = await Promise.all(logs.map(async ({ id }) => {
        await data.overview(id).catch(() => null);
        return { log: id, ...(await data.findings(id)) };
      }));
    } catch (error) {
      this.failed = error.message;
    }
    if (this.gone) return;
    this.#draw();
    this.element.dataset.ready = "yes";
  }

  #draw() {
    if (this.failed) return this.element.replaceChildren(sentence(`What happened could not be found: ${this.failed}`, true));
    if (!this.answers) return undefined;
    const all = (name) => this.answers.flatMap((answer) => answer[name].map((one) => ({ ...one, log: answer.log })));
    const faults = all("faults").filter((one) => one.severity !== "note"), notes = all("faults").filter((one) => one.severity === "note");
    const start = (one) => (one.spans.length ? this.#axis(one, one.spans[0])[0] : Infinity);
    if (this.sort === "time") faults.sort((a, b) => start(a) - start(b));
    else if (this.answers.length > 1) faults.sort((a, b) => a.level - b.level || start(a) - start(b));
    const events = all("events").sort((a, b) => start(a) - start(b));
    const list = (items, label) => el("ol", { class: "found", "aria-label": label }, items.map((one) => this.#item(one)));
    const other = this.sort === "worst" ? "time" : "worst";
    const parts = [el("div", { class: "tool" },
      el("b", {}, counted(faults) || "no fault found"), el("span", { class: "spring" }),
      faults.length > 1 ? button(other === "time" ? "by time" : "worst first", "Change the order of the list", () => { this.sort = other; this.context.state.changed(); this.#draw(); }) : null,
      this.grown ? button("look again", "The log has grown since", () => this.#again()) : null)];
    if (faults.length) parts.push(list(faults, "Faults"));
    else parts.push(el("p", { class: "faint" }, this.answers.map((one) => one.sentence || "Only notes were found.").join(" ")));
    parts.push(...this.#notes());
    if (events.length) parts.push(el("h3", {}, "Events"), list(events, "Events"));
    if (notes.length) parts.push(el("details", {}, el("summary", {}, `Notes (${notes.length})`), list(notes, "Notes")));
    for (const { log, summary, looked, not_assessed } of this.answers) {
      const name = this.answers.length > 1 ? `: ${this.context.log(log).name}` : "";
      if (summary.length) parts.push(el("h3", {}, `Summary${name}`), el("div", { class: "summary" }, summary.map(({ title, facts }) => el("section", {}, el("h4", {}, title), pairs(facts)))));
      if (looked.length) parts.push(el("details", {}, el("summary", {}, `Looked at, nothing found (${looked.length})${name}`), pairs(looked)));
      if (not_assessed.length) parts.push(el("details", {}, el("summary", {}, `Not assessed (${not_assessed.length})${name}`), pairs(not_assessed)));
    }
    const place = this.element.querySelector(".scroll")?.scrollTop ?? 0;
    const scroll = el("div", { class: "scroll findings", tabindex: 0, "aria-label": "Findings" }, parts);
    this.element.replaceChildren(scroll);
    scroll.scrollTop = place;
    this.element.dataset.count = faults.length;
    return undefined;
  }

  /** What people noted, with a button for more. */
  #notes() {
    const { notes, logs } = this.context;
    const items = logs.flatMap(({ id, name }) => notes.of(id).map((note) => tinted(note, el("li", { class: "noted" },
      el("button", { type: "button", class: "finding", title: "Show this note", on: { click: () => notes.show(id, note) } },
        el("span", { class: "time" }, this.#when({ log: id }, [note.from, note.to ?? note.from])),
        el("span", { class: "what" }, titleOf(note)),
        note.author || logs.length > 1 ? el("span", { class: "from" }, [note.author, logs.length > 1 ? name : ""].filter(Boolean).join(" · ")) : null,
        note.title && note.text ? el("span", { class: "from text" }, note.text) : null),
      button("✎", "Change or remove this note", () => notes.edit(id, note), { class: "small change" })))));
    const problems = logs.map(({ id }) => notes.logs.get(id)?.problem).filter(Boolean).map((text) => el("p", { class: "warn" }, text));
    const head = el("div", { class: "head" }, el("h3", {}, "Notes and bookmarks"), el("span", { class: "spring" }),
      button("+ moment", "Note at the cursor (b)", () => notes.add(false), { class: "small" }), button("+ span", "Note on the visible window (Shift-B)", () => notes.add(true), { class: "small" }));
    return [head, ...problems, ...(items.length ? [el("ol", { class: "found", "aria-label": "Notes and bookmarks" }, items)] : [])];
  }

  #again() {
    for (const { id } of this.context.logs) this.context.data.forget(id, "findings");
    this.grown = false;
    this.#load();
  }

  /** One finding: what and when, how bad, where it comes from; a click shows it. */
  #item(one) {
    const [first, ...others] = one.spans, { logs } = this.context;
    const source = [WORDS[one.severity], one.source, logs.length > 1 ? this.context.log(one.log).name : ""].filter(Boolean).join(" · ");
    const item = el("li", { class: one.severity ?? "event" },
      el("button", { type: "button", class: "finding", title: first ? "Show this interval, and the curves that show it" : "Show the curves that show it", on: { click: (event) => this.#show(one, first, event.currentTarget) } },
        el("span", { class: "time" }, first ? this.#when(one, first) : "whole log"),
        el("span", { class: "what" }, plain(one.text)),
        one.severity || logs.length > 1 ? el("span", { class: "from", title: source }, source) : null,
        one.more.length ? el("span", { class: "from", title: one.more.join("\n") }, `also: ${one.more.map(plain).join("; ")}`) : null));
    if (others.length) {
      const shown = others.slice(0, OTHERS).map((span) => button(this.#when(one, span), "Show this interval", (event) => this.#show(one, span, event.currentTarget), { class: "small" }));
      const more = one.times - 1 - shown.length;
      item.append(el("div", { class: "others" }, "also at ", shown, more > 0 ? ` and ${more} more` : ""));
    }
    return item;
  }

  #axis({ log }, [from, to]) {
    const { time } = this.context;
    return [time.toAxis(log, from), time.toAxis(log, to)];
  }

  #when(one, span) {
    const { time } = this.context, { from: first, to: last } = time.whole(), step = last - first < FINE ? 1e7 : 1e8;
    // Rounded as in the summary, while times of cursors are cut.
    const [from, to] = this.#axis(one, span).map((at) => Math.round(at / step) * step);
    return to === from ? time.full(from, step) : `${time.text(from, step)} … ${time.full(to, step)}`;
  }

  /** Set the window to an interval with what came before it, and show its curves. */
  async #show(one, span, pressed) {
    const { view, time } = this.context, { from: first, to: last } = time.whole();
    for (const item of this.element.querySelectorAll("li[aria-current]")) item.removeAttribute("aria-current");
    pressed.closest("li").setAttribute("aria-current", "true");
    if (span) {
      const [a, b] = this.#axis(one, span).map((at) => Math.min(Math.max(at, first), last)), share = SHORT * (last - first);
      view.setWindow(Math.max(first, a - Math.max(Math.min(BEFORE, share), LEAD * (b - a))), Math.min(last, b + Math.max(Math.min(AFTER, share), TAIL * (b - a))));
      view.setCursor(a);
    }
    await this.#curves(one);
    pressed.focus({ preventScroll: true });
    this.element.dataset.shown = `${one.text} ${span ? length(span[1] - span[0]) : ""}`;
  }

  /** Show the plot that has the curves of a finding, or one of its own at the top. */
  async #curves({ log, text, series }) {
    const { plots, logs } = this.context;
    const own = plots.frames.find((frame) => (frame.panel?.title ?? frame.settings.title ?? "").startsWith(TITLE));
    if (!series.length) { if (own) plots.remove(own); return; }
    const key = (one) => JSON.stringify([one.log ?? logs[0].id, wish(one)]);
    const wanted = series.map((one) => ({ ...Object.fromEntries(Object.entries(one).filter(([, value]) => value)), ...(log === logs[0].id ? {} : { log }) }));
    const has = (frame) => { const keys = new Set((frame.panel?.series?.() ?? frame.settings.series ?? []).map(key)); return frame.kind === "plot" && wanted.every((one) => keys.has(key(one))); };
    const there = plots.frames.find((frame) => frame !== own && frame.element.dataset.seen && has(frame));
    if (own && (there || !has(own))) plots.remove(own);
    const frame = there ?? (own && has(own) ? own : await plots.add("plot", { title: `${TITLE}${plain(text)}`, series: wanted }, { first: true }));
    plots.choose(frame);
    frame.element.scrollIntoView({ block: "nearest" });
  }
}

function tinted(note, item) {
  item.style.borderLeftColor = `var(${COLOURS[note.colour] ?? "--accent"})`;
  return item;
}

function pairs(rows) {
  return el("dl", {}, rows.flatMap(([name, text]) => [el("dt", { title: name }, name), el("dd", {}, plain(text))]));
}
