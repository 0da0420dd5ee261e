// The first screen: the panels of the link or layout, else those that the log deserves.

const SIDE = { map: "Map", scene: "3D", picture: "Pictures" };

/**
 * Lay out the panels.
 * @param {Object} context
 * @param {Function} Tabs
 */
export async function first(context, Tabs) {
  const { data, logs, state, plots } = context;
  // Columns for each log need more room.
  if (logs.length > 1 && !state.get("sizes", {}).side) document.documentElement.style.setProperty("--side", "clamp(360px, 30vw, 640px)");
  if (!logs.some((log) => log.messages)) plots.empty.textContent = "This log has no messages.";
  const charts = await data.charts(logs[0].id).catch((error) => {
    context.say(`The plots for this log could not be chosen: ${error.message}`);
    return { panels: [], side: [], first: 4 };
  });
  context.first = charts.first || 4;
  context.meanings = charts.meanings;
  context.side = (charts.side ?? []).filter((kind) => kind in SIDE);
  context.standard = async () => {
    const proposed = (await fitting(context, charts)).map(({ kind, settings }) => ({ kind, ...settings }));
    plots.restore(proposed.length ? proposed : (await simple(context)).map((one) => ({ kind: "plot", ...one })));
    plots.element.scrollTop = 0;
    plots.choose(plots.frames[0] ?? null);
  };
  state.learn((await fitting(context, charts)).map(({ kind, settings }) => ({ kind, ...settings })));
  const given = state.get("panels");
  if (Array.isArray(given) && context.layout) await context.layouts.apply({ panels: given });
  else if (Array.isArray(given)) plots.restore(given);
  else if (!await context.layouts.first()) await context.standard();
  plots.ready = true;
  await plots.drawn();
  context.layouts.begin();

  const { side } = context;
  const upper = document.getElementById("upper");
  if (side.length) {
    context.upper = new Tabs(upper, side.map((kind) => ({ kind, title: SIDE[kind] })), context, { name: "side", chosen: state.get("side"), label: "Map, 3D and pictures" });
  } else {
    // Without anything to show in space the lower part has the whole side.
    upper.remove();
    document.querySelector('[data-split="lower"]').remove();
    document.getElementById("side").style.gridTemplateRows = "minmax(0, 1fr)";
  }
  // A log without texts leaves its place to the plots.
  context.bus.on("quiet", () => { if (!state.get("sizes", {}).bottom) document.documentElement.style.setProperty("--bottom", "84px"); });
  context.bottom = new Tabs(document.getElementById("bottom"), [{ kind: "text", title: "Text & events" }], context, { name: "bottom", label: "Text" });
  context.lower = new Tabs(document.getElementById("lower"), [
    { kind: "findings", title: "Findings" }, ...(logs.length > 1 ? [{ kind: "compare", title: "Compare" }] : []), { kind: "message", title: "Message" }, { kind: "parameters", title: "Parameters" }, { kind: "problems", title: "Problems" },
  ], context, { name: "lower", chosen: state.get("lower"), label: "Findings, message, parameters and problems" });
  // Who chooses a field wants to see its message.
  context.bus.on("select", () => { if (context.lower.chosen === "findings") context.lower.choose("message"); });
  state.changed();
}

/** Turn charts into settings of panels; other logs with the same fields join in. */
async function fitting(context, { panels }) {
  const { logs, data } = context, others = [];
  for (const { id } of logs.slice(1)) others.push({ id, topics: new Set((await data.channels(id).catch(() => [])).map(({ topic }) => topic)) });
  return panels.map((panel) => {
    const own = panel.series.map(({ topic, field, function: applied, label, unit, where }) => clean({ topic, field, function: applied, label, unit, where }));
    const series = [...own, ...others.flatMap(({ id, topics }) => own.filter(({ topic }) => topics.has(topic)).map((one) => ({ ...one, log: id })))];
    if (panel.kind === "xy") return { kind: "xy", settings: { title: panel.title, x: own[0], y: own[1] } };
    if (panel.kind === "spectrogram") return { kind: "spectrogram", settings: { title: panel.title, ...own[0] } };
    if (panel.kind === "array") return { kind: "array", settings: { title: panel.title, ...own[0] } };
    return { kind: "plot", settings: clean({ title: panel.title, series, y: panel.y, bands: panel.bands === false ? false : null }) };
  });
}

/** Plots of a log that has no charts: the first number of its first channels. */
async function simple({ data, logs }) {
  const channels = await data.channels(logs[0].id).catch(() => []);
  const found = [];
  for (const { topic, fields, count } of channels) {
    const numbers = fields.filter((field) => field.number && field.items == null && !/timestamp|stamp\.|seq$/.test(field.path)).slice(0, 3);
    if (count > 1 && numbers.length) found.push({ series: numbers.map(({ path }) => ({ topic, field: path })) });
    if (found.length === 3) break;
  }
  return found;
}

function clean(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value != null && value !== ""));
}
