// The start of the page: asks for the session, makes what all parts share, then the parts.

import { Api, keepToken, takeToken } from "./api.js";
import { makeBus } from "./bus.js";
import { Data } from "./data.js";
import { el } from "./dom.js";
import { first } from "./first.js";
import { follow } from "./follow.js";
import { head } from "./head.js";
import { keys } from "./keys.js";
import { splits, Tabs } from "./layout.js";
import { Layouts } from "./layouts.js";
import { Notes } from "./notes.js";
import { play } from "./play.js";
import { markChanges } from "./panels/parameters.js";
import { Plots } from "./plots.js";
import { ruler } from "./ruler.js";
import { parse, renumbered, sound, State } from "./state.js";
import { takeaway } from "./takeaway.js";
import { Time } from "./time.js";
import { timeline } from "./timeline.js";
import { tree } from "./tree.js";
import { View } from "./view.js";
import { find } from "./find.js";

const root = document.documentElement;
/** Fulfilled when uPlot is there, too, which runs while the server answers the first request. */
const loaded = new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));

/** Say one sentence at the lower edge for some seconds. */
function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("on"), 4000);
}

/** Return the session when all logs are open; large ones may take a while. */
async function opened(api) {
  for (;;) {
    const session = await api.session(), slow = session.logs.filter((log) => log.opened === false);
    if (!slow.length) return session;
    document.getElementById("facts").replaceChildren(el("span", {}, `Opening ${slow.map((log) => log.name).join(", ")} …`));
    await new Promise((done) => setTimeout(done, 300));
  }
}

/** Return the state of a link for these logs, found by their names; `foreign` has names of files that are not here. */
function matched({ files, ...state }, logs) {
  if (!files) return state;
  const ids = {};
  files.forEach((name, i) => { const log = logs.find((one, at) => one.name === name && !Object.values(ids).includes(one.id) && (at === i || files[at] !== name)); if (log) ids[i] = log.id; });
  const foreign = files.filter((_, i) => !(i in ids));
  if (foreign.length) say(`This link is of ${foreign.join(", ")}: open it, too, to see what was seen.`);
  return renumbered(state, ids);
}

/** Say why nothing can be shown. */
function fail(text) {
  document.getElementById("work").replaceChildren(el("p", { class: "sentence bad", role: "alert" }, text));
  root.dataset.ready = "error";
}

async function start() {
  const [token, before] = takeToken(), api = new Api(token);
  let session;
  try {
    session = await opened(api).catch((error) => {
      // A link of another viewer, behind the address of this one.
      if (error.status !== 401 || !before) throw error;
      api.token = keepToken(before);
      return opened(api);
    });
    await loaded;
  } catch (error) {
    return fail(error.status === 401 ? "This address does not hold the right token: open the one that `logreel view` printed." : error.message);
  }
  const broken = session.logs.filter((log) => log.error);
  session.logs = session.logs.filter((log) => !log.error);
  if (!session.logs.length) return fail(broken.map((log) => `${log.name}: ${log.error}`).join("; ") || "There is no log to show.");
  const bus = makeBus(), logs = session.logs, given = matched(await parse(location.hash), logs);
  const state = new State(Object.keys(given).length ? given : sound(session.layout));
  state.files = logs.map(({ name }) => name);
  // Who pastes a link behind the address of this page wants to see it.
  addEventListener("hashchange", () => location.reload());
  const time = new Time(logs, bus), data = new Data(api, bus, logs);
  data.take(logs[0].id, "charts", session.charts);
  time.align = state.get("align", "start");
  time.offsets = state.get("offsets", {});
  time.setClock(state.get("clock", "start"));
  state.from(() => ({ clock: time.clock, align: time.align === "start" ? null : time.align, offsets: time.offsets }));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  bus.on("overview", (id) => { const whole = context.view.isWhole(); time.learn(id, data.overviewNow(id)); if (whole) context.view.all(); });
  const context = {
    layout: !Object.keys(given).length && session.layout,
    api, bus, logs, time, data, state, session, say, theme: () => root.dataset.theme,
    log: (id) => logs.find((one) => one.id === id) ?? logs[0],
    setTheme(theme) {
      root.dataset.theme = theme ?? (dark.matches ? "dark" : "light");
      bus.send("theme", root.dataset.theme);
    },
    view: new View(bus, time, state),
  };
  context.setTheme(state.get("theme"));
  dark.addEventListener("change", () => { if (!state.get("theme")) context.setTheme(null); });
  state.changed();

  splits(state);
  context.notes = new Notes(context);
  context.takeaway = takeaway(context);
  context.plots = new Plots(document.getElementById("plots"), context);
  context.layouts = new Layouts(context);
  context.find = find(context);
  head(context);
  // What the plots of the first screen wait for is asked for before all else: the server reads a log for one request at a time.
  const plotted = first(context, Tabs), treeDrawn = tree(document.getElementById("tree"), context, plotted);
  ruler(document.getElementById("ruler"), context);
  timeline(document.getElementById("timeline"), context);
  context.play = play(document.getElementById("play"), context);
  keys(context);
  bus.send("window", context.view.window);
  bus.send("cursor", context.view.cursor);
  await plotted;
  for (const { id } of logs) data.overview(id).catch((error) => say(error.message));
  context.notes.load();
  await treeDrawn;
  markChanges(context);
  follow(context);
  root.dataset.ready = "yes";
  if (broken.length) say(broken.map((log) => `${log.name}: ${log.error}`).join("; "));
  return undefined;
}

start();
