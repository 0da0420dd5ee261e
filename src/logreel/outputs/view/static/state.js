// What a view is: kept in the fragment of the address, so that a link, a reload or a layout file brings it back.
//
// {panels: [{kind, ...settings}], window: [from, to], cursor, cursor2, theme, clock, side, lower, pinned: [topic.field],
//  align, offsets: {log: ns}, sizes: {tree, side, bottom, lower}, tabs: {kind: settings}}
//
// A fragment is short: what is as at the start is left out; a panel that the log deserves anyway is its number, or [number,
// {what differs}]; what is long is packed. It names its files (f), by which it finds its logs on another machine.

const NAMES = ["panels", "window", "cursor", "cursor2", "theme", "clock", "side", "lower", "pinned", "align", "offsets", "sizes", "tabs"];
/** What is so unless a fragment says otherwise. */
const USUAL = { clock: "start" };
/** Names whose first value, set by the page, is the usual one. */
const TABS = ["side", "lower"];
/** Characters of a value that are packed, bytes of an unpacked one, and files that a fragment may name. */
const LONG = 100, MOST = 1 << 20, FILES = 64;
/** Some panels in a row that the log deserves. */
const RUN = /^\d{1,3}-\d{1,3}$/;
/** Names that say how a view is laid out, and nothing of one log. */
const LAYOUT = ["panels", "theme", "clock", "side", "lower", "pinned", "sizes", "tabs"];

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isNumbers = (value) => isObject(value) && Object.values(value).every(Number.isFinite);
const isNumber = (value) => Number.isInteger(value) && value >= 0;
const isText = (value) => typeof value === "string";

/** What a value must be; a link or a file may come from anybody. */
const SOUND = {
  panels: (value) => Array.isArray(value) && value.length <= 200 && value.every((one) => (isObject(one) && isText(one.kind)) || isNumber(one) || RUN.test(one) || (Array.isArray(one) && one.length === 2 && isNumber(one[0]) && isObject(one[1]))),
  window: (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isFinite),
  cursor: Number.isFinite,
  cursor2: Number.isFinite,
  theme: (value) => ["light", "dark"].includes(value),
  clock: (value) => ["start", "utc", "log"].includes(value),
  side: isText,
  lower: isText,
  pinned: (value) => Array.isArray(value) && value.every(isText),
  align: (value) => ["start", "utc", "armed", "air"].includes(value) || (isText(value) && value.startsWith("event:") && value.length < 250),
  offsets: isNumbers,
  sizes: isNumbers,
  tabs: (value) => isObject(value) && Object.values(value).every(isObject),
};

/** Return the values of an object that a state can have; others are left out. */
export function sound(given) {
  return Object.fromEntries(NAMES.filter((name) => isObject(given) && Object.hasOwn(given, name) && SOUND[name](given[name])).map((name) => [name, given[name]]));
}

