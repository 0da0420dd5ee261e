// Play: the cursor runs through the window, or steps from message to message.

import { button, el } from "./dom.js";
import { length } from "./time.js";

const RATES = [0.1, 0.25, 0.5, 1, 2, 5, 10, 50, 100];

export function play(element, context) {
  const { bus, view, time, api } = context;
  let on = false, rate = 1, loop = false, last = 0, place = 0;
  const start = button("▶", "Play (Space)", () => toggle(), { "aria-pressed": "false" });
  const speed = el("select", { "aria-label": "Rate of play", on: { change: () => { rate = Number(speed.value); told(); } } },
    RATES.map((value) => el("option", { value, selected: value === 1 }, `${value}×`)));
  const again = button("⟳", "Play the window again and again", () => { loop = !loop; again.setAttribute("aria-pressed", loop); }, { "aria-pressed": "false" });
  const now = el("div", { class: "now" }), delta = el("div", { class: "delta" });
  element.replaceChildren(
    el("div", { class: "row" }, start, button("‹", "Step back (←)", () => step(-1)), button("›", "Step on (→)", () => step(1)), speed, again,
      button("All", "Show the whole log (0)", () => view.all())),
    now, delta);

  function told() {
    start.textContent = on ? "❚❚" : "▶";
    start.setAttribute("aria-pressed", on);
    bus.send("playing", { on, rate });
  }

  function toggle() {
    on = !on;
    told();
    if (!on) return;
    const { from, to } = view.window;
    place = view.cursor == null || view.cursor < from || view.cursor >= to ? from : view.cursor;
    last = performance.now();
    requestAnimationFrame(run);
  }

  function run(at) {
    if (!on) return;
    // A hidden tab has no frames: what it missed is not caught up with.
    const passed = Math.min(Math.max(at - last, 0), 250);
    last = at;
    if (Math.round(place) !== view.cursor && view.cursor != null && Math.abs(view.cursor - place) > 2e6 * rate + 1) place = view.cursor;
    place += passed * 1e6 * rate;
    const { from, to } = view.window, { to: end } = time.whole();
    if (place >= to) {
      if (loop) place = from;
      else if (to < end && place < end) view.setWindow(place, place + view.span);
      else { on = false; place = to; }
    }
    view.setCursor(place);
    if (on) requestAnimationFrame(run); else told();
  }

  /** Move the cursor to the next or previous message of the chosen channel, else by a hundredth of the window. */
  async function step(count) {
    const chosen = bus.last("select") ?? first(), base = view.cursor ?? view.window.from;
    if (chosen) {
      try {
        const found = await api.get(`/api/logs/${chosen.log}/message`, { topic: chosen.topic, at: Math.round(time.toLog(chosen.log, base)), step: count });
        view.setCursor(time.toAxis(chosen.log, found.t));
        view.reveal();
        return;
      } catch { /* no further message: the window's hundredth must do */ }
    }
    view.setCursor(base + (count * view.span) / 100);
    view.reveal();
  }

  /** The channel of the first curve of the chosen plot. */
  function first() {
    const series = context.plots.chosen?.panel?.series?.()[0] ?? context.plots.series()[0];
    return series ? { log: series.log, topic: series.topic } : null;
  }

  function show() {
    const { cursor, cursor2 } = view;
    now.textContent = cursor == null ? time.full(view.window.from) : time.full(cursor);
    now.title = cursor == null ? "Start of the window" : `Cursor: ${time.full(cursor, 1)}`;
    delta.textContent = cursor2 != null && cursor != null ? `second: Δ ${length(cursor2 - cursor)}` : `window ${length(view.span)}`;
  }
  for (const kind of ["cursor", "cursor2", "window", "clock", "shift"]) bus.on(kind, show);
  show();
  return { toggle, step, get on() { return on; } };
}
