// The column of plots: frames with a bar and a body, one panel in each.

import { button, drag, el } from "./dom.js";
import { menu } from "./menu.js";
import { mount } from "./panels/registry.js";
import { sentence } from "./panels/sentence.js";

export const FIELD = "application/x-logreel-field";

export class Plots {
  /**
   * @param {HTMLElement} element
   * @param {Object} context
   */
  constructor(element, context) {
    this.element = element;
    this.context = context;
    this.frames = [];
    this.chosen = null;
    this.empty = sentence("Drag a field here from the tree, or press Ctrl-K and type its name.");
    element.style.position = "relative";
    element.append(this.empty);
    this.#drops(element, (series) => this.add("plot", { series: [series] }));
    // Before the first panels are there, the address keeps those that it names.
    this.ready = false;
    context.state.from(() => (this.ready ? { panels: this.settings() } : {}));
    new ResizeObserver(() => { this.room = element.clientHeight; this.#heights(); }).observe(element);
    // Panels are made when they come into sight: a log may deserve dozens of plots.
    this.sight = new IntersectionObserver((seen) => seen.forEach((one) => this.#seen(one)), { root: element, rootMargin: "120px" });
  }

  settings() {
    return this.frames.map(({ kind, panel, settings, height }) => ({ kind, ...(panel?.settings?.() ?? settings), ...(height ? { height } : {}) }));
  }

  /** Add a panel after the chosen one, or at the end or the top. */
  async add(kind, settings = {}, { choose = true, last = false, first = false } = {}) {
    const frame = { kind, settings, height: settings.height ?? 0 };
    frame.title = el("h2", {}, settings.title ?? "");
    frame.legend = el("ul", { class: "legend", "aria-label": "Curves and their values at the cursor" });
    frame.body = el("div", { class: "body" });
    const grip = el("div", { class: "grip", on: { pointerdown: (event) => this.#resize(event, frame) } });
    frame.element = el("section", { class: "frame", tabindex: 0, on: { focusin: () => this.choose(frame), pointerdown: () => this.choose(frame) } },
      el("div", { class: "bar" }, frame.title, frame.legend,
        button("⋯", "Menu of this panel", (event) => menu(event.currentTarget, this.#entries(frame))),
        button("✕", "Close this panel (x)", () => this.remove(frame))),
      frame.body, grip);
    this.#drops(frame.element, (series, event) => {
      if (event.shiftKey || !frame.panel?.drop) this.add("plot", { series: [series] });
      else frame.panel.drop(series);
    });
    const at = first ? 0 : last || !this.chosen ? this.frames.length : this.frames.indexOf(this.chosen) + 1;
    this.element.insertBefore(frame.element, this.frames[at]?.element ?? null);
    this.frames.splice(at, 0, frame);
    if (choose) this.choose(frame);
    this.#heights();
    const context = { ...this.context, legend: frame.legend, title: (text, unit = "") => this.#title(frame, text, unit) };
    frame.mount = () => {
      frame.mounted ??= mount(kind, settings, context, frame.body).then((panel) => {
        frame.panel = panel;
        if (!this.frames.includes(frame)) panel.dispose();
        return panel;
      });
      return frame.mounted;
    };
    if (settings.title) this.#title(frame, settings.title);
    this.sight.observe(frame.element);
    if (choose) await frame.mount();
    this.context.state.changed();
    return frame;
  }

  /** Wait until the panels in sight are drawn, but not longer than `patience` ms. */
  async drawn(patience = 4000) {
    const end = performance.now() + patience;
    const pending = ({ element, body }) => !("seen" in element.dataset) || (element.dataset.seen && !body.dataset.ready);
    while (this.frames.some(pending) && performance.now() < end) await new Promise((done) => setTimeout(done, 10));
  }

  #seen({ target, isIntersecting }) {
    const frame = this.frames.find(({ element }) => element === target);
    if (!frame) return;
    if (isIntersecting) {
      delete frame.body.dataset.away;
      if (frame.panel) frame.panel.seen?.(); else frame.mount();
    } else frame.body.dataset.away = "yes";
    frame.element.dataset.seen = isIntersecting ? "yes" : "";
  }

  #title(frame, text, unit) {
    frame.title.replaceChildren(text, ...(unit ? [el("span", { class: "faint unit" }, ` [${unit}]`)] : []));
    frame.title.title = text;
    frame.element.setAttribute("aria-label", text);
  }

  remove(frame = this.chosen) {
    const at = this.frames.indexOf(frame);
    if (at < 0) return;
    frame.panel?.dispose();
    this.sight.unobserve(frame.element);
    frame.element.remove();
    this.frames.splice(at, 1);
    if (frame === this.chosen) this.chosen = null;
    this.choose(this.frames[Math.min(at, this.frames.length - 1)] ?? null);
    this.chosen?.element.focus();
    this.#heights();
    this.context.state.changed();
  }

  clear() {
    while (this.frames.length) this.remove(this.frames[0]);
  }

  choose(frame) {
    if (frame === this.chosen) return;
    this.chosen?.element.classList.remove("chosen");
    this.chosen = frame;
    frame?.element.classList.add("chosen");
  }

  /** Put a field into the chosen plot, or into a new one. */
  async plot(series, { fresh = false } = {}) {
    const frame = this.chosen?.panel?.drop && !fresh ? this.chosen : null;
    if (frame) frame.panel.drop(series);
    else (await this.add("plot", { series: [series] })).element.scrollIntoView({ block: "nearest" });
    this.context.state.changed();
  }

  /** Return the series of all plots, or of those in sight, each once. */
  series({ inSight = false } = {}) {
    const found = new Map();
    for (const { panel, settings } of this.frames.filter(({ element }) => !inSight || element.dataset.seen)) for (const one of panel?.series?.() ?? planned(settings, this.context)) found.set(JSON.stringify(one), one);
    return [...found.values()];
  }

  move(step) {
    const at = this.frames.indexOf(this.chosen) + step;
    this.frames[Math.min(Math.max(at, 0), this.frames.length - 1)]?.element.focus();
  }

  #entries(frame) {
    const at = this.frames.indexOf(frame);
    const swap = (step) => () => {
      const other = this.frames[at + step];
      this.frames[at] = other;
      this.frames[at + step] = frame;
      if (step < 0) this.element.insertBefore(frame.element, other.element); else this.element.insertBefore(other.element, frame.element);
      this.context.state.changed();
    };
    return [
      ...(frame.panel?.menu?.() ?? []), null,
      { text: "Move up", run: swap(-1), off: at === 0 },
      { text: "Move down", run: swap(1), off: at === this.frames.length - 1 },
      { text: "Automatic height", run: () => { frame.height = 0; this.#heights(); }, off: !frame.height },
      { text: "Close", run: () => this.remove(frame) },
    ];
  }

  #resize(event, frame) {
    const start = event.clientY, before = frame.element.clientHeight;
    drag(event, (now) => { frame.height = Math.max(96, before + now.clientY - start); this.#heights(); }, () => this.context.state.changed());
  }

  #heights() {
    this.empty.hidden = this.frames.length > 0;
    // As many whole plots as fit well; those of the first screen at least.
    // Not asked of the page for each of many panels, which would lay them out as often.
    const room = (this.room ||= this.element.clientHeight), fit = Math.max(this.context.first ?? 4, Math.round(room / 240));
    const height = Math.max(112, Math.floor(room / Math.max(1, Math.min(this.frames.length, fit))));
    for (const frame of this.frames) frame.element.style.flex = frame.height ? `0 0 ${frame.height}px` : `1 0 ${height}px`;
  }

  #drops(element, dropped) {
    const accepts = (event) => event.dataTransfer.types.includes(FIELD);
    element.addEventListener("dragover", (event) => {
      if (!accepts(event)) return;
      event.preventDefault();
      event.stopPropagation();
      event.dataTransfer.dropEffect = "copy";
      element.classList.add("drop");
    });
    element.addEventListener("dragleave", (event) => { if (!element.contains(event.relatedTarget)) element.classList.remove("drop"); });
    element.addEventListener("drop", (event) => {
      element.classList.remove("drop");
      if (!accepts(event)) return;
      event.preventDefault();
      event.stopPropagation();
      dropped(JSON.parse(event.dataTransfer.getData(FIELD)), event);
    });
  }
}

/** The curves of a plot that was not in sight yet. */
function planned({ series }, { logs }) {
  return (series ?? []).filter((one) => !one.hidden).map((one) => ({ ...one, log: one.log ?? logs[0].id }));
}
