// Regions of the page: bars that change their sizes, and groups of tabs.

import { el, drag } from "./dom.js";
import { mount } from "./panels/registry.js";

const LIMITS = { tree: [150, 700], side: [220, 1400], bottom: [60, 700], lower: [80, 900] };

/** Make the bars between regions work, by pointer and by arrow keys. */
export function splits(state) {
  const root = document.documentElement, sizes = { ...state.get("sizes", {}) };
  const set = (name, size) => {
    const [least, most] = LIMITS[name];
    sizes[name] = Math.round(Math.min(Math.max(size, least), most));
    root.style.setProperty(`--${name}`, `${sizes[name]}px`);
    state.set("sizes", sizes);
  };
  for (const [name, size] of Object.entries(sizes)) if (Object.hasOwn(LIMITS, name) && Number.isFinite(size)) set(name, size);
  for (const bar of document.querySelectorAll(".split")) {
    const name = bar.dataset.split, across = bar.classList.contains("across"), sign = name === "tree" ? 1 : -1;
    const box = document.getElementById(name);
    const size = () => (across ? box.clientHeight : box.clientWidth);
    bar.addEventListener("pointerdown", (event) => {
      const before = size(), start = across ? event.clientY : event.clientX;
      drag(event, (now) => set(name, before + sign * ((across ? now.clientY : now.clientX) - start)));
    });
    bar.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      set(name, size() + sign * 16 * step);
    });
  }
}

/** A group of panels behind tabs; `wide` shows two of them side by side. */
export class Tabs {
  /**
   * @param {HTMLElement} element
   * @param {Array<{kind: string, title: string}>} tabs
   * @param {Object} context
   * @param {{name: string, chosen: string, label: string}} options `name` is where the choice is kept in the state
   */
  constructor(element, tabs, context, { name, chosen, label }) {
    this.tabs = tabs;
    this.context = context;
    this.name = name;
    this.panels = new Map();
    this.list = el("div", { class: "tabs", role: "tablist", "aria-label": label });
    this.place = el("div", { class: "tabbed" });
    for (const { kind, title } of tabs) {
      const tab = el("button", {
        type: "button", role: "tab", id: `tab-${kind}`, "aria-controls": `panel-${kind}`,
        on: { click: () => this.choose(kind), pointerdown: (event) => context.plots.carry(event, { kind, settings: () => ({}) }), keydown: (event) => this.#key(event, kind) },
      }, title);
      this.list.append(tab);
      this.place.append(el("div", { role: "tabpanel", id: `panel-${kind}`, "aria-labelledby": `tab-${kind}`, hidden: true }));
    }
    element.replaceChildren(this.list, this.place);
    this.wide = matchMedia("(min-width: 2000px)");
    this.wide.addEventListener("change", () => this.choose(this.chosen));
    this.choose(tabs.some(({ kind }) => kind === chosen) ? chosen : tabs[0].kind);
  }

  #key(event, kind) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.tabs[(this.tabs.findIndex((one) => one.kind === kind) + step + this.tabs.length) % this.tabs.length].kind;
    this.choose(next);
    document.getElementById(`tab-${next}`).focus();
  }

  /** Show a tab; with two side by side the one before stays. */
  choose(kind) {
    const shown = [kind];
    if (this.wide.matches && this.tabs.length > 1) {
      const other = this.chosen && this.chosen !== kind ? this.chosen : this.tabs.find((one) => one.kind !== kind).kind;
      shown.push(other);
    }
    this.chosen = kind;
    this.context.state.set(this.name, kind);
    for (const one of this.tabs) {
      const tab = document.getElementById(`tab-${one.kind}`), panel = document.getElementById(`panel-${one.kind}`);
      tab.setAttribute("aria-selected", shown.includes(one.kind));
      tab.tabIndex = one.kind === kind ? 0 : -1;
      panel.hidden = !shown.includes(one.kind);
      // What is not looked at asks for nothing.
      if (panel.hidden) this.#drop(one.kind); else this.#open(one.kind, panel);
    }
  }

  #open(kind, element) {
    if (this.panels.has(kind)) return;
    const saved = this.context.state.get("tabs", {})[kind] ?? {};
    this.panels.set(kind, mount(kind, saved, this.context, element));
  }

  async #drop(kind) {
    const panel = this.panels.get(kind);
    if (!panel) return;
    this.panels.delete(kind);
    const shown = await panel;
    this.context.state.set("tabs", { ...this.context.state.get("tabs", {}), [kind]: shown.settings?.() ?? {} });
    shown.dispose();
    if (!this.panels.has(kind)) document.getElementById(`panel-${kind}`).replaceChildren();
  }
}
