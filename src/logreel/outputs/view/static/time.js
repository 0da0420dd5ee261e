// One axis of time for all logs, in ns; what is shown of it is one of three clocks.
//
// A time on the axis is `t + shift(log)`, where t is ns since the start of that log.

const DAY = 86400n * 1000000000n, SECOND = 1e9;
/** How an alignment by a text begins. */
export const EVENT = "event:";
export const CLOCKS = { start: "since start", utc: "UTC", log: "log clock" };

/** Steps of an axis in ns: 1, 2 and 5 times powers of ten below a second, round times of day above. */
export const STEPS = [];
for (let step = 1; step < SECOND; step *= 10) STEPS.push(step, 2 * step, 5 * step);
for (const seconds of [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]) STEPS.push(seconds * SECOND);
for (const days of [1, 2, 5, 10, 20, 50, 100, 500, 1000, 5000]) STEPS.push(days * 86400 * SECOND);

export class Time {
  /**
   * @param {Array} logs as in /api/session
   * @param {Object} bus
   */
  constructor(logs, bus) {
    this.logs = logs;
    this.bus = bus;
    this.clock = "start";
    this.align = "start";
    this.offsets = {};
    this.known = {}; // bands and marks of each log, as in its overview
    this.first = logs[0] ?? { start: "0", utc_shift: null, duration: 0 };
  }

  /** Return what is added to times of a log to place it on the axis, in ns. */
  shift(id) {
    const log = this.logs.find((one) => one.id === id) ?? this.first, offset = this.offsets[id] ?? 0;
    if (log === this.first) return offset;
    if (this.align === "utc" && log.utc_shift != null && this.first.utc_shift != null) {
      return Number(utcStart(log) - utcStart(this.first)) + offset;
    }
    const mine = this.anchor(id), first = this.anchor(this.first.id);
    return mine == null || first == null ? offset : first - mine + offset;
  }

  /** Return the moment of a log, in ns since its start, by which logs are aligned, or null. */
  anchor(id, align = this.align) {
    const { bands, marks } = this.known[id] ?? {};
    if (!bands) return null;
    if (align.startsWith(EVENT)) return marks.find(({ text }) => text === align.slice(EVENT.length))?.t ?? null;
    return bands.find(({ kind }) => kind === align)?.from ?? null;
  }

  /** Take what is known of a log; logs that are aligned by it move. */
  learn(id, overview) {
    const before = this.anchor(id);
    this.known[id] = overview;
    if (this.anchor(id) !== before) this.bus.send("shift", null);
  }

  /** Return the texts that all logs have, each with a moment in each of them. */
  events() {
    const lists = this.logs.map(({ id }) => new Set((this.known[id]?.marks ?? []).map(({ text }) => text)));
    return lists.length ? [...lists[0]].filter((text) => text.length <= 200 && lists.every((list) => list.has(text))) : [];
  }

  toAxis(id, t) {
    return t + this.shift(id);
  }

  toLog(id, axis) {
    return axis - this.shift(id);
  }

  /** Return the interval of the axis that holds all logs. */
  whole() {
    let from = Infinity, to = -Infinity;
    for (const log of this.logs) {
      const shift = this.shift(log.id);
      from = Math.min(from, shift);
      to = Math.max(to, shift + log.duration);
    }
    if (!(from <= to)) [from, to] = [0, 0];
    return { from, to: to > from ? to : from + SECOND };
  }

  setClock(clock) {
    this.clock = clock === "utc" && this.first.utc_shift == null ? "start" : clock;
    this.bus.send("clock", this.clock);
  }

  /** Return the clocks that these logs have. */
  clocks() {
    return Object.keys(CLOCKS).filter((name) => name !== "utc" || this.first.utc_shift != null);
  }

  setAlign(align, offsets = this.offsets) {
    this.align = align;
    this.offsets = offsets;
    this.bus.send("shift", null);
  }

  /** Return where the zero of round steps lies on the axis: midnight for UTC. */
  zero() {
    if (this.clock === "utc") return -Number(utcStart(this.first) % DAY);
    if (this.clock === "log") return -Number(BigInt(this.first.start) % DAY);
    return 0;
  }

