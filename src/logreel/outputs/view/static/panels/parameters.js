// Parameters with their changes; a change is also a marker above the plots.

import { el, frame } from "../dom.js";
import { match } from "../fuzzy.js";
import { short } from "../series.js";
import { sentence } from "./sentence.js";

const MOST = 600;

export function create(context, settings) {
  return new Parameters(context, settings);
}

/** Give the changes of parameters to the markers above the plots. */
export async function markChanges(context) {
  const changes = {};
  for (const { id } of context.logs) {
    const list = await context.data.parameters(id).catch(() => []);
    // Values at the start are no changes.
    changes[id] = list.flatMap((one) => one.changes.filter(({ t }) => t > 0).map(({ t, value }) => ({ t, level: null, kind: "parameter", text: `${one.name} = ${value}`, source: "" })));
  }
  if (Object.values(changes).some((list) => list.length)) context.bus.send("marks", { ...context.bus.last("marks"), changes });
}

class Parameters {
  constructor(context, { q = "", only = "" }) {
    this.title = "Parameters";
    this.context = context;
    this.filter = { q, only };
    this.later = frame(() => this.#draw());
  }

  async mount(element) {
    this.element = element;
    this.search = el("input", { type: "search", placeholder: "Find a parameter …", "aria-label": "Find a parameter", value: this.filter.q, on: { input: (event) => { this.filter.q = event.target.value; this.#draw(); } } });
    this.only = el("select", { "aria-label": "Which parameters", on: { change: (event) => { this.filter.only = event.target.value; this.#draw(); } } },
      [["", "all"], ["other", "not default"], ["changed", "changed"], ["over time", "changes over time"], ...(this.context.logs.length > 1 ? [["different", "different"]] : [])].map(([value, text]) => el("option", { value, selected: value === this.filter.only }, text)));
    this.body = el("div", { class: "scroll", tabindex: 0, "aria-label": "Parameters" });
    element.classList.add("column");
    this.context.title?.(this.title);
    element.replaceChildren(el("div", { class: "tool" }, this.search, this.only), this.body);
    this.offs = [this.context.bus.on("grown", () => this.#load()), this.context.bus.on("clock", () => this.#draw())];
    await this.#load();
  }

  settings() {
    return Object.fromEntries(Object.entries(this.filter).filter(([, value]) => value));
  }

  cursor() {
    if (this.changing) this.later();
  }

  dispose() {
    for (const off of this.offs) off();
  }

  async #load() {
    const lists = await Promise.all(this.context.logs.map(async ({ id }) => (await this.context.data.parameters(id)).map((one) => ({ ...one, log: id }))));
    this.list = lists.flat();
    this.changing = this.list.some((one) => one.changes.length > 0);
    this.#draw();
    this.element.dataset.ready = "yes";
  }

  #draw() {
    if (!this.list) return;
    if (this.filter.only === "over time") return this.#overTime();
    if (this.context.logs.length > 1) return this.#beside();
    const { time, view, logs } = this.context, at = view.cursor, words = this.filter.q.toLowerCase();
    const changed = (one) => one.changes.some(({ t }) => t > 0), other = (one) => one.default != null && one.value !== one.default;
    const hits = this.list.map((one) => ({ one, hit: words ? match(words, one.name) : { score: 0 } }))
      .filter(({ one, hit }) => hit && (this.filter.only !== "changed" || changed(one)) && (this.filter.only !== "other" || other(one)));
    if (words) hits.sort((a, b) => b.hit.score - a.hit.score);
    const rows = hits.slice(0, MOST).map(({ one }) => {
      // The value at the cursor: that of the last change before it.
      const last = at == null ? null : one.changes.findLast(({ t }) => t <= time.toLog(one.log, at));
      const changes = one.changes.filter(({ t }) => t > 0).map(({ t, value }) => el("button", { type: "button", class: "small", title: "Set the cursor to this change", on: { click: () => { view.setCursor(time.toAxis(one.log, t)); view.reveal(); } } }, `${time.full(time.toAxis(one.log, t))}: ${write(value)}`));
      return el("tr", {}, el("td", { title: one.name }, one.name),
        el("td", { class: "number" }, write(last ? last.value : one.value)), el("td", { class: "number faint" }, one.default == null ? "" : write(one.default)), el("td", { class: "wrap" }, changes), logs.length > 1 ? el("td", { class: "faint" }, this.context.log(one.log).name) : null);
    });
    if (!rows.length) {
      this.body.replaceChildren(sentence(this.list.length ? "No parameter passes the filter." : "This log has no parameters."));
      return undefined;
    }
    const defaults = this.list.some((one) => one.default != null);
    this.body.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ["Name", "Value", defaults ? "Default" : "", this.changing ? "Changes" : "", ...(logs.length > 1 ? ["Log"] : [])].map((text, i) => el("th", { class: i === 1 || i === 2 ? "number" : "" }, text)))), el("tbody", {}, rows)));
    if (hits.length > MOST) this.body.append(el("p", { class: "faint" }, `${hits.length - MOST} more: type a name.`));
    return undefined;
  }

  /** All changes, in the order of their times, with the value before; the last one before the cursor is marked. */
  #overTime() {
    const { time, view, logs } = this.context, words = this.filter.q.toLowerCase(), at = view.cursor;
    const changes = this.list.filter(({ name }) => !words || match(words, name)).flatMap((one) => one.changes.map(({ t, value }, i) => ({ one, axis: time.toAxis(one.log, t), t, value, before: i ? one.changes[i - 1].value : one.value }))
      // Values at the start are no changes, and some logs repeat values.
      .filter(({ t, value, before }) => t > 0 && JSON.stringify(value) !== JSON.stringify(before)));
    changes.sort((a, b) => a.axis - b.axis);
    this.element.dataset.changes = changes.length;
    if (!changes.length) return this.body.replaceChildren(sentence(words ? "No parameter passes the filter." : "No parameter was changed in this log."));
    const now = at == null ? -1 : changes.findLastIndex(({ axis }) => axis <= at), top = this.body.scrollTop;
    const rows = changes.slice(0, MOST).map(({ one, axis, value, before }, i) => el("tr", { "aria-current": i === now ? "true" : null },
      el("td", { class: "number" }, el("button", { type: "button", title: "Set the cursor to this change", on: { click: () => { view.setCursor(axis); view.reveal(); } } }, time.full(axis))),
      el("td", { title: one.name }, one.name), el("td", { class: "number faint" }, before == null ? "" : write(before)), el("td", { class: "number" }, write(value)), logs.length > 1 ? el("td", { class: "faint" }, this.context.log(one.log).name) : null));
    const names = ["Time", "Name", "Before", "Value", ...(logs.length > 1 ? ["Log"] : [])];
    this.body.replaceChildren(el("table", { class: "plain" }, el("thead", {}, el("tr", {}, names.map((text) => el("th", { class: ["Name", "Log"].includes(text) ? "" : "number" }, text)))), el("tbody", {}, rows)),
      ...(changes.length > MOST ? [el("p", { class: "faint" }, `${changes.length - MOST} more: type a name.`)] : []));
    this.body.scrollTop = top;
    return undefined;
  }

  /** Parameters of several logs side by side: those that differ come first. */
  #beside() {
    const { time, view, logs } = this.context, at = view.cursor, words = this.filter.q.toLowerCase(), names = new Map();
    for (const one of this.list) {
      if (!names.has(one.name)) names.set(one.name, {});
      // The value at the cursor: that of the last change before it.
      const last = at == null ? null : one.changes.findLast(({ t }) => t <= time.toLog(one.log, at));
      names.get(one.name)[one.log] = { ...one, now: write(last ? last.value : one.value) };
    }
    const passes = ({ own, differs }) => ({
      "": true, different: differs, changed: Object.values(own).some(({ changes }) => changes.some(({ t }) => t > 0)),
      other: Object.values(own).some((one) => one.default != null && one.value !== one.default),
    })[this.filter.only] ?? true;
    const rows = [...names].map(([name, own]) => ({ name, own, differs: new Set(logs.map(({ id }) => own[id]?.now)).size > 1, hit: words ? match(words, name) : { score: 0 } }))
      .filter((row) => row.hit && passes(row));
    rows.sort((a, b) => b.differs - a.differs || b.hit.score - a.hit.score);
    this.element.dataset.differ = rows.filter(({ differs }) => differs).length;
    if (!rows.length) return this.body.replaceChildren(sentence(this.list.length ? "No parameter passes the filter." : "These logs have no parameters."));
    return this.body.replaceChildren(
      el("table", { class: "plain" }, el("thead", {}, el("tr", {}, el("th", {}, "Name"), logs.map(({ name }) => el("th", { class: "number", title: name }, name)))),
        el("tbody", {}, rows.slice(0, MOST).map(({ name, own, differs }) => el("tr", { class: differs ? "differs" : "faint" }, el("td", { title: name }, name), logs.map(({ id }) => el("td", { class: "number" }, own[id]?.now ?? "–")))))),
      ...(rows.length > MOST ? [el("p", { class: "faint" }, `${rows.length - MOST} more: type a name.`)] : []));
  }
}

function write(value) {
  return typeof value === "number" && !Number.isInteger(value) ? short(value, 7) : typeof value === "object" ? JSON.stringify(value) : String(value);
}
