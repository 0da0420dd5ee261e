// The legend of a plot: a name for each curve, which hides and shows it, and its value at the cursor.

import { dashed } from "../colours.js";
import { el } from "../dom.js";
import { nameOf, valueAt } from "../series.js";
import { named } from "./plot_values.js";

/** Hide one of some series, or show it; alone: show it and no other, or all if it is alone already. */
export function toggle(list, series, alone) {
  const only = list.every((one) => Boolean(one.hidden) === (one !== series));
  for (const one of list) {
    const hidden = alone ? !only && one !== series : one === series ? !one.hidden : one.hidden;
    if (hidden) one.hidden = true; else delete one.hidden;
  }
}

/** Return an item for each curve of a plot, also of those that are hidden. */
export function legendItems(panel) {
  const { context } = panel, first = context.logs[0].id, several = new Set(panel.list.map(({ log }) => log ?? first)).size > 1;
  return panel.list.map((series) => {
    const curve = panel.curves.list.find((one) => one.series === series), dash = panel.dash(series), log = context.log(series.log ?? first).name, field = panel.fields.get(series);
    const mark = el("i", { class: dash ? "other" : "" });
    mark.style.background = dashed(panel.colour(series), dash);
    const unit = curve?.unit || field?.unit || "", right = panel.scaleOf(series) === "y2";
    const text = [`${series.topic}${series.field ? `.${series.field}` : ""}`, series.sql, several && log, unit && `[${unit}]`, field?.text, right && "axis at the right", "Click to hide or show; with Shift to show it alone"].filter(Boolean).join("\n");
    const name = el("button", {
      type: "button", class: "name", "aria-pressed": String(!series.hidden), "aria-label": `Show ${nameOf(series)}${several ? ` of ${log}` : ""}`,
      on: { click: (event) => panel.hide(series, event.shiftKey) },
    }, panel.shortName(series) + (right ? " ▸" : ""));
    return el("li", { title: text, class: series.hidden ? "off" : "" }, mark, name, dash ? el("span", { class: "faint log" }, log) : null, el("span", { class: "value" }));
  });
}

/** Put the values of the curves of a plot at a time beside their names, and what they differ by at the second cursor. */
export function legendValues(panel, at) {
  const { cursor2 } = panel.context.view, common = panel.unit;
  panel.list.forEach((series, i) => {
    const item = panel.context.legend.children[i], curve = panel.curves.list.find((one) => one.series === series), field = panel.fields.get(series);
    if (!item) return;
    const stamp = panel.stamp(series), unit = common || stamp || !curve ? "" : curve.unit || field?.unit || "";
    const value = curve ? valueAt(curve, at) : NaN, name = field?.enum?.[String(value)] ?? (field?.type === "bool" && !series.function && Number.isFinite(value) ? String(Boolean(value)) : undefined);
    let text = at == null || Number.isNaN(value) ? (unit && `[${unit}]`) : `${name ?? named(value, stamp)}${unit ? ` ${unit}` : ""}`;
    if (curve && cursor2 != null && at != null && !name) {
      const other = valueAt(curve, cursor2);
      if (Number.isFinite(other) && Number.isFinite(value)) text += `  Δ ${named(other - value, stamp && "length")}`;
    }
    if (curve?.error) text = "not available";
    item.lastChild.textContent = text;
    item.lastChild.classList.toggle("faint", text.startsWith("["));
  });
}
