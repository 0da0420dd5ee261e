// Reads the one shape of Arrow IPC streams that the viewer asks for: float64 columns, no compression, no dictionaries.
// The whole library would be 200 kB for this; the layout of these messages is fixed by the Arrow columnar format.

const SCHEMA = 1, RECORD_BATCH = 3;

/** A table of a FlatBuffer: the place of a field by its number, or 0 where it has its default. */
class Table {
  constructor(view, at) {
    this.view = view;
    this.at = at;
    this.layout = at - view.getInt32(at, true);
  }
  place(field) {
    const offset = 4 + 2 * field;
    if (offset >= this.view.getUint16(this.layout, true)) return 0;
    const found = this.view.getUint16(this.layout + offset, true);
    return found ? this.at + found : 0;
  }
  follow(field) {
    const place = this.place(field);
    return place ? place + this.view.getUint32(place, true) : 0;
  }
  table(field) {
    const place = this.follow(field);
    return place ? new Table(this.view, place) : null;
  }
  byte(field) {
    const place = this.place(field);
    return place ? this.view.getUint8(place) : 0;
  }
  long(field) {
    const place = this.place(field);
    return place ? Number(this.view.getBigInt64(place, true)) : 0;
  }
  text(field) {
    const place = this.follow(field);
    if (!place) return "";
    const size = this.view.getUint32(place, true);
    return new TextDecoder().decode(new Uint8Array(this.view.buffer, this.view.byteOffset + place + 4, size));
  }
  tables(field) {
    const place = this.follow(field), found = [];
    for (let i = 0, n = place ? this.view.getUint32(place, true) : 0; i < n; i++) {
      const at = place + 4 + 4 * i;
      found.push(new Table(this.view, at + this.view.getUint32(at, true)));
    }
    return found;
  }
}

/** The key-value metadata at a field of a table. */
function metadata(table, field) {
  return Object.fromEntries(table.tables(field).map((pair) => [pair.text(0), pair.text(1)]));
}

/** Copy the values of one buffer: the stream need not be aligned to eight bytes. */
function values(bytes, start, count) {
  const from = bytes.byteOffset + start;
  return new Float64Array(bytes.buffer.slice(from, from + 8 * count));
}

/** Set values that are null to NaN. */
function mask(column, bytes, start) {
  for (let i = 0; i < column.length; i++) if (!((bytes[start + (i >> 3)] >> (i & 7)) & 1)) column[i] = NaN;
}

function join(parts) {
  if (parts.length === 1) return parts[0];
  const whole = new Float64Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) { whole.set(part, at); at += part.length; }
  return whole;
}

/**
 * Read one stream of record batches.
 * @param {Uint8Array} bytes
 * @returns {{columns: Object<string, Float64Array>, metadata: Object<string, string>}}
 */
export function readArrow(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let names = [], found = {}, parts = [], at = 0;
  while (at + 8 <= bytes.length) {
    // Before 0.15 streams had no continuation mark; the server writes it always.
    if (view.getUint32(at, true) !== 0xffffffff) throw new Error("the answer is no Arrow stream");
    const size = view.getInt32(at + 4, true);
    if (size === 0) break;
    const head = new DataView(bytes.buffer, bytes.byteOffset + at + 8, size);
    const message = new Table(head, head.getUint32(0, true));
    const body = at + 8 + size, kind = message.byte(1), header = message.table(2);
    if (kind === SCHEMA) {
      names = header.tables(1).map((field) => field.text(0));
      parts = names.map(() => []);
      found = metadata(header, 2);
    } else if (kind === RECORD_BATCH) {
      const nodes = header.follow(1) + 4, buffers = header.follow(2) + 4;
      names.forEach((name, i) => {
        const number = (place) => Number(head.getBigInt64(place, true));
        const count = number(nodes + 16 * i), nulls = number(nodes + 16 * i + 8);
        const column = values(bytes, body + number(buffers + 32 * i + 16), count);
        if (nulls) mask(column, bytes, body + number(buffers + 32 * i));
        parts[i].push(column);
      });
    }
    at = body + message.long(3);
  }
  const columns = Object.fromEntries(names.map((name, i) => [name, parts[i].length ? join(parts[i]) : new Float64Array(0)]));
  return { columns, metadata: found };
}
