// The tree of channels and fields, with search, pinned fields and the rate of each channel over time.

import { button, css, el, fit, frame } from "./dom.js";
import { nameParts, search } from "./fuzzy.js";
import { FIELD } from "./plots.js";

const SPARK = [54, 14];

/**
 * Show the tree.
 * @param {HTMLElement} element
 * @param {Object} context
 * @param {Promise<void>} turn fulfilled when it may ask for the channels
 * @returns {Promise<void>} fulfilled when the channels of all logs are drawn
 */
export function tree(element, context, turn) {
  const { bus, data, logs, state } = context;
  const input = el("input", { type: "search", placeholder: "Find a field … ( / )", "aria-label": "Find a field", autocomplete: "off", spellcheck: "false" });
  const rows = el("div", { class: "rows", role: "tree", "aria-label": "Channels and fields" });
  element.append(el("div", { class: "find" }, input), rows);
  const open = new Set(), folded = new Set(), pinned = new Set(state.get("pinned", []));
  let all = [], shown = [], chosen = null, nothing = "Reading the channels …";
  const key = ({ log, topic, field, folder }) => folder ? `${log}\n\n${folder}` : `${log}\n${topic}${field ? `\n${field.path}` : ""}`;
  const pinName = ({ topic, field }) => `${topic}.${field.path}`;

  async function load() {
    const channels = [];
    let failure = null;
    for (const { id, name, duration } of logs) {
      try {
        for (const channel of await data.channels(id)) channels.push({ log: id, name, duration, topic: channel.topic, channel });
      } catch (error) {
        failure = error.message;
        context.say(failure);
      }
    }
    all = channels;
    nothing = failure ?? "This log has no channels.";
    drawNow();
    element.dataset.ready = "yes";
  }

  /** The items that are visible now, in their order. */
  function items() {
    const wanted = input.value.trim(), list = [];
    const fields = (item, level) => item.channel.fields.map((field) => ({ ...item, field, level }));
    if (wanted) {
      const every = all.flatMap((item) => [{ ...item, level: 1 }, ...fields(item, 1)]);
      const text = (item) => (item.field ? `${item.topic}.${item.field.path}` : item.topic);
      return search(wanted, every, text, 300).map(({ item, places }) => ({ ...item, text: text(item), places, flat: true }));
    }
    const pins = all.flatMap((item) => fields(item, 1)).filter((item) => pinned.has(pinName(item)));
    if (pins.length) list.push({ head: "Pinned" }, ...pins.map((item) => ({ ...item, text: pinName(item), flat: true, pin: true })), { head: "Channels" });
    let log = null;
    const full = all.filter(({ channel }) => channel.count), folders = foldersOf(full);
    for (const item of full) {
      if (logs.length > 1 && item.log !== log) list.push({ head: item.name });
      log = item.log;
      const members = folders.get(folderOf(item));
      if (!members) { list.push(...opened(item, fields)); continue; }
      if (members[0] !== item) continue;
      const folder = { log: item.log, folder: namespace(item.topic), members: members.length, level: 1, text: namespace(item.topic) };
      list.push(folder);
      if (!folded.has(key(folder))) for (const one of members) list.push(...opened(one, fields, folder.folder));
    }
    const none = all.filter(({ channel }) => !channel.count);
    if (none.length) list.push({ head: `Without messages (${none.length})` });
    for (const item of none) list.push({ ...item, level: 1, text: item.topic }, ...(open.has(key(item)) ? fields(item, 2).map((one) => ({ ...one, text: one.field.path })) : []));
    return list;
  }

  /** A channel, and its fields where it is open; without the namespace under which it stands. */
  function opened(item, fields, inside = "") {
    const level = inside ? 2 : 1, own = { ...item, level, inside, text: item.topic.slice(inside.length) };
    return open.has(key(item)) ? [own, ...fields(item, level + 1).map((one) => ({ ...one, inside, text: one.field.path }))] : [own];
  }

  function drawNow() {
    shown = items();
    // A log may have thousands of fields: what is far below is left out until it is searched for.
    rows.replaceChildren(...shown.slice(0, 3000).map(row));
    if (!shown.length) rows.append(el("div", { class: "item head" }, all.length ? "Nothing is called like that." : nothing));
    const current = shown.findIndex((item) => !item.head && key(item) === chosen);
    (rows.children[Math.max(0, current >= 0 ? current : shown.findIndex((item) => !item.head))] ?? rows).tabIndex = 0;
    rows.dataset.count = shown.length;
    rows.dataset.for = input.value;
  }

  const draw = frame(drawNow);

  function row(item) {
    if (item.head) return el("div", { class: "item head", role: "presentation" }, item.head);
    if (item.folder) return folderRow(item);
    const { channel, field } = item, isOpen = open.has(key(item));
    const what = field
      ? [`${item.topic}.${field.path}`, field.type + (field.items != null ? `[${field.items || ""}]` : "") + (field.unit ? `, ${field.unit}` : ""), field.text].filter(Boolean).join("\n")
      : [item.topic, `${channel.type} (${channel.encoding})`, `${channel.count.toLocaleString("en")} messages${channel.rate ? `, ${rate(channel.rate)}` : ""}`, channel.error].filter(Boolean).join("\n");
    const element = el("div", {
      class: `item${field && !item.flat ? " field" : ""}${item.inside ? " inside" : ""}`, role: "treeitem", "aria-level": item.level ?? 1, tabindex: -1, title: what, "aria-label": item.text,
      "aria-expanded": field || item.flat ? null : String(isOpen), "aria-selected": String(key(item) === chosen),
      draggable: field && field.number !== false ? "true" : null,
      on: {
        click: () => choose(item, !field && !item.flat),
        dblclick: (event) => field && plot(item, event.shiftKey),
        dragstart: (event) => { event.dataTransfer.setData(FIELD, JSON.stringify(series(item))); event.dataTransfer.effectAllowed = "copy"; },
      },
    });
    if (!field) element.append(el("span", { class: "twist", "aria-hidden": "true" }, isOpen ? "▾" : "▸"));
    element.append(el("span", { class: !channel.count || (field && field.number === false) ? "label faint" : "label" }, nameParts(item.text, { topic: field && item.flat ? item.topic : "", places: item.places ?? [] })));
    if (field) {
      element.append(el("span", { class: "aside" }, field.unit || (field.enum ? "state" : field.items != null ? "array" : field.number === false ? field.type : "")));
      const on = pinned.has(pinName(item));
      element.append(button(on ? "★" : "☆", "Pin (*)", (event) => { event.stopPropagation(); pin(item); }, { class: "pin", "aria-pressed": on, tabindex: -1 }));
    } else {
      element.append(el("span", { class: "aside" }, sensible(item) ? rate(channel.rate) : channel.count.toLocaleString("en")));
      const spark = spread(item);
      if (spark) element.append(spark);
    }
    return element;
  }

  /** A namespace whose channels are folded away or shown. */
  function folderRow(item) {
    const isOpen = !folded.has(key(item));
    return el("div", {
      class: "item folder", role: "treeitem", "aria-level": 1, tabindex: -1, title: item.folder, "aria-expanded": String(isOpen), "aria-selected": String(key(item) === chosen),
      on: { click: () => choose(item, true) },
    }, el("span", { class: "twist", "aria-hidden": "true" }, isOpen ? "▾" : "▸"), el("span", { class: "label" }, nameParts(item.folder.slice(0, -1))), el("span", { class: "aside" }, `${item.members}`));
  }

  /** The density of a channel over the log, as a small area. */
  function spread({ log, topic }) {
    const density = data.overviewNow(log)?.channels.find((one) => one.topic === topic)?.density;
    if (!density?.length) return null;
    const canvas = el("canvas", { "aria-hidden": "true" }), [width, height] = SPARK, pen = fit(canvas, width, height);
    pen.fillStyle = css("--series-1");
    const step = density.length / width;
    for (let x = 0; x < width; x++) {
      let most = 0;
      for (let i = Math.floor(x * step); i < Math.max(Math.floor((x + 1) * step), Math.floor(x * step) + 1); i++) most = Math.max(most, density[i] ?? 0);
      const tall = most ? Math.max(1, (most / 255) * height) : 0;
      pen.fillRect(x, height - tall, 1, tall);
    }
    return canvas;
  }

  function series({ log, topic, field }) {
    return { topic, field: field.path, ...(log === logs[0].id ? {} : { log }) };
  }

  function plot(item, fresh) {
    if (item.field.number === false) return context.say(`${item.text} holds no numbers: choose it to see its messages.`);
    if (item.field.items != null) return context.plots.add("array", series(item));
    return context.plots.plot(series(item), { fresh });
  }

  function pin(item) {
    const name = pinName(item);
    if (!pinned.delete(name)) pinned.add(name);
    state.set("pinned", [...pinned]);
    draw();
  }

  function choose(item, toggle = false) {
    chosen = key(item);
    if (!item.folder) bus.send("select", { log: item.log, topic: item.topic, field: item.field?.path ?? null });
    const set = item.folder ? folded : open;
    if (toggle && !set.delete(chosen)) set.add(chosen);
    for (const one of rows.querySelectorAll('[aria-selected="true"]')) one.setAttribute("aria-selected", "false");
    const at = shown.findIndex((one) => !one.head && key(one) === chosen);
    if (toggle) draw();
    else rows.children[at]?.setAttribute("aria-selected", "true");
    if (toggle) requestAnimationFrame(() => rows.children[shown.findIndex((one) => !one.head && key(one) === chosen)]?.focus());
  }

  rows.addEventListener("keydown", (event) => {
    const at = [...rows.children].indexOf(document.activeElement), item = shown[at];
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const go = (to) => {
      let next = Math.min(Math.max(to, 0), shown.length - 1);
      if (shown[next].head) next += to >= at ? 1 : -1;
      const row = rows.children[next];
      if (!row || !shown[next]) return;
      for (const one of rows.children) one.tabIndex = -1;
      row.tabIndex = 0;
      row.focus();
      choose(shown[next]);
    };
    const does = {
      ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1), Home: () => go(0), End: () => go(shown.length - 1),
      ArrowRight: () => (item.folder ? (folded.has(key(item)) ? choose(item, true) : go(at + 1)) : !item.field && !open.has(key(item)) && !item.flat ? choose(item, true) : go(at + 1)),
      ArrowLeft: () => (item.folder ? !folded.has(key(item)) && choose(item, true) : item.field && !item.flat ? go(shown.findIndex((one) => !one.head && !one.field && key(one) === `${item.log}\n${item.topic}`)) : open.has(key(item)) && choose(item, true)),
      Enter: () => (item.field ? plot(item, event.shiftKey) : choose(item, !item.flat)),
      "*": () => item.field && pin(item),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    event.stopPropagation();
    does();
  });
  input.addEventListener("input", () => draw());
  input.addEventListener("keydown", (event) => {
    const first = shown.findIndex((item) => !item.head);
    if (event.key === "Enter" && first >= 0) { const item = shown.find((one) => one.field) ?? shown[first]; choose(item); if (item.field) plot(item, event.shiftKey); }
    if (event.key === "ArrowDown" && first >= 0) { event.preventDefault(); rows.children[first].focus(); choose(shown[first]); }
    if (event.key === "Escape") { input.value = ""; draw(); }
  });
  bus.on("reveal", ({ log, topic }) => {
    input.value = "";
    open.add(`${log}\n${topic}`);
    folded.delete(`${log}\n\n${namespace(topic)}`);
    chosen = `${log}\n${topic}`;
    bus.send("select", { log, topic, field: null });
    draw();
    requestAnimationFrame(() => requestAnimationFrame(() => rows.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "start" })));
  });
  for (const kind of ["overview", "theme"]) bus.on(kind, () => draw());
  bus.on("grown", () => load());
  drawNow();
  return turn.then(load);
}

