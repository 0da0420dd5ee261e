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

  channels(log) {
    return this.#once(log, "channels");
  }

  parameters(log) {
    return this.#once(log, "parameters");
  }

  charts(log) {
    return this.#once(log, "charts");
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
    const channel = (await this.channels(log)).find((one) => one.topic === topic);
    if (!channel) return null;
    const plain = (text) => text.replace(/\[\d+\]/g, "[]");
    const found = channel.fields.find((one) => one.path === path)
      ?? channel.fields.find((one) => plain(one.path) === plain(path ?? "") || one.path.startsWith(`${path}[`));
    return found ? { ...found, topic } : null;
  }
}
