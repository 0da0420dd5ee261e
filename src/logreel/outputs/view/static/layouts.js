// Layouts: undo and redo of changes to panels, layouts with a name for each kind of vehicle, and layout files.

import { el } from "./dom.js";
import { ask, menu } from "./menu.js";
import { TITLES } from "./plots.js";
import { sound } from "./state.js";

/** Where this browser keeps layouts {kind of vehicle: {name: layout}}, and which is the first one {kind: name}, if the viewer keeps none; how many of one kind; steps that can be undone. */
const STORE = "logreel.layouts", BEGIN = "logreel.begin", MOST = 100, STEPS = 200;
/** Bytes of a layout file, and curves that are looked for with one request. */
const BYTES = 1 << 20, AT_ONCE = 40;
/** Panels with curves, and those that a log may have nothing for. */
const CURVED = new Set(["plot", "xy", "spectrogram", "array", "difference"]), SPACE = ["map", "scene", "picture"];
const MEMBERS = ["topic", "field", "function", "where"];

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

export class Layouts {
  constructor(context) {
    this.context = context;
    this.kind = context.logs[0].kind ?? context.logs[0].format;
    this.name = "";
    /** Sentence about what of the last layout the log lacks. */
    this.lacks = "";
    this.past = [];
    this.next = [];
    this.now = null;
    /** What the viewer keeps for the person, whatever its port: {layouts, begin, why}; why is the reason why it does not. */
    this.kept = context.session.kept ?? { layouts: {}, begin: {}, why: "It keeps no layouts." };
    context.state.from(() => { this.#note(); return {}; });
  }

  /** Begin to note changes: what is there now is what the first step leads back to. */
  begin() {
    this.now = this.context.plots.snapshot();
  }

  #note() {
    if (this.now === null) return;
    const now = this.context.plots.snapshot();
    if (now === this.now) return;
    this.past.push(this.now);
    if (this.past.length > STEPS) this.past.shift();
    this.next = [];
    this.now = now;
  }

  undo() {
    this.#step(this.past, this.next, "There is nothing to undo.");
  }

  redo() {
    this.#step(this.next, this.past, "There is nothing to redo.");
  }

  #step(from, to, nothing) {
    this.#note();
    const then = from.pop();
    if (then === undefined) return this.context.say(nothing);
    to.push(this.now);
    this.now = then;
    return this.context.plots.restore(JSON.parse(then));
  }

  /** Return the layout as it is saved: curves say what they mean, so that it fits other logs. */
  current() {
    const { state, meanings = {} } = this.context, named = new Map(Object.entries(meanings).map(([name, one]) => [keyOf(one), name]));
    const meant = (one) => (isObject(one) && named.has(keyOf(one)) ? { ...one, means: named.get(keyOf(one)) } : one);
    const layout = state.layout();
    const panels = (layout.panels ?? []).map((panel) => {
      if (!CURVED.has(panel.kind)) return panel;
      const whole = panel.topic ? meant(panel) : { ...panel };
      for (const part of ["x", "y"]) if (isObject(whole[part])) whole[part] = meant(whole[part]);
      if (whole.series) whole.series = Array.isArray(whole.series) ? whole.series.map(meant) : meant(whole.series);
      return whole;
    });
    return { ...layout, vehicle: this.kind, panels };
  }

  /** Return the panels of a layout with the fields of these logs, without those that they lack, and a sentence about these. */
  async fit(panels) {
    const { api, logs, say } = this.context, wanted = [], lacks = [];
    const look = (one) => { if (isObject(one) && (one.topic || one.means)) wanted.push({ one, log: one.log ?? logs[0].id }); };
    const curved = panels.filter(({ kind }) => CURVED.has(kind));
    for (const panel of curved) for (const one of curvesOf(panel)) look(one);
    const found = new Map();
    for (const { id } of logs) {
      const own = wanted.filter(({ log }) => log === id);
      for (let at = 0; at < own.length; at += AT_ONCE) {
        const some = own.slice(at, at + AT_ONCE).map(({ one }) => one);
        const s = some.map((one) => JSON.stringify(Object.fromEntries([...MEMBERS, "sql", "means", "label", "unit"].filter((name) => one[name]).map((name) => [name, one[name]]))));
        const answers = await api.get(`/api/logs/${id}/layout`, { s }).catch((error) => { say(error.message); return []; });
        some.forEach((one, i) => found.set(one, answers[i] ?? null));
      }
    }
    /** The curve in this log; null if it lacks it. */
    const fitted = (one) => {
      if (!isObject(one) || !(one.topic || one.means)) return one;
      const there = found.get(one);
      if (!there) { lacks.push([one.topic, one.field ?? one.function].filter(Boolean).join(".") || one.means); return null; }
      const { means, ...rest } = one, own = Object.fromEntries([...MEMBERS, "label", "unit"].map((name) => [name, there[name]]).filter(([, value]) => value));
      return { ...Object.fromEntries(Object.entries(rest).filter(([name]) => ![...MEMBERS, "label", "unit"].includes(name))), ...own };
    };
    const kept = panels.map((panel) => {
      if (SPACE.includes(panel.kind) && !this.context.side.includes(panel.kind)) { lacks.push(TITLES[panel.kind]); return null; }
      if (panel.kind === "compare" || panel.kind === "difference") if (logs.length < 2) { lacks.push("a second log"); return null; }
      if (!CURVED.has(panel.kind)) return panel;
      const curves = curvesOf(panel);
      if (!curves.length) return panel;
      if (curves[0] === panel) return fitted(panel);
      const whole = { ...panel };
      if (Array.isArray(panel.series)) whole.series = panel.series.map(fitted).filter(Boolean);
      else if (isObject(panel.series)) whole.series = fitted(panel.series);
      for (const part of ["x", "y"]) if (curves.includes(panel[part])) whole[part] = fitted(panel[part]);
      const none = Array.isArray(whole.series) ? !whole.series.length : curves.length > 0 && [whole.series, whole.x, whole.y].includes(null);
      return none ? null : whole;
    });
    const names = [...new Set(lacks)];
    return { panels: closed(panels, kept), lacks: names.length ? `This log lacks ${names.slice(0, 4).join(", ")}${names.length > 4 ? ` and ${names.length - 4} more` : ""} of the layout.` : "" };
  }

