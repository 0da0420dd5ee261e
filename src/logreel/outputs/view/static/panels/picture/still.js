// Pictures as the server sends them: one request under way, the next one fetched ahead, the newest wish first.

const KEPT = 12;

export class Stills {
  /**
   * @param {Object} api
   * @param {string} log
   * @param {string} topic
   */
  constructor(api, log, topic) {
    this.api = api;
    this.log = log;
    this.topic = topic;
    this.kept = []; // {t, next, bitmap, row, note, size}
  }

  /** Return the picture at a moment (ns since the start of the log) that is there already, or null. */
  known(at) {
    return this.kept.find(({ t, next }) => t <= at && (next === null || at < next)) ?? null;
  }

  /** Return the picture at a moment. */
  async get(at, width) {
    const known = this.known(at);
    if (known) return known;
    const response = await this.api.fetch(`/api/logs/${this.log}/picture`, { topic: this.topic, at: Math.round(at), width });
    const head = (name) => response.headers.get(`Logreel-${name}`), next = head("Next");
    const found = { t: Number(head("Time")), next: next === null ? null : Number(next), row: Number(head("Row")), note: head("Note") ?? "", size: head("Size") };
    try {
      found.bitmap = await createImageBitmap(await response.blob());
    } catch {
      throw new Error("The browser cannot decode this picture: it is cut off or damaged.");
    }
    this.kept.push(found);
    while (this.kept.length > KEPT) this.kept.shift().bitmap.close();
    return found;
  }

  /** Fetch the picture after one, for when it is played. */
  ahead({ next }, width) {
    if (next !== null && !this.known(next) && !this.fetching) {
      this.fetching = true;
      this.get(next, width).catch(() => {}).finally(() => { this.fetching = false; });
    }
  }

  forget() {
    // The last picture may have a successor now.
    this.kept = this.kept.filter(({ next, bitmap }) => { if (next === null) bitmap.close(); return next !== null; });
  }

  dispose() {
    for (const { bitmap } of this.kept) bitmap.close();
    this.kept = [];
  }
}
