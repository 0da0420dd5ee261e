// The head of the page: what this recording is, and the tools.

import { button, el } from "./dom.js";
import { menu } from "./menu.js";
import { TITLES } from "./plots.js";
import { counted } from "./panels/findings.js";
import { CLOCKS, length, utcStart } from "./time.js";

export function head(context) {
  const { session, logs, bus, time, state } = context, place = document.getElementById("facts");
  const [log] = logs;
  document.title = `${logs.map((one) => one.name).join(", ")} – logreel`;

  function facts() {
    const items = [["firm", logs.length === 1 ? log.name : logs.length < 4 ? `${logs.length} logs` : `${logs.length} logs: ${logs.map((one) => one.name).join(", ")}`]];
    if (logs.length === 1 && log.utc_shift != null && log.messages) items.push(["firm", startOf(log)]);
    if (logs.length > 1 && logs.length < 4) for (const one of logs) items.push(["", [one.name, startOf(one), length(one.duration), one.facts?.find(([label]) => label !== "Format")?.[1]].filter(Boolean).join(", ")]);
    items.push(["firm", length(time.whole().to - time.whole().from)], ["", `${logs.reduce((sum, one) => sum + one.messages, 0).toLocaleString("en")} messages`]);
    for (const [label, value] of logs.length > 1 ? [] : log.facts ?? []) items.push(["", value.length > 24 ? `${value.slice(0, 12)}…` : value, `${label}: ${value}`]);
    place.replaceChildren(...items.map(([kind, text, label]) => el("span", { class: kind, title: label ?? text }, text)));
    const problems = logs.reduce((sum, one) => sum + (one.problems ?? 0), 0), lost = logs.some((one) => one.lost);
    if (problems) {
      place.firstChild.after(button(`${problems} ${problems === 1 ? "problem" : "problems"}`, "Show the problems of this log", () => context.lower?.choose("problems"), { class: `firm ${lost ? "bad" : "warn"}` }));
    }
    const faults = Object.values(bus.last("findings") ?? {}).flatMap((one) => one.faults), told = counted(faults);
    if (told) place.firstChild.after(button(told, "Show what happened", () => context.lower?.choose("findings"), { class: `firm ${faults.some(({ severity }) => severity === "error") ? "bad" : "warn"}` }));
  }
  facts();
  bus.on("grown", facts);
  bus.on("findings", facts);

  const mac = navigator.platform.startsWith("Mac");
  const clock = button(CLOCKS[time.clock], "Clock of all times", (event) => menu(event.currentTarget, time.clocks().map((name) => ({
    text: CLOCKS[name], on: time.clock === name, run: () => time.setClock(name),
  }))), { "aria-haspopup": "menu" });
  bus.on("clock", (name) => { clock.textContent = CLOCKS[name]; state.changed(); });
  const find = button("Find", "Find a field or a command", () => context.find.open());
  find.append(el("kbd", {}, mac ? "⌘K" : "Ctrl K"));
  document.getElementById("tools").replaceChildren(
    find, clock,
    button("Layout", "Undo, and layouts with a name", (event) => context.layouts.menu(event.currentTarget), { "aria-haspopup": "menu" }),
    button("Add panel", "Add a panel", (event) => menu(event.currentTarget, panels(context)), { "aria-haspopup": "menu" }),
    button("◐", "Light or dark (t)", () => toggleTheme(context)),
    button("Take away", "Save pictures, tables, a part of the log, the link or the layout", (event) => menu(event.currentTarget, context.takeaway.entries()), { "aria-haspopup": "menu" }),
    button("?", "Keys (?)", () => context.help()),
  );
}

/** The start of a log for people; empty if it is unknown. */
export function startOf(log) {
  return log.utc_shift == null || !log.messages ? "" : `${new Date(Number(utcStart(log) / 1000000n)).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

export function toggleTheme(context) {
  const theme = context.theme() === "dark" ? "light" : "dark";
  context.state.set("theme", theme);
  context.setTheme(theme);
}

/** Entries that add panels to the column of plots. */
export function panels(context) {
  const { plots, logs, side } = context, chosen = context.bus.last("select");
  const field = chosen?.field ? { log: chosen.log, topic: chosen.topic, field: chosen.field } : null;
  return [
    { text: "Plot", run: () => plots.add("plot", { series: [] }) },
    { text: "XY plot", run: () => plots.add("xy", field ? { x: field } : {}) },
    { text: "Spectrogram of the chosen field", run: () => plots.add("spectrogram", field), off: !field },
    { text: "Array at the cursor", run: () => plots.add("array", field ?? {}) },
    { text: "Table of the chosen channel", run: () => plots.add("table", { log: chosen?.log, topic: chosen?.topic }), off: !chosen },
    { text: "Diagnostics", run: () => plots.add("diagnostics", {}) },
    { text: "Tree of frames", run: () => plots.add("frames", {}) },
    { text: "Parameters", run: () => plots.add("parameters", {}) },
    { text: "Difference of two logs", run: () => plots.add("difference", { series: field && { topic: field.topic, field: field.field } }), off: logs.length < 2 },
    { text: "Compare logs", run: () => plots.add("compare", {}), off: logs.length < 2 },
    null,
    ...[...side, "text", "message", "parameters", "findings"].map((kind) => ({ text: TITLES[kind], run: () => plots.add(kind, {}) })),
    ...(["map", "picture"].every((kind) => side.includes(kind)) ? [{ text: "Map and pictures side by side", run: async () => plots.add("picture", {}, { beside: await plots.add("map", {}, { first: true }), side: "right" }) }] : []),
    null,
    { text: "Plots that fit this log", run: () => context.standard() },
  ];
}