  /**
   * Return the text of a time on the axis.
   * @param {number} axis
   * @param {number} [step] ns between two that must differ; decides the decimals
   */
  text(axis, step = 1e6) {
    if (axis == null || !Number.isFinite(axis)) return "–";
    const digits = step >= SECOND ? 0 : Math.min(9, Math.ceil(-Math.log10(step / SECOND) - 1e-9));
    const ns = BigInt(Math.round(axis));
    if (this.clock === "utc") return dayTime(utcStart(this.first) + ns, digits);
    if (this.clock === "log") return seconds(BigInt(this.first.start) + ns, digits);
    return digits > 0 || Math.abs(axis) < 60 * SECOND || step < 60 * SECOND && this.whole().to < 600 * SECOND
      ? `${seconds(ns, digits)}` : lasting(ns);
  }

  /** Return the text with its unit, for one time alone. */
  full(axis, step = 1e6) {
    const text = this.text(axis, step);
    if (text === "–") return text;
    return this.clock === "utc" ? `${text} UTC` : text.includes(":") ? text : `${text} s`;
  }

  /** Return the time on the axis that a text means ("12.5", "1:02", "08:42:20" for UTC), or null. */
  parse(text) {
    const found = /^\s*([+-]?)(?:(\d+):)?(?:(\d+):)?(\d+(?:\.\d*)?)\s*s?\s*$/.exec(text);
    if (!found) return null;
    const [, sign, a, b, c] = found;
    const [hours, minutes] = b === undefined ? [0, a ?? 0] : [a, b];
    const value = (sign === "-" ? -1 : 1) * ((Number(hours) * 60 + Number(minutes)) * 60 + Number(c)) * SECOND;
    if (this.clock === "utc") return Math.round(value + this.zero());
    return this.clock === "log" ? Number(BigInt(Math.round(value)) - BigInt(this.first.start)) : Math.round(value);
  }
}

/** Return the start of a log in ns since 1970. */
export function utcStart(log) {
  return BigInt(log.start) + BigInt(log.utc_shift ?? 0);
}

function dayTime(ns, digits) {
  const ms = ns / 1000000n, below = ns % SECOND_N;
  const text = new Date(Number(ms)).toISOString().slice(11, 19);
  return digits ? `${text}.${String(below < 0n ? below + SECOND_N : below).padStart(9, "0").slice(0, digits)}` : text;
}

const SECOND_N = 1000000000n;

function seconds(ns, digits) {
  const sign = ns < 0n ? "-" : "", size = ns < 0n ? -ns : ns;
  const whole = String(size / SECOND_N);
  return digits ? `${sign}${whole}.${String(size % SECOND_N).padStart(9, "0").slice(0, digits)}` : sign + whole;
}

function lasting(ns) {
  const sign = ns < 0n ? "-" : "", size = (ns < 0n ? -ns : ns) / SECOND_N;
  const two = (number) => String(number).padStart(2, "0");
  const hours = size / 3600n, minutes = (size / 60n) % 60n;
  return hours ? `${sign}${hours}:${two(minutes)}:${two(size % 60n)}` : `${sign}${minutes}:${two(size % 60n)}`;
}

/** Return a length of time for people: `340 µs`, `1.25 s`, `4 min 10 s`, `2 h 5 min`. */
export function length(ns) {
  const size = Math.abs(ns), sign = ns < 0 ? "−" : "";
  const short = (number) => String(Number(number.toPrecision(4)));
  if (size < 1e3) return `${sign}${short(size)} ns`;
  if (size < 1e6) return `${sign}${short(size / 1e3)} µs`;
  if (size < 1e9) return `${sign}${short(size / 1e6)} ms`;
  if (size < 120e9) return `${sign}${short(size / 1e9)} s`;
  const total = Math.round(size / 1e9);
  const pair = (a, first, b, second) => `${sign}${a} ${first}${b ? ` ${b} ${second}` : ""}`;
  if (total < 7200) return pair(Math.floor(total / 60), "min", total % 60, "s");
  return pair(Math.floor(total / 3600), "h", Math.floor((total % 3600) / 60), "min");
}