  /** Show a layout, as far as the logs have its fields. */
  async apply(layout, name = "") {
    const { plots, say, state } = this.context, { panels, lacks } = await this.fit(layout.panels ?? []);
    plots.restore(panels);
    for (const group of [this.context.upper, this.context.lower]) if (group?.tabs.some(({ kind }) => kind === layout[group.name])) group.choose(layout[group.name]);
    this.name = name;
    this.lacks = lacks;
    if (lacks) say(lacks);
    state.changed();
  }

  /** Take a layout from a file that the person chooses. */
  open() {
    const input = el("input", { type: "file", accept: ".json,application/json", hidden: true, id: "layout-file" });
    input.addEventListener("cancel", () => input.remove());
    input.addEventListener("change", async () => {
      const [file] = input.files;
      input.remove();
      if (!file) return;
      try {
        if (file.size > BYTES) throw new Error(`it has more than ${BYTES} bytes`);
        await this.apply(checked(JSON.parse(await file.text())));
        if (!this.lacks) this.context.say(`Opened ${file.name}.`);
      } catch (error) {
        this.context.say(`${file.name} is no layout: ${error.message}`);
      }
    });
    document.body.append(input);
    input.click();
  }

  /** Show the layout with which logs of this kind begin; return whether there is one. */
  async first() {
    const name = this.#begins, own = this.#stored()[this.kind] ?? {};
    if (typeof name !== "string" || !Object.hasOwn(own, name)) return false;
    await this.apply(sound(own[name]), name);
    return this.context.plots.frames.length > 0;
  }

