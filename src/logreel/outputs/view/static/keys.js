// The keyboard.

import { button, el } from "./dom.js";
import { toggleTheme } from "./head.js";
import { shownMarks } from "./panels/plot_draw.js";

const HELP = [
  ["Ctrl K or ⌘K", "find a field or a command"], ["/", "search in the tree"],
  ["Space", "play or pause"], ["← →", "step to the next message (Shift: one second)"],
  ["+ −", "zoom in, zoom out"], ["0", "whole log"],
  ["[ ]", "move the window"], ["Home End", "first, last moment"],
  ["c", "second cursor here, or away"], ["v", "swap the cursors"],
  ["Alt ↑ ↓", "choose the panel before or behind"], ["x", "close the chosen panel"],
  ["Shift Alt ↑ ↓ ← →", "move the chosen panel"], ["f", "maximise the chosen panel, or all again (Escape)"],
  ["Ctrl Z", "undo (Shift: redo)"], ["Drag a heading", "move the panel, or the tab, to another place"],
  ["n p", "next or previous marker or note"], ["b", "note at the cursor (Shift: on the window)"], ["m", "menu of the chosen panel"],
  ["t", "light or dark"], ["k", "next clock: since start, UTC, log"],
  ["Enter in the tree", "plot the field (Shift: in a new plot)"], ["*", "pin the field in the tree"],
  ["Drag in a plot", "zoom (Shift: move)"], ["Wheel in a plot", "zoom at the pointer"],
  ["Click in a plot", "cursor (Shift: second cursor)"], ["Double click", "whole log"],
];

export function keys(context) {
  const { view, time, bus, plots } = context;
  const sheet = el("dialog", { "aria-label": "Keys" }, el("div", { class: "inside" },
    el("h2", {}, "Keys"),
    el("div", { class: "keys" }, HELP.map(([key, text]) => [el("span", {}, el("kbd", {}, key)), el("span", {}, text)])),
    el("div", { class: "row" }, button("Close", "Close", () => sheet.close()))));
  document.body.append(sheet);
  context.help = () => sheet.showModal();

  const cursor = () => bus.last("hover") ?? view.cursor ?? (view.window.from + view.window.to) / 2;
  const marker = (step) => {
    const now = view.cursor ?? view.window.from - 1;
    const times = shownMarks(context, context.logs).filter(({ kind }) => kind !== "parameter").map(({ t }) => t).sort((a, b) => a - b);
    if (!times.length) { context.say("No text passes the filter."); return; }
    const next = step > 0 ? times.find((t) => t > now) : times.findLast((t) => t < now);
    if (next != null) { view.setCursor(next); view.reveal(next); }
  };
  const run = {
    " ": () => context.play.toggle(),
    ArrowLeft: (event) => (event.shiftKey ? move(-1e9) : context.play.step(-1)),
    ArrowRight: (event) => (event.shiftKey ? move(1e9) : context.play.step(1)),
    "+": () => view.zoom(1.6), "=": () => view.zoom(1.6), "-": () => view.zoom(1 / 1.6), "0": () => view.all(),
    "[": () => view.pan(-view.span / 4), "]": () => view.pan(view.span / 4),
    Home: () => { view.setCursor(time.whole().from); view.reveal(time.whole().from); },
    End: () => { view.setCursor(time.whole().to); view.reveal(time.whole().to); },
    c: () => view.setCursor2(view.cursor2 == null ? cursor() : null),
    v: () => { const { cursor: one, cursor2: two } = view; if (two != null) { view.setCursor(two); view.setCursor2(one); } },
    x: () => plots.remove(), f: () => plots.maximise(), Escape: () => plots.maximise(null),
    n: () => marker(1), p: () => marker(-1),
    b: () => context.notes.add(false), B: () => context.notes.add(true),
    m: () => plots.chosen?.element.querySelector(".bar > button").click(),
    t: () => toggleTheme(context),
    k: () => { const all = time.clocks(); time.setClock(all[(all.indexOf(time.clock) + 1) % all.length]); },
    "?": () => context.help(),
    "/": () => document.querySelector("#tree input").focus(),
  };
  function move(ns) {
    view.setCursor((view.cursor ?? view.window.from) + ns);
    view.reveal();
  }

  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && ["z", "y"].includes(event.key.toLowerCase()) && !event.target.closest("dialog, input, textarea, select")) {
      event.preventDefault();
      if (event.shiftKey || event.key.toLowerCase() === "y") context.layouts.redo(); else context.layouts.undo();
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      context.find.open();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
    const { target } = event;
    if (target.closest("dialog") || (target.matches("input, textarea, select") && target.type !== "checkbox")) return;
    const side = { ArrowUp: "above", ArrowDown: "below", ArrowLeft: "left", ArrowRight: "right" }[event.key];
    if (event.altKey && event.shiftKey && side) {
      event.preventDefault();
      plots.shift(side);
      return;
    }
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      plots.move(event.key === "ArrowUp" ? -1 : 1);
      return;
    }
    if (event.altKey || !Object.hasOwn(run, event.key)) return;
    // Space on a button presses that button.
    if (event.key === " " && target.matches("button, summary, a, [role='tab']")) return;
    event.preventDefault();
    run[event.key](event);
  });
}
