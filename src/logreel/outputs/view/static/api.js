// Requests to the server: the token in a header, errors as sentences, series of one frame in one request.

import { readArrow } from "./arrow.js";

/** An answer that is no success; its message is the server's sentence. */
export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Take the token out of the address into the memory of this tab; return it, and another one that was there before or "". */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  let before = "";
  try {
    before = sessionStorage.getItem("logreel-token") ?? "";
  } catch { /* a page inside a notebook may have no storage */ }
  return given ? [keepToken(given), before === given ? "" : before] : [before, ""];
}

/** Keep a token for this tab; return it. */
export function keepToken(token) {
  try { sessionStorage.setItem("logreel-token", token); } catch { /* as above */ }
  return token;
}

/** Return the queries of `parameters`: lists repeat their name, null and undefined are left out. */
export function query(parameters = {}) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one == null || one === "") continue;
      pairs.append(name, typeof one === "number" && Math.abs(one) > 1e6 ? String(Math.round(one)) : one);
    }
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}

/** Split an answer into its parts, each after its length as u32 little-endian. */
export function lengthPrefixed(buffer) {
  const view = new DataView(buffer), parts = [];
  for (let at = 0; at + 4 <= buffer.byteLength;) {
    const size = view.getUint32(at, true);
    parts.push(new Uint8Array(buffer, at + 4, size));
    at += 4 + size;
  }
  return parts;
}

export class Api {
  /** @param {string} token */
  constructor(token) {
    this.token = token;
    this.waiting = new Map(); // Series by log, window and width, until the frame ends.
    this.pending = 0;
  }

  /** Return the response; raises ApiError with a sentence. What has `content` is sent as JSON. */
  async fetch(path, parameters, { signal, content } = {}) {
    this.#count(1);
    try {
      let response;
      try {
        response = await fetch(path + query(parameters), {
          headers: { Authorization: `Bearer ${this.token}`, ...(content ? { "Content-Type": "application/json" } : {}) }, signal, cache: "no-store",
          ...(content ? { method: "POST", body: JSON.stringify(content) } : {}),
        });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ApiError(0, "The viewer's server does not answer: start `logreel view` again.");
      }
      if (response.ok) return response;
      let text = `The server answers ${response.status}.`;
      try { text = (await response.json()).error ?? text; } catch { /* no JSON: the status must do */ }
      throw new ApiError(response.status, text);
    } finally {
      this.#count(-1);
    }
  }

  #count(step) {
    this.pending += step;
    document.documentElement.dataset.pending = this.pending;
  }

  /** Return the JSON of an answer. */
  get(path, parameters, options) {
    return this.#whole("json", path, parameters, options);
  }

  /** Send content as JSON; return the JSON of the answer. */
  post(path, content) {
    return this.#whole("json", path, {}, { content });
  }

  /** Return the bytes of an answer. */
  bytes(path, parameters, options) {
    return this.#whole("arrayBuffer", path, parameters, options);
  }

  /** Return an answer as a blob. */
  blob(path, parameters, options) {
    return this.#whole("blob", path, parameters, options);
  }

  async #whole(how, ...request) {
    this.#count(1);
    try {
      return await (await this.fetch(...request))[how]();
    } finally {
      this.#count(-1);
    }
  }

  /** Return columns and metadata of an Arrow answer. */
  async arrow(path, parameters, options) {
    return readArrow(new Uint8Array(await this.bytes(path, parameters, options)));
  }

  session(options) {
    return this.get("/api/session", {}, options);
  }

  /**
   * Return one series; those asked for in the same frame, of the same log and window, are one request.
   * @param {string} log
   * @param {{topic: string, field?: string, function?: string, sql?: string}} series
   * @param {{from: number, to: number, px: number}} window ns of this log
   */
  series(log, series, { from, to, px }, { signal } = {}) {
    const place = [log, from, to, px].join(" ");
    if (!this.waiting.size) requestAnimationFrame(() => this.#flush());
    if (!this.waiting.has(place)) this.waiting.set(place, { log, from, to, px, wanted: [] });
    return new Promise((done, fail) => this.waiting.get(place).wanted.push({ series, done, fail, signal }));
  }

  #flush() {
    const batches = [...this.waiting.values()];
    this.waiting.clear();
    for (const batch of batches) this.#batch(batch);
  }

  async #batch({ log, from, to, px, wanted }) {
    const alive = wanted.filter(({ signal }) => !signal?.aborted), stop = new AbortController();
    let open = alive.length;
    for (const one of wanted) if (one.signal?.aborted) one.fail(aborted());
    if (!open) return;
    // The request is given up when nobody wants any of its series.
    const leave = () => { open -= 1; if (!open) stop.abort(); };
    for (const one of alive) one.signal?.addEventListener("abort", leave, { once: true });
    try {
      const s = alive.map((one) => JSON.stringify(one.series));
      const parts = lengthPrefixed(await this.bytes(`/api/logs/${log}/series`, { s, from, to, px }, { signal: stop.signal }));
      alive.forEach((one, i) => (one.signal?.aborted ? one.fail(aborted()) : one.done(readArrow(parts[i]))));
    } catch (error) {
      // One series that cannot be read must not take the others with it.
      if (alive.length > 1 && error instanceof ApiError && error.status >= 400) {
        for (const one of alive) this.#batch({ log, from, to, px, wanted: [one] });
      } else for (const one of alive) one.fail(error);
    } finally {
      for (const one of alive) one.signal?.removeEventListener("abort", leave);
    }
  }

  /** Call `told` with each server-sent event until `signal` ends it. */
  async events(told, { signal } = {}) {
    const response = await this.fetch("/api/events", {}, { signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value;
      const events = text.split(/\r?\n\r?\n/);
      text = events.pop();
      for (const event of events) {
        const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        if (data) told(JSON.parse(data));
      }
    }
  }
}

function aborted() {
  return new DOMException("no longer wanted", "AbortError");
}
