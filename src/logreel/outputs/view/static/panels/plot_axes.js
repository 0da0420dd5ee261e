// The vertical axes of a plot: their range and numbers, zoom and motion by pointer and keys, and the dialog about them.

import { button, drag, el } from "../dom.js";
import { nameOf, short } from "../series.js";
import { stampNumbers } from "./plot_values.js";

/** Return the moments at which an axis of time has lines, which are multiples of a step after `zero`. */
export function moments(zero, min, max, step) {
  const found = [];
  for (let at = Math.ceil((min - zero) / step) * step + zero; at <= max; at += step) found.push(at);
  return found;
}

/** Whether settings hold limits: [low, high] with at least one number; null is what the values say. */
export function isLimits(given) {
  return Array.isArray(given) && given.length === 2 && given.some(Number.isFinite) && given.every((one) => one === null || Number.isFinite(one));
}

/** Return [low, high] of an axis from its limits and the least and greatest value, which may be null. */
export function yRange(limits, log, min, max) {
  const [auto, high] = min == null ? (log ? [1, 10] : [0, 1]) : log ? [min / 1.3, max * 1.3] : roomy(min, max);
  let from = limits?.[0] ?? auto, to = limits?.[1] ?? high;
  if (log && !(from > 0)) from = to > 0 ? Math.min(auto, to / 10) : auto;
  if (!(to > from)) to = log ? from * 10 : from + (Math.abs(from) || 1);
  return [from, to];
}

/** A range with some room above and below; a curve that never changes is in its middle. */
function roomy(low, high) {
  const room = (high - low) * 0.08 || Math.max(Math.abs(high) * 0.02, 0.5);
  return [low - room, high + room];
}

/** Return the kind of time that all curves of an axis are, or null. */
export function stampOf(panel, key) {
  const kinds = new Set(panel.curves.list.filter(({ series }) => panel.scaleOf(series) === key).map(({ series }) => panel.stamp(series)));
  return kinds.size === 1 ? [...kinds][0] : null;
}

/** Write the numbers of an axis, all with the decimals that the distance between them needs; null for those without room. */
export function numbers(ticks, { log = false, stamp = null } = {}) {
  if (stamp) return stampNumbers(ticks, stamp);
  if (log) return ticks.map((tick) => (tick == null ? "" : short(tick)));
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1, most = Math.max(...ticks.map(Math.abs));
  if (most >= 1e7 || most < 1e-4) return ticks.map((tick) => (tick === 0 ? "0" : tick.toExponential(Math.min(6, Math.max(1, Math.ceil(Math.log10(most / step)))))));
  let digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  // Steps such as 0.025 need one more.
  if (digits < 9 && Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6) digits += 1;
  return ticks.map((tick) => tick.toFixed(digits));
}

/** Width in pixels of the part of a plot that belongs to the axis at the right. */
const RIGHT_AXIS = 46;

/**
 * Let pointer and keys change an axis: the wheel zooms, a drag moves it, a double click fits it to the values.
 * @param {Object} plot the uPlot
 * @param {string} key "y" or "y2"
 * @param {Object} panel
 * @param {number} left width of the axis at the left
 */
