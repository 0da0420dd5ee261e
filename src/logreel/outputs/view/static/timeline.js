// The strip of time: each log as a row with its density, modes, gaps, damage and texts; the window is dragged over it.

import { css, drag, el, fit, frame, plain } from "./dom.js";
import { bandText, drawLog, flags, HEAD, rowHeight } from "./timeline_draw.js";
import { titleOf } from "./notes.js";
import { STEPS, length } from "./time.js";

const EDGE = 6;

export function timeline(element, context) {
  const { bus, time, view, data, logs } = context;
  const canvas = el("canvas", { tabindex: 0, role: "slider", "aria-label": "Time: arrow keys move the cursor, plus and minus zoom", "aria-orientation": "horizontal" });
  const tip = el("div", { class: "tip", hidden: true });
  element.append(canvas, tip);
  let width = 0;
  const row = rowHeight(logs), height = HEAD + row * Math.min(logs.length, 4) + 3;
  const x = (axis) => { const { from, to } = time.whole(); return ((axis - from) / (to - from)) * width; };
  const axisAt = (px) => { const { from, to } = time.whole(); return from + (px / width) * (to - from); };
  const pixel = (event) => event.clientX - canvas.getBoundingClientRect().left;

  const draw = frame(() => {
    if (!width) return;
    const pen = fit(canvas, width, height), { from, to } = time.whole();
    pen.font = "10px system-ui, sans-serif";
    ticks(pen, from, to);
    logs.slice(0, 4).forEach((log, i) => drawLog(pen, {
      overview: data.overviewNow(log.id), log, top: HEAD + i * row, high: row, x: (t) => x(time.toAxis(log.id, t)), width, name: logs.length > 1 ? log.name : "", filter: bus.last("marks"),
    }));
    logs.slice(0, 4).forEach(({ id }, i) => flags(pen, context.notes.of(id), { top: HEAD + i * row, high: row - 2, x: (t) => x(time.toAxis(id, t)) }));
    window(pen);
    for (const [axis, colour] of [[bus.last("hover"), "--faint"], [view.cursor2, "--accent"], [view.cursor, "--text"]]) {
      if (axis == null) continue;
      pen.fillStyle = css(colour);
      pen.fillRect(Math.round(x(axis)), 0, axis === view.cursor ? 1.5 : 1, height);
    }
    const { cursor } = view, now = cursor ?? view.window.from;
    for (const [name, value] of [["valuemin", from / 1e9], ["valuemax", to / 1e9], ["valuenow", now / 1e9]]) canvas.setAttribute(`aria-${name}`, value);
    canvas.setAttribute("aria-valuetext", `cursor ${time.full(now)}, window ${time.full(view.window.from)} to ${time.full(view.window.to)}`);
    Object.assign(canvas.dataset, { from: view.window.from, to: view.window.to, whole: view.isWhole() ? "yes" : "" });
    canvas.dataset.ready = logs.every(({ id }) => data.overviewNow(id)?.complete !== false && data.overviewNow(id)) ? "yes" : "";
  });

  function ticks(pen, from, to) {
    const widest = pen.measureText(time.text(to, (to - from) / 20)).width + 24;
    const step = STEPS.find((one) => (one / (to - from)) * width > Math.max(80, widest)) ?? STEPS.at(-1);
    pen.fillStyle = css("--faint");
    pen.textBaseline = "middle";
    for (let tick = Math.ceil((from - time.zero()) / step) * step + time.zero(); tick <= to; tick += step) {
      const text = time.text(tick, step), place = x(tick);
      pen.fillRect(Math.round(place), 0, 1, 4);
      if (place + pen.measureText(text).width + 4 < width) pen.fillText(text, place + 4, HEAD / 2 - 1);
    }
  }

  /** Shade what is outside of the window. */
  function window(pen) {
    if (view.isWhole()) return;
    const left = x(view.window.from), right = x(view.window.to);
    pen.globalAlpha = 0.6;
    pen.fillStyle = css("--ground");
    pen.fillRect(0, 0, left, height);
    pen.fillRect(right, 0, width - right, height);
    pen.globalAlpha = 1;
    pen.fillStyle = css("--accent");
    pen.fillRect(left, 0, Math.max(2, right - left), 2);
    for (const edge of [left, right]) pen.fillRect(Math.round(edge) - 1, 0, 2, height);
  }

  /** What a press at a place takes hold of. */
  function grip(px) {
    if (view.isWhole()) return "new";
    const left = x(view.window.from), right = x(view.window.to);
    if (Math.abs(px - left) < EDGE) return "left";
    if (Math.abs(px - right) < EDGE) return "right";
    return px > left && px < right ? "move" : "new";
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const start = pixel(event), { from, to } = view.window, hold = event.shiftKey ? "new" : grip(start), a = axisAt(start);
    const at = Math.floor((event.clientY - canvas.getBoundingClientRect().top - HEAD) / row), log = event.altKey && logs[at];
    const shift = log && (time.offsets[log.id] ?? 0), scale = axisAt(1) - axisAt(0);
    drag(event, (now) => {
      const b = axisAt(Math.min(Math.max(pixel(now), 0), width));
      if (log) time.setAlign(time.align, { ...time.offsets, [log.id]: Math.round(shift + (pixel(now) - start) * scale) });
      else if (hold === "left") view.setWindow(Math.min(b, to), to);
      else if (hold === "right") view.setWindow(from, Math.max(b, from));
      else if (hold === "move") view.setWindow(from + b - a, to + b - a);
      else view.setWindow(Math.min(a, b), Math.max(a, b));
    }, (now, moved) => { if (!moved) view.setCursor(flagAt(start, event.offsetY) ?? a); });
  });
  /** The time of the flag under the pointer, or null. */
  function flagAt(px, py) {
    const log = logs[Math.floor((py - HEAD) / row)], place = (note) => x(time.toAxis(log.id, note.from));
    const note = log && (py - HEAD) % row < 10 ? context.notes.of(log.id).findLast((one) => place(one) - 2 <= px && px <= place(one) + 10) : null;
    return note ? time.toAxis(log.id, note.from) : null;
  }

  canvas.addEventListener("pointermove", (event) => {
    const px = pixel(event);
    canvas.style.cursor = { left: "ew-resize", right: "ew-resize", move: "grab", new: "crosshair" }[grip(px)];
    if (!event.buttons) { bus.send("hover", axisAt(px)); about(px); }
  });
  canvas.addEventListener("pointerleave", () => { bus.send("hover", null); tip.hidden = true; });
  canvas.addEventListener("dblclick", () => view.all());
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); view.zoom(1.0018 ** -event.deltaY, axisAt(pixel(event))); }, { passive: false });

  /** Say what lies under the pointer. */
  function about(px) {
    const near = axisAt(3) - axisAt(0), axis = axisAt(px), found = [time.full(axis)];
    for (const { id, name, duration } of logs) {
      const overview = data.overviewNow(id), t = time.toLog(id, axis), inside = (one) => one.from - near <= t && t <= one.to + near;
      if (!overview) continue;
      if (logs.length > 1 && t >= 0 && t <= duration) found.push(name);
      found.push(...overview.bands.filter((one) => one.from <= t && t < one.to).slice(0, 4).map(bandText));
      found.push(...overview.damage.filter(inside).slice(0, 2).map((one) => one.text));
      found.push(...overview.gaps.filter((one) => one.from <= t && t <= one.to).slice(0, 2).map((one) => `${one.topic || "all"} silent for ${length(one.to - one.from)}`));
      found.push(...overview.dropouts.filter(inside).slice(0, 1).map((one) => `dropout of ${length(one.to - one.from)}`));
      found.push(...context.notes.of(id).filter((one) => one.from - near <= t && t <= (one.to ?? one.from) + near).slice(0, 3).map((one) => `⚑ ${titleOf(one)}`));
      found.push(...overview.marks.filter((one) => Math.abs(one.t - t) < near).slice(0, 2).map((one) => plain(one.text)));
    }
    tip.textContent = found.join(" · ");
    tip.hidden = false;
    tip.style.bottom = `${height + 4}px`;
    tip.style.left = `${Math.max(0, Math.min(px + 8, width - tip.offsetWidth - 4))}px`;
  }

  for (const kind of ["window", "cursor", "cursor2", "hover", "theme", "clock", "shift", "overview", "marks", "notes"]) bus.on(kind, () => draw());
  new ResizeObserver(() => { width = element.clientWidth; draw(); }).observe(element);
}
