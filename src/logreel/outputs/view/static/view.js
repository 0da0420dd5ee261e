// The window and the cursors: every change of them goes through here, so that they stay inside the logs.

import { frame } from "./dom.js";

const LEAST = 100; // ns

export class View {
  /**
   * @param {Object} bus
   * @param {import("./time.js").Time} time
   * @param {import("./state.js").State} state
   */
  constructor(bus, time, state) {
    this.bus = bus;
    this.time = time;
    this.state = state;
    this.cursor = state.get("cursor");
    this.cursor2 = state.get("cursor2");
    const whole = time.whole(), [from, to] = state.get("window") ?? [whole.from, whole.to];
    this.window = to > from ? { from, to } : whole;
    this.send = frame(() => bus.send("window", this.window));
    this.sendCursor = frame(() => bus.send("cursor", this.cursor));
    state.from(() => ({
      window: this.isWhole() ? null : [Math.round(this.window.from), Math.round(this.window.to)],
      cursor: this.cursor, cursor2: this.cursor2,
    }));
  }

  isWhole() {
    const { from, to } = this.time.whole();
    return this.window.from <= from && this.window.to >= to;
  }

  get span() {
    return this.window.to - this.window.from;
  }

  /** Show an interval; it keeps its length where it would leave the logs. */
  setWindow(from, to) {
    const whole = this.time.whole(), most = whole.to - whole.from;
    let span = Math.min(Math.max(to - from, LEAST), most);
    if (!Number.isFinite(span)) return;
    if (to - from < LEAST) from = (from + to) / 2 - span / 2;
    from = Math.round(Math.min(Math.max(from, whole.from), whole.to - span));
    this.window = { from, to: from + span };
    this.send();
    this.state.changed();
  }

  /** Show 1/factor of the window, with the time `at` where it is. */
  zoom(factor, at = null) {
    const { from, to } = this.window;
    const place = at ?? (this.cursor != null && this.cursor >= from && this.cursor <= to ? this.cursor : (from + to) / 2);
    this.setWindow(place - (place - from) / factor, place + (to - place) / factor);
  }

  pan(ns) {
    this.setWindow(this.window.from + ns, this.window.to + ns);
  }

  all() {
    const { from, to } = this.time.whole();
    this.setWindow(from, to);
  }

  setCursor(axis) {
    const { from, to } = this.time.whole();
    this.cursor = axis == null ? null : Math.round(Math.min(Math.max(axis, from), to));
    this.sendCursor();
    this.state.changed();
  }

  setCursor2(axis) {
    this.cursor2 = axis == null ? null : Math.round(axis);
    this.bus.send("cursor2", this.cursor2);
    this.state.changed();
  }

  /** Move the window so that the cursor is in it. */
  reveal(axis = this.cursor) {
    if (axis == null || (axis >= this.window.from && axis <= this.window.to)) return;
    this.setWindow(axis - this.span / 2, axis + this.span / 2);
  }
}
