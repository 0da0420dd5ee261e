// Where panels stand: rows below each other, cells side by side in a row, panels below each other in a cell.

/** Pixels: least height of a panel, width below which all stand below each other, and the edge of a row that means the whole row. */
const LEAST = 112, NARROW = 560, EDGE = 16;
/** Members of a panel, in a link and in a layout, that say where it stands. */
export const PLACE = ["at", "height", "wide", "tall"];

const between = (value, least, most, otherwise) => (Number.isFinite(value) ? Math.min(Math.max(value, least), most) : otherwise);
const sum = (list, of) => list.reduce((total, one) => total + of(one), 0);

export class Grid {
  constructor() {
    /** [{height: pixels or 0, cells: [{wide: share, frames: [{tall: share, …}]}]}] */
    this.rows = [];
  }

  get frames() {
    return this.rows.flatMap(({ cells }) => cells.flatMap(({ frames }) => frames));
  }

  find(frame) {
    for (const row of this.rows) for (const cell of row.cells) if (cell.frames.includes(frame)) return { row, cell };
    return null;
  }

  /** Take the place of each of a list of frames from {at, height, wide, tall}. */
  build(list) {
    this.rows = [];
    for (const { frame, at, height, wide, tall } of list) {
      frame.tall = between(tall, 0.05, 20, 1);
      const row = this.rows.at(-1), cell = { wide: between(wide, 0.05, 20, 1), frames: [frame] };
      if (row && at === "below") row.cells.at(-1).frames.push(frame);
      else if (row && at === "right") row.cells.push(cell);
      else this.rows.push({ height: between(height, 96, 8000, 0), cells: [cell] });
    }
    this.#split();
  }

  /** Return the place of each frame, as `build` takes it. */
  places() {
    const found = new Map(), round = (share) => Math.round(share * 1000) / 1000;
    for (const { height, cells } of this.rows) {
      cells.forEach(({ wide, frames }, i) => frames.forEach((frame, j) => found.set(frame, {
        ...(j ? { at: "below" } : i ? { at: "right" } : height ? { height: Math.round(height) } : {}),
        ...(j || cells.length === 1 || wide === 1 ? {} : { wide: round(wide) }), ...(frames.length === 1 || frame.tall === 1 ? {} : { tall: round(frame.tall) }),
      })));
    }
    return found;
  }

  /** Put a frame at a side of another one: left, right, above or below of it, over or under its whole row. */
  put(frame, other = null, side = "under") {
    const place = other && this.find(other), fresh = { height: 0, cells: [{ wide: 1, frames: [frame] }] };
    frame.tall = 1;
    if (!place) return side === "over" ? this.rows.unshift(fresh) : this.rows.push(fresh);
    const { row, cell } = place, { cells } = row;
    const whole = side === "over" || side === "under" || (cells.length === 1 && (side === "above" || side === "below"));
    if (whole) return this.rows.splice(this.rows.indexOf(row) + (side === "under" || side === "below" ? 1 : 0), 0, fresh);
    if (side === "left" || side === "right") return cells.splice(cells.indexOf(cell) + (side === "right" ? 1 : 0), 0, { wide: sum(cells, ({ wide }) => wide) / cells.length, frames: [frame] });
    return cell.frames.splice(cell.frames.indexOf(other) + (side === "below" ? 1 : 0), 0, frame);
  }

  take(frame) {
    for (const row of this.rows) {
      for (const cell of row.cells) cell.frames = cell.frames.filter((one) => one !== frame);
      row.cells = row.cells.filter(({ frames }) => frames.length);
    }
    this.rows = this.rows.filter(({ cells }) => cells.length);
    this.#split();
  }

