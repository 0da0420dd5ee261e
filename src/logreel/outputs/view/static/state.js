// What a view is: kept in the fragment of the address, so that a link, a reload or a layout file brings it back.
//
// {panels: [{kind, ...settings}], window: [from, to], cursor, cursor2, theme, clock, side, lower, pinned: [topic.field],
//  align, offsets: {log: ns}, sizes: {tree, side, bottom, lower}, tabs: {kind: settings}}

const NAMES = ["panels", "window", "cursor", "cursor2", "theme", "clock", "side", "lower", "pinned", "align", "offsets", "sizes", "tabs"];
/** Names that say how a view is laid out, and nothing of one log. */
const LAYOUT = ["panels", "theme", "clock", "side", "lower", "pinned", "sizes", "tabs"];

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isNumbers = (value) => isObject(value) && Object.values(value).every(Number.isFinite);
const isText = (value) => typeof value === "string";

/** What a value must be; a link or a file may come from anybody. */
const SOUND = {
  panels: (value) => Array.isArray(value) && value.length <= 200 && value.every((one) => isObject(one) && isText(one.kind)),
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

/** Return the state in a fragment; what cannot be read is left out. */
export function parse(fragment) {
  const state = {};
  for (const [name, text] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (!NAMES.includes(name)) continue;
    try { state[name] = JSON.parse(text); } catch { /* a link that was cut */ }
  }
  return sound(state);
}

/** Return the fragment of a state, without `#`. */
export function write(state) {
  const pairs = new URLSearchParams();
  for (const name of NAMES) {
    const value = state[name];
    if (value == null || (typeof value === "object" && !Object.keys(value).length && name !== "panels")) continue;
    pairs.append(name, JSON.stringify(value));
  }
  return pairs.toString();
}

export class State {
  /** @param {Object} first the state at the start */
  constructor(first) {
    this.values = { ...first };
    this.sources = [];
    this.timer = 0;
  }

  get(name, otherwise = null) {
    return this.values[name] ?? otherwise;
  }

  set(name, value) {
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
    this.timer = setTimeout(() => {
      const fragment = `#${this.fragment()}`;
      // Browsers ask for the icon of the page each time.
      if (fragment !== location.hash) history.replaceState(null, "", fragment);
    }, 250);
  }

  fragment() {
    for (const source of this.sources) Object.assign(this.values, source());
    return write(this.values);
  }

  /** Return the object that a layout file holds. */
  layout() {
    this.fragment();
    return { logreel: "layout", version: 2, ...Object.fromEntries(LAYOUT.map((name) => [name, this.values[name]])) };
  }
}
