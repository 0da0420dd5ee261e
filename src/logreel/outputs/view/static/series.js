// The curves of one plot: what is asked of the server, and when.

const PATIENCE = 250, MARGIN = 0.25;

/** Name a series for people. */
export function nameOf(series) {
  if (series.label) return series.label;
  if (series.sql) return series.sql;
  const place = series.field ? `${series.topic}.${series.field}` : series.topic;
  if (!series.function) return place;
  const [name, number] = series.function.split(" ");
  return `${name}(${place}${number ? `, ${number}` : ""})`;
}

/** Return what the server is asked for a series. */
export function wish(series) {
  return Object.fromEntries(["topic", "field", "function", "sql", "where"].filter((name) => series[name]).map((name) => [name, series[name]]));
}

/** The last place whose time is not above `at`, or -1. */
export function before(times, at) {
  let lo = 0, hi = times.length;
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (times[middle] <= at) lo = middle + 1; else hi = middle;
  }
  return lo - 1;
}

/**
 * Asks for the curves of one plot, one request at a time: the newest window waits for the answer before it, and gives it up
 * when it takes long. Old curves stay until new ones are there.
 */
export class Curves {
  /**
   * @param {Object} context
   * @param {Function} arrived called when new curves are there
   */
  constructor(context, arrived) {
    this.context = context;
    this.arrived = arrived;
    this.list = []; // {series, log, t, v (axis ns, float64), unit, all, error}
    this.flight = null;
    this.wanted = null;
  }

  /** Take these series; curves of those that stay are kept. */
  set(series, first) {
    this.list = series.map((one) => this.list.find((curve) => curve.series === one)
      ?? { series: one, log: one.log ?? first, t: [], v: [], unit: one.unit ?? "", all: false, from: 0, to: 0, error: "", asked: false });
  }

  /** Forget what is there: the log has grown or moved. */
  stale() {
    for (const curve of this.list) curve.asked = false;
  }

  /** Forget samples of a field of which all values can be had now; return whether there were any. */
  ready({ log, topic, field }) {
    const found = this.list.filter((curve) => curve.sample && curve.log === log && curve.series.topic === topic && (!field || !curve.series.field || curve.series.field === field));
    for (const curve of found) curve.asked = false;
    return found.length > 0;
  }

  get busy() {
    return this.flight !== null;
  }

  /** Ask for what the window needs, `px` pixels wide. */
  ask(from, to, px) {
    this.wanted = { from, to, px };
    if (!this.flight) return this.#fly();
    if (performance.now() - this.flight.since > PATIENCE) this.flight.stop.abort();
    return undefined;
  }

  /** Whether a curve has what the window needs. */
  #enough(curve, from, to, px) {
    if (!curve.asked || curve.shift !== this.context.time.shift(curve.log)) return false;
    if (curve.from > from || curve.to < to) return false;
    return curve.all || (curve.to - curve.from) / curve.px <= (1.3 * (to - from)) / px;
  }

  async #fly() {
    const { from, to, px } = this.wanted, { api, time } = this.context;
    const needed = this.list.filter((curve) => !this.#enough(curve, from, to, px));
    this.wanted = null;
    if (!needed.length) return this.arrived(false);
    const flight = { stop: new AbortController(), since: performance.now() };
    this.flight = flight;
    const timer = setTimeout(() => { if (this.wanted) flight.stop.abort(); }, PATIENCE);
    // More than is seen is asked for, so that a motion finds curves at the edges.
    const whole = time.whole(), margin = (to - from) * MARGIN;
    const low = Math.max(whole.from, from - margin), high = Math.min(whole.to, to + margin);
    const width = Math.max(16, Math.round((px * (high - low)) / (to - from)));
    await Promise.all(needed.map(async (curve) => {
      const shift = time.shift(curve.log);
      const window = { from: Math.round(low - shift), to: Math.round(high - shift), px: width };
      try {
        const { columns, metadata } = await api.series(curve.log, wish(curve.series), window, { signal: flight.stop.signal });
        const t = columns.t;
        if (shift) for (let i = 0; i < t.length; i++) t[i] += shift;
        Object.assign(curve, {
          t, v: columns.v, shift, from: low, to: high, px: width, asked: true,
          gaps: JSON.parse(metadata.gaps ?? "[]").map(([a, b]) => [a + shift, b + shift]), held: metadata.held === "yes",
          error: metadata.error ?? "", sample: metadata.points === "sample", all: metadata.points === "all" || Boolean(metadata.error), unit: curve.series.unit || metadata.unit || "", count: Number(metadata.count ?? t.length),
        });
        if (low <= whole.from && high >= whole.to && curve.all) Object.assign(curve, { from: -Infinity, to: Infinity });
      } catch (error) {
        if (error.name === "AbortError") return;
        Object.assign(curve, { t: [], v: [], shift, from: low, to: high, px: width, error: error.message, asked: true, all: true });
      }
    }));
    clearTimeout(timer);
    this.flight = null;
    if (!flight.ended) this.arrived(true);
    if (this.wanted) this.#fly();
    return undefined;
  }

  /** End a request that is under way. */
  dispose() {
    this.wanted = null;
    if (this.flight) { this.flight.ended = true; this.flight.stop.abort(); }
  }
}

/**
 * The value of a curve at an edge of the window between distant points: those of other curves may lie between them and the
 * edge, so that no line would be drawn. NaN where there is a point, or none before, or where the line is broken.
 */
export function reached(curve, at, end) {
  const { t, v, held } = curve, place = before(t, at);
  if (place < 0 || t[place] === at || at > end) return NaN;
  if (held) return v[place];
  return place + 1 < t.length ? v[place] + ((at - t[place]) / (t[place + 1] - t[place])) * (v[place + 1] - v[place]) : NaN;
}

/** The value of a curve at a time: of the last point at or before it; NaN if there is none, or nothing was measured then. */
export function valueAt(curve, at) {
  if (at == null || !curve.t.length || curve.gaps?.some(([from, to]) => from < at && at < to)) return NaN;
  let place = before(curve.t, at);
  while (place > 0 && Number.isNaN(curve.v[place])) place -= 1;
  return place < 0 ? NaN : curve.v[place];
}

/** Write a number as short as it can be read: seven digits at most. */
export function short(number, digits = 6) {
  if (!Number.isFinite(number)) return Number.isNaN(number) ? "–" : String(number);
  const size = Math.abs(number);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return number.toExponential(3);
  return String(Number(number.toPrecision(digits)));
}