/** Channels of one log from which on those of one namespace stand together, and of a namespace that is worth a row. */
const MANY = 12, TOGETHER = 2;

/** The namespace of a topic with its last slash, or the empty text: "/camera/front/". */
function namespace(topic) {
  return topic.slice(0, topic.lastIndexOf("/") + 1);
}

function folderOf({ log, topic }) {
  return `${log}\n${namespace(topic)}`;
}

/** Return the channels of each namespace that has several, where there are many channels. */
function foldersOf(items) {
  const found = new Map();
  if (items.length < MANY) return found;
  for (const item of items) if (namespace(item.topic).length > 1) found.set(folderOf(item), [...(found.get(folderOf(item)) ?? []), item]);
  for (const [name, members] of found) if (members.length < TOGETHER) found.delete(name);
  return found;
}

/** Whether the rate of a channel fits the length of its log: stamps of other clocks give absurd ones. */
function sensible({ channel, duration }) {
  return channel.rate > 0 && channel.count > 1 && channel.count / channel.rate < (10 * (duration + 1e9)) / 1e9;
}

/** Write a rate as people say it. */
function rate(hertz) {
  return hertz >= 1 ? `${Number(hertz.toPrecision(3))} Hz` : `every ${Number((1 / hertz).toPrecision(2))} s`;
}
