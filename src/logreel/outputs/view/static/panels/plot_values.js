// Values as texts: numbers, and stamps as times.

import { length } from "../time.js";
import { short } from "../series.js";

const SCALES = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9 };
/** Names of fields that hold times, beside those whose type says so. */
const TIMES = /(^|[._])(timestamp|stamp|time)(_sample|_ns|_us|_utc|_utc_usec)?$/;
/** ns since 1970 from which on a time is one of a calendar: the year 2000. */
const CALENDAR = 946684800e9;

/** Return the kind of time that a field holds: "utc", "length", or the unit in which it counts, "us"; null for no time.
 *  `otherwise` is the unit of stamps whose definition states none. */
export function isStamp(field, otherwise = "") {
  if (!field) return null;
  if (field.type?.startsWith("timestamp")) return "utc";
  if (field.type?.startsWith("duration")) return "length";
  const unit = field.unit || (field.type === "uint64" ? otherwise : "");
  return /^u?int/.test(field.type ?? "") && TIMES.test(field.path ?? "") && Object.hasOwn(SCALES, unit) ? unit : null;
}

/** Write a value: of a stamp as a time of day, or since its zero. */
export function named(value, stamp = null, step = 1e6) {
  if (!stamp || !Number.isFinite(value)) return short(value);
  const ns = value * (SCALES[stamp] ?? 1);
  if (stamp === "length") return length(ns);
  if (ns < CALENDAR) return since(ns, step);
  const digits = decimals(step), text = new Date(ns / 1e6).toISOString();
  return digits ? `${text.slice(11, 19)}.${String(Math.floor(((ns % 1e9) + 1e9) % 1e9)).padStart(9, "0").slice(0, digits)}` : text.slice(11, 19);
}

function since(ns, step) {
  return `${(ns / 1e9).toFixed(Math.max(0, decimals(step)))} s`;
}

function decimals(step) {
  return step >= 1e9 ? 0 : Math.min(9, Math.ceil(-Math.log10(step / 1e9) - 1e-9));
}

/** Write the numbers of an axis of stamps with the decimals that the distance between them needs. */
export function stampNumbers(ticks, stamp) {
  const step = (ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : 1) * (SCALES[stamp] ?? 1);
  return ticks.map((tick) => named(tick, stamp, step));
}
