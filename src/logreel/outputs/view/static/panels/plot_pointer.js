// The pointer over a plot: zoom at the wheel, drag to zoom, shift-drag to pan, click to set the cursor.

import { drag, el, frame } from "../dom.js";
import { shownMarks } from "./plot_draw.js";

/**
 * @param {Object} plot the uPlot
 * @param {Object} context
 * @param {{from: number, to: number}} panel the window that is shown
 */
export function pointer(plot, context, panel) {
  const { over } = plot, { view, bus } = context;
  const box = el("div", { class: "u-select", hidden: true }), tip = el("div", { class: "tip", hidden: true });
  box.style.top = "0";
  box.style.height = "100%";
  over.append(box, tip);
  const at = (event) => {
    const place = over.getBoundingClientRect();
    return panel.from + ((event.clientX - place.left) / place.width) * (panel.to - panel.from);
  };
  const hover = frame((axis) => bus.send("hover", axis));
  const point = frame((event) => marked(event));

  /** Say the text of the marker near the pointer. */
  function marked(event) {
    const place = over.getBoundingClientRect(), near = (6 * (panel.to - panel.from)) / place.width, axis = at(event);
    const found = event.clientY - place.top < 16 ? shownMarks(context, context.logs).filter((mark) => Math.abs(mark.t - axis) < near) : [];
    tip.hidden = !found.length;
    if (!found.length) return;
    tip.textContent = found.slice(0, 3).map((mark) => mark.text).join(" · ") + (found.length > 3 ? ` · ${found.length - 3} more` : "");
    tip.style.top = "12px";
    tip.style.left = `${Math.max(0, Math.min(event.clientX - place.left + 8, place.width - tip.offsetWidth))}px`;
  }

  over.addEventListener("pointermove", (event) => { if (!event.buttons) { hover(at(event)); point(event); } });
  over.addEventListener("pointerleave", () => { hover(null); tip.hidden = true; });
  over.addEventListener("dblclick", () => view.all());
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 30 : 1;
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) view.pan(((event.deltaX || event.deltaY) * lines * view.span) / 1000);
    else view.zoom(1.0018 ** (-event.deltaY * lines), at(event));
  }, { passive: false });
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { from, to } = view.window, start = at(event), first = event.clientX, width = over.clientWidth, shift = event.shiftKey;
    const left = over.getBoundingClientRect().left;
    hover(null);
    drag(event, (now) => {
      if (shift) {
        const step = ((now.clientX - first) / width) * (to - from);
        view.setWindow(from - step, to - step);
        return;
      }
      const a = Math.min(Math.max(Math.min(first, now.clientX) - left, 0), width), b = Math.min(Math.max(first, now.clientX) - left, width);
      box.hidden = false;
      box.style.left = `${a}px`;
      box.style.width = `${Math.max(0, b - a)}px`;
    }, (now, moved) => {
      box.hidden = true;
      if (now.type === "pointercancel") return;
      const end = at(now);
      if (!moved && shift) view.setCursor2(start);
      else if (!moved) view.setCursor(start);
      else if (!shift) view.setWindow(Math.min(start, end), Math.max(start, end));
    });
  });
}