  /** Panels below each other that have nothing beside them are rows. */
  #split() {
    this.rows = this.rows.flatMap((row) => {
      const { frames } = row.cells[0];
      if (row.cells.length > 1 || frames.length === 1) return [row];
      const total = sum(frames, ({ tall }) => tall);
      return frames.map((frame) => ({ height: row.height ? Math.max(96, (row.height * frame.tall) / total) : 0, cells: [{ wide: 1, frames: [frame] }] }));
    });
    for (const { cells } of this.rows) {
      for (const { frames } of cells) if (frames.length === 1) frames[0].tall = 1;
      if (cells.length === 1) cells[0].wide = 1;
    }
  }

  /** Move a frame by one place to a side; return whether that is possible. */
  move(frame, side) {
    const { row, cell } = this.find(frame), { cells } = row, step = side === "right" || side === "below" ? 1 : -1;
    const alone = cells.length === 1 && cell.frames.length === 1, at = this.rows.indexOf(row);
    const swap = (list, one) => {
      const i = list.indexOf(one), other = list[i + step];
      if (!other) return false;
      list[i + step] = one;
      list[i] = other;
      return true;
    };
    if (side === "above" || side === "below") {
      if (swap(cell.frames, frame)) return true;
      if (alone) return swap(this.rows, row);
      this.take(frame);
      const end = step > 0 ? -1 : 0;
      this.put(frame, row.cells.at(end).frames.at(end), step > 0 ? "under" : "over");
      return true;
    }
    if (alone) {
      const near = this.rows[at - 1] ?? this.rows[at + 1];
      if (!near) return false;
      this.take(frame);
      this.put(frame, near.cells.at(step > 0 ? -1 : 0).frames[0], side);
      return true;
    }
    if (cell.frames.length === 1) return swap(cells, cell);
    const stay = cell.frames.find((one) => one !== frame);
    this.take(frame);
    this.put(frame, stay, side);
    return true;
  }

  /** What a drop at a point of the window does: {other, side, box}; null if nothing. */
  spot(x, y, moved) {
    const inside = ({ left, top, right, bottom }) => x >= left && x < right && y >= top && y < bottom;
    const other = this.frames.find(({ element }) => inside(element.getBoundingClientRect())) ?? this.frames.at(-1);
    if (!other) return { other: null, side: "under", box: null };
    const { left, top, width, height } = other.element.getBoundingClientRect(), { row } = this.find(other);
    const boxes = row.cells.flatMap(({ frames }) => frames.map(({ element }) => element.getBoundingClientRect()));
    const edge = { left: Math.min(...boxes.map((box) => box.left)), top: Math.min(...boxes.map((box) => box.top)), right: Math.max(...boxes.map((box) => box.right)), bottom: Math.max(...boxes.map((box) => box.bottom)) };
    const across = { left: edge.left, width: edge.right - edge.left, height: 2 * EDGE };
    if (y >= edge.bottom - (row.cells.length > 1 ? EDGE : 0)) return { other, side: "under", box: { ...across, top: edge.bottom - EDGE } };
    if (row.cells.length > 1 && y < edge.top + EDGE) return { other, side: "over", box: { ...across, top: edge.top - EDGE } };
    if (other === moved) return null;
    const part = (x - left) / width, low = y > top + height / 2;
    if (part < 0.3) return { other, side: "left", box: { left, top, width: width / 2, height } };
    if (part > 0.7) return { other, side: "right", box: { left: left + width / 2, top, width: width / 2, height } };
    return { other, side: low ? "below" : "above", box: { left, top: top + (low ? height / 2 : 0), width, height: height / 2 } };
  }

  /**
   * Give each frame its place in a column of `width` and `room` pixels; return the bars between cells: [{row, at, left, top, height}].
   * Frames that need much room have several `units`.
   * @param {number} first rows that fit into the room at least
   */
  arrange(width, room, first) {
    const rows = width < NARROW ? this.frames.map((frame) => ({ height: this.find(frame).row.height, cells: [{ wide: 1, frames: [frame] }] })) : this.rows;
    const deep = ({ cells }) => Math.max(...cells.map(({ frames }) => sum(frames, ({ units }) => units)));
    // As many whole plots as fit well; those of the first screen at least, and as many as possible of what somebody arranged.
    const count = sum(rows, deep), fit = rows.some(({ cells }) => cells.length > 1) ? count : Math.max(first, Math.round(room / 240));
    const each = Math.max(LEAST, Math.floor(room / Math.max(1, Math.min(count, fit))));
    const free = sum(rows, (row) => (row.height ? 0 : deep(row)));
    const spare = Math.max(0, room - sum(rows, (row) => row.height || each * deep(row))) / (free || 1), bars = [];
    let top = 0;
    for (const row of rows) {
      const height = Math.max(row.height || (each + spare) * deep(row), 96), total = sum(row.cells, ({ wide }) => wide);
      let left = 0;
      row.cells.forEach(({ wide, frames }, i) => {
        const parts = sum(frames, ({ tall, units }) => tall * units);
        let down = top;
        if (i) bars.push({ row, at: i, left: 100 * left, top, height });
        for (const { element, tall, units } of frames) {
          const high = (height * tall * units) / parts;
          // Whole pixels, so that no line between panels is blurred.
          Object.assign(element.style, { left: `${100 * left}%`, width: `${(100 * wide) / total}%`, top: `${Math.round(down)}px`, height: `${Math.round(down + high) - Math.round(down)}px` });
          element.classList.toggle("beside", i > 0);
          down += high;
        }
        left += wide / total;
      });
      top += height;
    }
    return bars;
  }
}
