// The axis of time below the plots, which all of them share but those beside others; dragging it moves the cursor.

import { css, drag, el, fit, frame } from "./dom.js";
import { STEPS } from "./time.js";
import { LEFT, RIGHT } from "./panels/plot.js";

/** Draw the axis in an element, as long as the function that is returned is not called. */
export function ruler(element, context) {
  const { bus, time, view } = context, canvas = el("canvas", { "aria-hidden": "true" });
  element.append(canvas);
  let width = 0;
  const x = (axis) => LEFT + ((axis - view.window.from) / view.span) * (width - LEFT - RIGHT);
  const at = (event) => view.window.from + ((event.clientX - canvas.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT)) * view.span;

  const draw = frame(() => {
    if (!width) return;
    const pen = fit(canvas, width, 23), { from, to } = view.window, inner = width - LEFT - RIGHT;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    const widest = pen.measureText(time.text(to, view.span / 1000)).width + 26;
    const step = STEPS.find((one) => (one / view.span) * inner > Math.max(70, widest)) ?? STEPS.at(-1);
    pen.fillStyle = css("--faint");
    pen.strokeStyle = css("--line");
    for (let tick = Math.ceil((from - time.zero()) / step) * step + time.zero(); tick <= to; tick += step) {
      const place = x(tick);
      pen.fillRect(Math.round(place), 0, 1, 4);
      const text = time.text(tick, step), half = pen.measureText(text).width / 2;
      if (place - half > LEFT - 30 && place + half < width) pen.fillText(text, place, 13);
    }
    pen.textAlign = "left";
    pen.fillText({ start: "s", utc: "UTC", log: "log" }[time.clock], 6, 13);
    flag(pen, bus.last("hover"), css("--faint"));
    flag(pen, view.cursor2, css("--accent"));
    flag(pen, view.cursor, css("--text"));
  });

  function flag(pen, axis, colour) {
    if (axis == null || axis < view.window.from || axis > view.window.to) return;
    const text = time.text(axis, view.span / 3000), size = pen.measureText(text).width + 8;
    const left = Math.min(Math.max(x(axis) - size / 2, 0), width - size);
    pen.fillStyle = colour;
    pen.fillRect(left, 3, size, 18);
    pen.fillStyle = css("--panel");
    pen.fillText(text, left + 4, 13);
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    view.setCursor(at(event));
    drag(event, (now) => view.setCursor(at(now)));
  });
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); view.zoom(1.0018 ** -event.deltaY, at(event)); }, { passive: false });
  canvas.addEventListener("dblclick", () => view.all());
  const offs = ["window", "cursor", "cursor2", "hover", "theme", "clock", "shift"].map((kind) => bus.on(kind, () => draw()));
  const size = new ResizeObserver(() => { width = element.clientWidth; draw(); });
  size.observe(element);
  return () => { size.disconnect(); offs.forEach((off) => off()); };
}
