// What is asked of each log once, and kept: channels, overview, parameters.

export class Data {
  /**
   * @param {import("./api.js").Api} api
   * @param {Object} bus
   * @param {Array} logs as in /api/session
   */
  constructor(api, bus, logs) {
    this.api = api;
    this.logs = logs;
    this.bins = 1600;
    this.kept = new Map();
    this.known = new Map();
    this.flat = new WeakMap();
    this.overviews = new Map();
    bus.on("grown", ({ log }) => {
      for (const name of ["overview", "channels", "parameters"]) this.kept.delete(`${log} ${name}`);
      this.overview(log).then(() => bus.send("overview", log), () => {});
    });
    this.bus = bus;
  }

  #once(log, name, parameters) {
    const key = `${log} ${name}`;
    if (!this.kept.has(key)) {
      const answer = this.api.get(`/api/logs/${log}/${name}`, parameters);
      // A failure is not kept: the next who asks tries again.
      answer.catch(() => this.kept.delete(key));
      this.kept.set(key, answer);
    }
    return this.kept.get(key);
  }

  /** Keep an answer that came with another one. */
  take(log, name, answer) {
    if (answer) this.kept.set(`${log} ${name}`, Promise.resolve(answer));
  }

  /** Return the channels; the items of short arrays are fields of their own. */
  async channels(log) {
    const channels = await this.#once(log, "channels");
    if (!this.flat.has(channels)) {
      this.flat.set(channels, channels.map((channel) => ({ ...channel, fields: channel.fields.flatMap((field) => [field, ...items(field)]) })));
    }
    return this.flat.get(channels);
  }

  /** Return faults, events and summary of a log, which takes the server longer than all else. */
  async findings(log) {
    const found = await this.#once(log, "findings");
    this.bus.send("findings", { ...this.bus.last("findings"), [log]: found });
    return found;
  }

  /** Have an answer asked for again. */
  forget(log, name) {
    this.kept.delete(`${log} ${name}`);
  }

  parameters(log) {
    return this.#once(log, "parameters");
  }

  /** Return the charts; what they say of their fields is known before the channels are. */
  async charts(log) {
    const charts = await this.#once(log, "charts");
    for (const { series } of charts.panels) for (const { topic, field, about } of series) if (about !== undefined) this.known.set(`${log} ${topic} ${field}`, about);
    return charts;
  }

  /** Return the overview of a log; one that is not complete is asked for again until it is. */
  async overview(log) {
    const found = await this.#once(log, "overview", { bins: this.bins });
    if (this.overviews.get(log) !== found) {
      this.overviews.set(log, found);
      this.bus.send("overview", log);
      if (found.complete === false) {
        setTimeout(() => {
          this.kept.delete(`${log} overview`);
          this.overview(log).catch(() => {});
        }, 700);
      }
    }
    return found;
  }

  /** Return the overview that is there already, or null. */
  overviewNow(log) {
    return this.overviews.get(log) ?? null;
  }

  /** Return {topic, type, path, unit, text, enum} of a field, or null. */
  async field(log, topic, path) {
    const known = this.known.get(`${log} ${topic} ${path}`);
    if (known !== undefined) return known && { ...known, topic };
    const channel = (await this.channels(log)).find((one) => one.topic === topic);
    if (!channel) return null;
    const found = channel.fields.find((one) => one.path === path)
      ?? channel.fields.find((one) => one.path === path?.replace(/\[\d+\]$/, "") || one.path.startsWith(`${path}[`));
    return found ? { ...found, topic } : null;
  }
}

const MOST = 32;

/** The items of an array that is always as long, as fields. */
function items(field) {
  if (!field.items || field.items > MOST || field.number === false) return [];
  return Array.from({ length: field.items }, (_, i) => ({ ...field, path: `${field.path}[${i}]`, items: null, item: true }));
}
