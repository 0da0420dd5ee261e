// The panels in the middle: frames with a bar and a body, one panel in each, as the grid places them.

import { button, drag, el } from "./dom.js";
import { Grid, PLACE } from "./grid.js";
import { menu } from "./menu.js";
import { mount } from "./panels/registry.js";
import { sentence } from "./panels/sentence.js";
import { ruler } from "./ruler.js";

export const FIELD = "application/x-logreel-field";
/** Panels over the axis of time. */
const TIMED = ["plot", "difference", "spectrogram"];
/** Headings of panels that have none of their own. */
export const TITLES = { map: "Map", scene: "3D", picture: "Pictures", text: "Text & events", message: "Message", parameters: "Parameters", findings: "Findings", problems: "Problems", compare: "Compare logs" };

export class Plots {
  /**
   * @param {HTMLElement} element
   * @param {Object} context
   */
  constructor(element, context) {
    this.element = element;
    this.context = context;
    this.grid = new Grid();
    this.bars = [];
    this.made = 0;
    this.chosen = null;
    /** The panel that is alone on the page. */
    this.full = null;
    this.empty = sentence("Drag a field here from the tree, or press Ctrl-K and type its name.");
    this.hint = el("div", { class: "hint", hidden: true });
    element.style.position = "relative";
    element.append(this.empty, this.hint);
    this.#drops(element, (series) => this.add("plot", { series: [series] }));
    // Before the first panels are there, the address keeps those that it names.
    this.ready = false;
    context.state.from(() => (this.ready ? { panels: this.settings() } : {}));
    new ResizeObserver(() => { this.room = element.clientHeight; this.#arrange(); }).observe(element);
    // Panels are made when they come into sight: a log may deserve dozens of plots.
    this.sight = new IntersectionObserver((seen) => seen.forEach((one) => this.#seen(one)), { root: element, rootMargin: "120px" });
  }

  get frames() {
    return this.grid.frames;
  }

  settings() {
    const places = this.grid.places();
    return this.frames.map((frame) => ({ kind: frame.kind, ...(frame.panel?.settings?.() ?? frame.settings), ...places.get(frame) }));
  }

  /** Return the panels as `restore` takes them, as text; equal as long as nobody changed them. */
  snapshot() {
    const places = this.grid.places();
    return JSON.stringify(this.frames.map((frame) => ({ id: frame.id, kind: frame.kind, ...kept(frame), ...places.get(frame) })));
  }

  /** Show these panels {kind, id, at, height, wide, tall, …settings}; those that are there already, by their id, stay. */
  restore(list) {
    this.maximise(null);
    const before = new Map(this.frames.map((frame) => [frame.id, frame])), fresh = [];
    const items = list.map((one) => {
      const { kind, id, ...rest } = one, settings = without(rest, PLACE), there = before.get(id);
      if (there && there.kind === kind && JSON.stringify(kept(there)) === JSON.stringify(settings)) {
        before.delete(id);
        return { ...one, frame: there };
      }
      fresh.push(this.#frame(String(kind), settings, id));
      return { ...one, frame: fresh.at(-1) };
    });
    for (const frame of before.values()) this.#drop(frame);
    this.grid.build(items);
    this.#arrange();
    for (const { element } of fresh) this.sight.observe(element);
    if (!this.frames.includes(this.chosen)) this.choose(this.frames[0] ?? null);
    this.context.state.changed();
  }

  /** Add a panel at a side of another one: by default under the row of the chosen one, or at the end or the top. */
  async add(kind, settings = {}, { choose = true, last = false, first = false, beside = null, side = "under" } = {}) {
    const frame = this.#frame(kind, without(settings, PLACE));
    this.maximise(null);
    if (first) this.grid.put(frame, this.frames[0], "over");
    else this.grid.put(frame, beside ?? (last ? null : this.chosen), side);
    this.#arrange();
    if (choose) this.choose(frame);
    this.sight.observe(frame.element);
    if (choose) await frame.mount();
    this.context.state.changed();
    return frame;
  }

  #frame(kind, settings, id = null) {
    this.made = Math.max(this.made, id ?? 0) + (id == null ? 1 : 0);
    const frame = { id: id ?? this.made, kind, settings, tall: 1, units: kind in TITLES ? 2 : 1 };
    frame.title = el("h2", {}, settings.title ?? "");
    frame.legend = el("ul", { class: "legend", "aria-label": "Curves and their values at the cursor" });
    frame.body = el("div", { class: "body" });
    const grip = el("div", { class: "grip", on: { pointerdown: (event) => this.#resize(event, frame) } }), free = (event) => !event.target.closest("button, input, select, a");
    const bar = el("div", { class: "bar", on: { pointerdown: (event) => { if (!event.button && free(event)) this.carry(event, { frame }); }, dblclick: (event) => { if (free(event)) this.maximise(frame); } } }, frame.title, frame.legend,
      button("⋯", "Menu of this panel", (event) => menu(event.currentTarget, this.#entries(frame))),
      button("✕", "Close this panel (x)", () => this.remove(frame)));
    frame.element = el("section", { class: "frame", tabindex: 0, dataset: { kind }, on: { focusin: () => this.choose(frame), pointerdown: () => this.choose(frame) } }, bar, frame.body, grip);
    this.#drops(frame.element, (series, event) => {
      if (event.shiftKey || !frame.panel?.drop) this.add("plot", { series: [series] }, { beside: frame });
      else frame.panel.drop(series);
    });
    const context = { ...this.context, legend: frame.legend, title: (text, unit = "") => this.#title(frame, text, unit) };
    frame.mount = () => {
      frame.mounted ??= mount(kind, settings, context, frame.body).then((panel) => {
        frame.panel = panel;
        frame.base = JSON.stringify(panel.settings?.() ?? {});
        if (!this.frames.includes(frame)) panel.dispose();
        return panel;
      });
      return frame.mounted;
    };
    if (settings.title || TITLES[kind]) this.#title(frame, settings.title || TITLES[kind]);
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

  #drop(frame) {
    frame.panel?.dispose();
    this.sight.unobserve(frame.element);
    frame.ruler?.();
    frame.element.remove();
  }

  remove(frame = this.chosen) {
    const at = this.frames.indexOf(frame);
    if (at < 0) return;
    if (this.full === frame) this.maximise(null);
    this.#drop(frame);
    this.grid.take(frame);
    if (frame === this.chosen) this.chosen = null;
    this.choose(this.frames[Math.min(at, this.frames.length - 1)] ?? null);
    this.#arrange();
    this.chosen?.element.focus();
    this.context.state.changed();
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

  /** Choose the panel before or after the chosen one. */
  move(step) {
    const { frames } = this, at = frames.indexOf(this.chosen) + step, next = frames[Math.min(Math.max(at, 0), frames.length - 1)];
    if (this.full && next) this.maximise(next);
    next?.element.focus();
  }

  /** Move a panel by one place: "left", "right", "above" or "below". */
  shift(side, frame = this.chosen) {
    if (!frame || this.full) return;
    const focused = frame.element.contains(document.activeElement);
    if (!this.grid.move(frame, side)) return;
    this.#arrange();
    if (focused) frame.element.focus();
    frame.element.scrollIntoView({ block: "nearest" });
    this.context.state.changed();
  }

  /** Give a panel the whole page between head and strip, or all panels their places again. */
  maximise(frame = this.chosen) {
    const next = frame === this.full ? null : frame, before = this.full;
    if (next === before) return;
    if (!before) this.scrolled = this.element.scrollTop;
    this.full = next;
    document.getElementById("work").classList.toggle("full", Boolean(next));
    this.#arrange();
    this.element.scrollTop = next ? 0 : this.scrolled;
    next?.element.focus({ preventScroll: true });
    if (next) this.context.say("Escape, or a double click on the heading, brings all panels back.");
  }

  /** Let the pointer carry a panel {frame}, or one to make {kind, settings}, to another place. */
  carry(event, what) {
    let spot = null, over = false;
    const escape = (key) => { if (key.key === "Escape") { key.stopPropagation(); over = true; this.#hint(spot = null); } };
    addEventListener("keydown", escape, true);
    drag(event, ({ clientX: x, clientY: y }) => {
      const { left, right, top, bottom } = this.element.getBoundingClientRect();
      if (over || this.full || x < left || x > right) return this.#hint(spot = null);
      // At its ends the column scrolls.
      if (y < top + 24) this.element.scrollTop -= 16; else if (y > bottom - 24) this.element.scrollTop += 16;
      return this.#hint(spot = y < top || y > bottom ? null : this.grid.spot(x, y, what.frame));
    }, ({ type }, moved) => {
      removeEventListener("keydown", escape, true);
      this.#hint(null);
      if (!moved || !spot || type !== "pointerup") return;
      const { other, side } = spot;
      if (!what.frame) { this.add(what.kind, what.settings(), { beside: other, side }); return; }
      const near = other !== what.frame ? other : this.grid.find(other).row.cells.flatMap(({ frames }) => frames).find((one) => one !== other);
      if (!near) return;
      this.grid.take(what.frame);
      this.grid.put(what.frame, near, side);
      this.#arrange();
      this.context.state.changed();
    });
  }

  /** Show where a panel would stand. */
  #hint(spot) {
    const base = this.element.getBoundingClientRect(), box = spot && (spot.box ?? base);
    this.hint.hidden = !box;
    document.documentElement.classList.toggle("carrying", Boolean(box));
    if (box) Object.assign(this.hint.style, { left: `${box.left - base.left}px`, top: `${box.top - base.top + this.element.scrollTop}px`, width: `${box.width}px`, height: `${box.height}px` });
  }

  #entries(frame) {
    const { row, cell } = this.grid.find(frame), rows = this.grid.rows, alone = row.cells.length === 1 && cell.frames.length === 1;
    const lone = rows.length === 1 && alone, ends = (list, one) => [list[0] === one, list.at(-1) === one];
    const [top, bottom] = alone ? ends(rows, row) : [false, false], [leftmost, rightmost] = alone ? [lone, lone] : cell.frames.length > 1 ? [false, false] : ends(row.cells, cell);
    const move = (text, side, off) => ({ text: `Move ${text}`, run: () => this.shift(side, frame), off: off || Boolean(this.full) });
    return [
      ...(frame.panel?.menu?.() ?? []), null,
      move("up", "above", top), move("down", "below", bottom), move("left", "left", leftmost), move("right", "right", rightmost), null,
      { text: "New plot at the right", run: () => this.add("plot", { series: [] }, { beside: frame, side: "right" }) },
      { text: "New plot below", run: () => this.add("plot", { series: [] }, { beside: frame, side: "below" }) },
      { text: this.full === frame ? "All panels (f)" : "Maximise (f)", run: () => this.maximise(frame) },
      { text: "Automatic size", run: () => { row.height = 0; row.cells.forEach((one) => { one.wide = 1; one.frames.forEach((other) => { other.tall = 1; }); }); this.#arrange(); this.context.state.changed(); } },
      { text: "Close", run: () => this.remove(frame) },
    ];
  }

  /** Change the height of a row by its lower edge, or the shares of two panels below each other by the edge between them. */
  #resize(event, frame) {
    const { row, cell } = this.grid.find(frame), start = event.clientY, next = cell.frames[cell.frames.indexOf(frame) + 1];
    if (this.full) return;
    const high = frame.element.clientHeight, both = high + (next?.element.clientHeight ?? 0), tall = frame.tall * frame.units + (next ? next.tall * next.units : 0);
    const whole = Math.max(...row.cells.map(({ frames }) => frames.reduce((sum, { element }) => sum + element.offsetHeight, 0)));
    drag(event, (now) => {
      const by = now.clientY - start;
      if (next) {
        const part = Math.min(Math.max(high + by, 60), both - 60);
        frame.tall = (tall * part) / frame.units / both;
        next.tall = (tall * (both - part)) / next.units / both;
      } else row.height = Math.max(96, whole + by);
      this.#arrange();
    }, () => this.context.state.changed());
  }

  #arrange() {
    const { frames, full } = this;
    this.empty.hidden = frames.length > 0;
    // Tab goes from panel to panel as they stand.
    let before = this.empty;
    for (const { element } of frames) {
      if (before.nextSibling !== element) before.after(element);
      before = element;
    }
    // Not asked of the page for each of many panels, which would lay them out as often.
    const room = (this.room ||= this.element.clientHeight), bars = this.grid.arrange(this.element.clientWidth, room, this.context.first ?? 4);
    const beside = new Set(bars.flatMap(({ row }) => row.cells.flatMap((cell) => cell.frames)).filter(({ kind }) => TIMED.includes(kind)));
    for (const frame of frames) if (beside.has(frame) !== Boolean(frame.ruler)) this.#rule(frame);
    for (const { element } of frames) element.hidden = Boolean(full) && full.element !== element;
    if (full) Object.assign(full.element.style, { left: 0, width: "100%", top: 0, height: `${room}px` });
    while (this.bars.length > bars.length) this.bars.pop().remove();
    while (this.bars.length < bars.length) {
      const bar = el("div", { class: "split between", role: "separator", "aria-orientation": "vertical", "aria-label": "Width of the panels beside each other", tabindex: 0, on: { pointerdown: (event) => this.#widen(event), keydown: (event) => this.#widen(event) } });
      this.bars.push(bar);
      this.element.append(bar);
    }
    bars.forEach(({ row, at, left, top, height }, i) => {
      Object.assign(this.bars[i].style, { left: `calc(${left}% - 3px)`, top: `${top}px`, height: `${height}px` });
      Object.assign(this.bars[i], { between: { row, at }, hidden: Boolean(full) });
    });
  }

  /** Give a panel an axis of time of its own, or take it away: panels beside others are not above that of the page. */
  #rule(frame) {
    if (frame.ruler) {
      frame.ruler();
      frame.foot.remove();
      frame.ruler = null;
    } else {
      frame.foot = el("div", { class: "foot" });
      frame.body.before(frame.foot);
      frame.ruler = ruler(frame.foot, this.context);
    }
  }

  /** Move the bar between two cells, by the pointer or by arrow keys. */
  #widen(event) {
    const { row, at } = event.currentTarget.between, [one, other] = [row.cells[at - 1], row.cells[at]], both = one.wide + other.wide;
    const pixels = one.frames[0].element.offsetWidth + other.frames[0].element.offsetWidth, wide = one.wide;
    const set = (by) => {
      one.wide = Math.min(Math.max(wide + (both * by) / pixels, both * 0.1), both * 0.9);
      other.wide = both - one.wide;
      this.#arrange();
    };
    if (event.type === "pointerdown") { drag(event, (now) => set(now.clientX - event.clientX), () => this.context.state.changed()); return; }
    const step = { ArrowLeft: -16, ArrowRight: 16 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    set(step);
    this.context.state.changed();
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

function without(values, names) {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
}

/** The settings of a panel, in the words in which they were given as long as nobody changed them. */
function kept({ panel, settings, base }) {
  const now = panel?.settings?.();
  return !now || JSON.stringify(now) === base ? settings : now;
}

/** The curves of a plot that was not in sight yet. */
function planned({ series }, { logs }) {
  if (!Array.isArray(series)) return [];
  return series.filter((one) => !one.hidden).map((one) => ({ ...one, log: one.log ?? logs[0].id }));
}