export function yAxis(plot, key, panel, left) {
  const side = key === "y" ? "left" : "right";
  const handle = el("div", {
    class: `yaxis ${side}`, tabindex: 0, role: "group",
    "aria-label": `Vertical axis at the ${side}: arrow keys move it, plus and minus zoom, 0 fits it to the values`, title: "Wheel: zoom, drag: move, double click: fit",
  });
  const { over } = plot;
  Object.assign(handle.style, { top: "0", height: "100%", [side]: key === "y" ? `-${left}px` : "0", width: `${key === "y" ? left : RIGHT_AXIS}px` });
  over.append(handle);
  const log = panel.log[key], to = log ? Math.log10 : Number, back = log ? (value) => 10 ** value : Number;
  const now = () => [to(plot.scales[key].min), to(plot.scales[key].max)];
  const set = (low, high) => { if (high - low > 1e-12 * Math.max(1, Math.abs(low))) panel.setLimits(key, [back(low), back(high)]); };
  const zoom = (factor, part = 0.5) => {
    const [low, high] = now(), place = low + (high - low) * part;
    set(place - (place - low) / factor, place + (high - place) / factor);
  };
  const move = (part) => { const [low, high] = now(), step = (high - low) * part; set(low + step, high + step); };
  const at = (event) => { const box = over.getBoundingClientRect(); return 1 - (event.clientY - box.top) / box.height; };
  handle.addEventListener("wheel", (event) => {
    event.preventDefault();
    event.stopPropagation();
    zoom(1.0018 ** (-event.deltaY * (event.deltaMode === 1 ? 30 : 1)), at(event));
  }, { passive: false });
  handle.addEventListener("dblclick", (event) => { event.stopPropagation(); panel.setLimits(key, null); });
  handle.addEventListener("pointermove", (event) => event.stopPropagation());
  handle.addEventListener("pointerdown", (event) => {
    event.stopPropagation();
    if (event.button !== 0) return;
    const [low, high] = now(), start = event.clientY;
    drag(event, (next) => { const step = ((next.clientY - start) / over.clientHeight) * (high - low); set(low + step, high + step); });
  });
  handle.addEventListener("keydown", (event) => {
    const run = { ArrowUp: () => move(0.1), ArrowDown: () => move(-0.1), "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6), "0": () => panel.setLimits(key, null) }[event.key];
    if (!run || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  });
}

/** Ask for limits and kind of the axes of a plot, and which curves belong to the one at the right. */
export function axesDialog(panel) {
  const { limits, log } = panel, inputs = {};
  const number = (key, end, name) => {
    inputs[`${key}${end}`] = el("input", { type: "number", step: "any", placeholder: "automatic", "aria-label": `${name}, ${end ? "upper" : "lower"} limit`, value: limits[key]?.[end] ?? "" });
    return inputs[`${key}${end}`];
  };
  const axis = (key, name) => {
    inputs[`${key}log`] = el("input", { type: "checkbox", "aria-label": `${name}, logarithmic`, checked: log[key] });
    return el("div", { class: "axis" }, el("span", {}, name), number(key, 0, name), el("span", {}, "to"), number(key, 1, name), el("label", {}, inputs[`${key}log`], " logarithmic"));
  };
  const right = panel.list.map((one) => el("input", { type: "checkbox", checked: one.axis === 2, "aria-label": `${nameOf(one)} at the right axis` }));
  const why = el("p", { class: "small faint" }, "An empty limit follows the values. Of a logarithmic axis, only values above 0 are drawn.");
  const form = el("form", { class: "inside", method: "dialog" },
    el("h2", {}, "Axes and limits"), axis("y", "Left axis"), axis("y2", "Right axis"),
    el("fieldset", {}, el("legend", {}, "Curves of the right axis"), panel.list.map((one, i) => el("label", { class: "check" }, right[i], nameOf(one)))), why,
    el("div", { class: "row" }, button("Cancel", "Cancel", () => dialog.close()), button("Apply", "Apply", () => {}, { class: "main", type: "submit" })));
  const dialog = el("dialog", { "aria-label": "Axes and limits", on: { close: () => dialog.remove() } }, form);
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });

  function apply() {
    const found = {};
    for (const key of ["y", "y2"]) {
      const pair = [0, 1].map((end) => (inputs[`${key}${end}`].value === "" ? null : Number(inputs[`${key}${end}`].value)));
      const [low, high] = pair, wrong = pair.every(Number.isFinite) && low >= high ? "The lower limit must be below the upper one."
        : inputs[`${key}log`].checked && pair.some((one) => one !== null && one <= 0) ? "Limits of a logarithmic axis must be above 0." : "";
      if (wrong) {
        why.textContent = wrong;
        why.className = "bad small";
        why.setAttribute("role", "alert");
        return inputs[`${key}0`].focus();
      }
      found[key] = isLimits(pair) ? pair : null;
    }
    panel.setAxes({ limits: found, log: { y: inputs.ylog.checked, y2: inputs.y2log.checked }, right: right.map((one) => one.checked) });
    return dialog.close();
  }
  document.body.append(dialog);
  dialog.showModal();
}