  get #begins() {
    return this.kept.begin[this.kind] ?? remembered(BEGIN)[this.kind];
  }

  #begin(name, on) {
    const there = Object.hasOwn(this.kept.layouts[this.kind] ?? {}, name);
    return this.#change([...(on && !there ? [{ name, put: this.#stored()[this.kind][name] }] : []), { name, begin: on }]);
  }

  /** All layouts {kind: {name: layout}}: those that the viewer keeps, and those of this browser. */
  #stored() {
    const all = Object.fromEntries(Object.entries(remembered(STORE)).filter(([, named]) => isObject(named)));
    for (const [kind, named] of Object.entries(this.kept.layouts)) all[kind] = { ...all[kind], ...named };
    return all;
  }

  /** Make changes {name, put: layout, replaces: name}, {name, remove: true}, {name, begin: boolean}; return whether they are kept. */
  async #change(changes) {
    const { api, say } = this.context;
    let here = Boolean(this.kept.why);
    if (!here) {
      try {
        for (const change of changes) this.kept = await api.post("/api/layouts", { vehicle: this.kind, ...change });
      } catch (error) {
        if (error.status === 400) { say(error.message); return false; }
        here = true;
      }
    }
    const all = Object.fromEntries(Object.entries(remembered(STORE)).filter(([, named]) => isObject(named))), begin = remembered(BEGIN), own = (all[this.kind] ??= {});
    for (const { name, put, replaces, begin: on } of changes) {
      delete own[replaces];
      // What the viewer keeps, this browser need not.
      if (on !== undefined) begin[this.kind] = here && on ? name : null; else if (here && put) own[name] = put; else delete own[name];
    }
    try {
      if (here || localStorage.getItem(STORE)) localStorage.setItem(STORE, JSON.stringify(all));
      if (here || localStorage.getItem(BEGIN)) localStorage.setItem(BEGIN, JSON.stringify(begin));
    } catch {
      if (here) say("This browser keeps nothing for this page; save the layout as a file.");
      return !here;
    }
    return true;
  }

  async saveAs() {
    const name = await ask("Save the layout as", this.name);
    if (name) await this.save(name);
  }

  async save(name) {
    const own = this.#stored()[this.kind] ?? {};
    if (!Object.hasOwn(own, name) && Object.keys(own).length >= MOST) { this.context.say(`There are ${MOST} layouts already: delete one.`); return; }
    if (!await this.#change([{ name, put: this.current() }])) return;
    this.name = name;
    this.context.say(`Saved as “${name}” for ${this.kind}.`);
  }

  async rename() {
    const { name } = this, next = await ask(`Rename “${name}” to`, name), own = this.#stored()[this.kind] ?? {};
    if (!next || next === name) return;
    if (Object.hasOwn(own, next)) { this.context.say(`There is a layout “${next}” already.`); return; }
    const begins = this.#begins === name;
    if (!await this.#change([{ name: next, put: own[name], replaces: name }, ...(begins ? [{ name: next, begin: true }] : [])])) return;
    this.name = next;
  }

  async remove() {
    const { name } = this;
    if (!await this.#change([...(this.#begins === name ? [{ name, begin: false }] : []), { name, remove: true }])) return;
    this.name = "";
    this.context.say(`Deleted “${name}”. The panels stay.`);
  }

  menu(anchor) {
    menu(anchor, this.entries());
  }

  entries() {
    this.#note();
    const all = this.#stored(), own = Object.keys(all[this.kind] ?? {}).sort(), here = this.name && own.includes(this.name), begins = this.#begins === this.name;
    const shown = (kind, name) => ({ text: name, ...(kind === this.kind ? { on: name === this.name } : {}), run: () => this.apply({ ...sound(all[kind][name]) }, kind === this.kind ? name : "") });
    const others = Object.keys(all).filter((kind) => kind !== this.kind && Object.keys(all[kind]).length);
    return [
      ...(this.lacks ? [{ text: this.lacks }, null] : []),
      { text: "Undo (Ctrl-Z)", run: () => this.undo(), off: !this.past.length }, { text: "Redo (Ctrl-Shift-Z)", run: () => this.redo(), off: !this.next.length }, null,
      { text: `Layouts for ${this.kind}` }, { text: "Plots that fit this log", run: () => { this.name = ""; this.lacks = ""; return this.context.standard(); } }, ...own.map((name) => shown(this.kind, name)), null,
      ...others.flatMap((kind) => [{ text: `Layouts for ${kind}` }, ...Object.keys(all[kind]).sort().map((name) => shown(kind, name))]), null,
      { text: here ? `Save “${this.name}”` : "Save", run: () => this.save(this.name), off: !here }, { text: "Save as…", run: () => this.saveAs() },
      ...(here ? [{ text: "Begin with it", on: begins, run: () => this.#begin(this.name, !begins) }] : []),
      { text: "Rename…", run: () => this.rename(), off: !here }, { text: "Delete", run: () => this.remove(), off: !here }, null,
      { text: "Open a layout file…", run: () => this.open() }, { text: "Save as a layout file", run: () => this.context.takeaway.layout() },
    ];
  }
}

/** Return the object that this browser keeps somewhere; empty if there is none. */
function remembered(place) {
  try {
    const value = JSON.parse(localStorage.getItem(place) ?? "{}");
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Return the curves of a panel: those of a list, those of both axes, or the panel itself. */
function curvesOf(panel) {
  const list = Array.isArray(panel.series) ? panel.series.filter(isObject) : isObject(panel.series) ? [panel.series] : [];
  const axes = panel.kind === "xy" ? [panel.x, panel.y].filter(isObject) : [];
  return panel.topic || panel.means ? [panel] : [...list, ...axes];
}

function keyOf(one) {
  return JSON.stringify(MEMBERS.map((name) => one[name] ?? ""));
}

/** Leave out panels that are null; those that stood beside or below them take their places. */
function closed(panels, kept) {
  let row = null, cell = null;
  const done = [];
  panels.forEach((panel, i) => {
    const begins = panel.at !== "right" && panel.at !== "below";
    // The place that is free: that of the row, or of the cell, whose first panel is missing.
    if (begins) { row = panel; cell = panel; } else if (panel.at === "right") cell = panel;
    if (!kept[i]) return;
    const { at, height, ...rest } = kept[i];
    const place = row ? { ...(row.height ? { height: row.height } : {}) } : cell ? { at: "right" } : { at: "below" };
    done.push({ ...rest, ...place, ...(cell?.wide ? { wide: cell.wide } : {}) });
    row = null;
    cell = null;
  });
  return done;
}

/** Return a layout from a file of anybody; throws what is wrong with it. */
function checked(data) {
  if (!isObject(data)) throw new Error("it is no JSON object");
  if ((data.logreel ?? "layout") !== "layout") throw new Error("it says that it is something else");
  if (![1, 2].includes(data.version ?? 2)) throw new Error(`it has version ${JSON.stringify(data.version).slice(0, 20)}`);
  const layout = sound(data);
  if (!layout.panels) throw new Error("it has no sound list of panels");
  return layout;
}