/** Return the state in a fragment, with the names of its files as `files`; what cannot be read is left out. */
export async function parse(fragment) {
  const state = {}, pairs = new URLSearchParams(fragment.replace(/^#/, ""));
  for (const [name, text] of pairs) {
    if (!NAMES.includes(name)) continue;
    try { state[name] = JSON.parse(text.startsWith("~") ? await unpacked(text.slice(1)) : text); } catch { /* a link that was cut */ }
  }
  const files = pairs.getAll("f").slice(0, FILES);
  return { ...sound(state), ...(files.length ? { files } : {}) };
}

/** Return the fragment of a state of logs with the names `files`, without `#`. */
export async function write(state, files = []) {
  const pairs = files.map((name) => `f=${escaped(name)}`);
  for (const name of NAMES) {
    const value = state[name];
    if (value == null || (typeof value === "object" && !Object.keys(value).length && name !== "panels")) continue;
    const text = JSON.stringify(value), plain = escaped(text), short = plain.length > LONG ? await packed(text) : plain;
    pairs.push(`${name}=${short.length < plain.length ? short : plain}`);
  }
  return pairs.join("&");
}

/** Escape a value; commas and colons need not be. */
function escaped(text) {
  return encodeURIComponent(text).replace(/%2C/g, ",").replace(/%3A/g, ":");
}

async function packed(text) {
  if (!window.CompressionStream) return escaped(text);
  const bytes = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"))).arrayBuffer();
  return `~${btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`;
}

/** Return an unpacked text; raises RangeError for one of more than MOST bytes, to which few characters can grow. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader(), parts = [];
  for (let size = 0; ;) {
    const { value, done } = await reader.read();
    if (done) return new Blob(parts).text();
    size += value.length;
    if (size > MOST) { reader.cancel(); throw new RangeError("too long"); }
    parts.push(value);
  }
}

/** Return a state of a fragment for logs with other numbers; `ids` are by those of the fragment. */
export function renumbered(state, ids) {
  const settings = (one) => {
    if (Array.isArray(one)) return one.map(settings);
    if (!isObject(one)) return one;
    return Object.fromEntries(Object.entries(one).map(([name, value]) => [name, name === "log" && isText(value) ? ids[value] ?? value : settings(value)]));
  };
  return {
    ...state,
    ...(state.panels ? { panels: settings(state.panels) } : {}),
    ...(state.offsets ? { offsets: Object.fromEntries(Object.entries(state.offsets).map(([id, ns]) => [ids[id] ?? id, ns])) } : {}),
  };
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Return a panel as what it has other than one that the log deserves; whole if there is none with its kind and title. */
function shortened(panel, usual) {
  const at = usual.findIndex(({ kind, title }) => kind === panel.kind && title === panel.title);
  if (at < 0) return panel;
  const names = [...new Set([...Object.keys(panel), ...Object.keys(usual[at])])];
  const other = names.filter((name) => !same(panel[name], usual[at][name])).map((name) => [name, name === "series" ? curves(panel, usual[at]) : panel[name] ?? null]);
  return other.length ? [at, Object.fromEntries(other)] : at;
}

/** Return the curves of a panel, those that it has in common with a usual one as numbers. */
function curves(panel, { series }) {
  const number = (one) => (series ?? []).findIndex((other) => same(one, other));
  return panel.series?.map((one) => (number(one) < 0 ? one : number(one))) ?? null;
}

/** Return panels with each run of numbers as one text, "3-9". */
function runs(panels) {
  const found = [];
  for (const panel of panels) {
    const before = found.at(-1), [from, to] = isText(before) ? before.split("-").map(Number) : [before, before];
    if (isNumber(panel) && panel === to + 1) found[found.length - 1] = `${from}-${panel}`; else found.push(panel);
  }
  return found;
}

/** Return the panels that an entry of a link stands for. */
function lengthened(one, usual) {
  if (isObject(one)) return [one];
  if (isText(one)) { const [from, to] = one.split("-").map(Number); return usual.slice(from, to + 1); }
  const [at, other] = Array.isArray(one) ? one : [one, {}];
  if (!usual[at]) return [];
  const panel = { ...usual[at], ...other };
  if (Array.isArray(other.series)) panel.series = other.series.map((curve) => (isNumber(curve) ? usual[at].series?.[curve] : curve)).filter(isObject);
  return [Object.fromEntries(Object.entries(panel).filter(([, value]) => value !== null))];
}

export class State {
  /** @param {Object} first the state at the start */
  constructor(first) {
    this.values = { ...first };
    this.given = new Set(Object.keys(first));
    this.usual = { ...USUAL };
    this.deserved = null; // The panels that the log deserves.
    this.files = [];
    this.sources = [];
    this.timer = 0;
    this.turn = 0;
  }

  /** Take the panels that the log deserves: those of a link may be numbers of them. */
  learn(panels) {
    this.deserved = panels;
    if (this.values.panels) this.values.panels = this.values.panels.flatMap((one) => lengthened(one, panels));
  }

  get(name, otherwise = null) {
    return this.values[name] ?? otherwise;
  }

  set(name, value) {
    if (TABS.includes(name) && !this.given.has(name)) this.usual[name] ??= value;
    this.values[name] = value;
    this.changed();
  }

  /** Have `source()` asked for values each time the address is written. */
  from(source) {
    this.sources.push(source);
  }

  /** Write the address soon, if it changes: browsers limit how often that is possible. */
  changed() {
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const turn = ++this.turn, fragment = `#${await this.fragment()}`;
      // Browsers ask for the icon of the page each time.
      if (turn === this.turn && fragment !== location.hash) history.replaceState(null, "", fragment);
    }, 250);
  }

  #refresh() {
    for (const source of this.sources) Object.assign(this.values, source());
  }

  /** Return the fragment of what is seen. */
  fragment() {
    this.#refresh();
    const values = { ...this.values };
    for (const [name, value] of Object.entries(this.usual)) if (values[name] === value) delete values[name];
    if (this.deserved && values.panels) {
      values.panels = values.panels.map((panel) => shortened(panel, this.deserved));
      if (same(values.panels, [...this.deserved.keys()])) delete values.panels; else values.panels = runs(values.panels);
    }
    return write(values, this.files);
  }

  /** Return the object that a layout file holds. */
  layout() {
    this.#refresh();
    return { logreel: "layout", version: 2, ...Object.fromEntries(LAYOUT.map((name) => [name, this.values[name]])) };
  }
}
