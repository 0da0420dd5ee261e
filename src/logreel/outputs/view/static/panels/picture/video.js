// Video decoded by the browser (WebCodecs), where it can: packets from the key frame before the moment, some seconds at once.

/** Nanoseconds of video in one request, bytes before each packet, and ms after which a decoder is flushed. */
const AHEAD = 3e9, HEAD = 16, PATIENCE = 120;

/** Return whether this browser can decode video at all. */
export function able() {
  return typeof VideoDecoder !== "undefined";
}

export class Video {
  constructor(api, log, topic) {
    this.api = api;
    this.log = log;
    this.topic = topic;
    this.packets = [];
    this.frames = []; // decoded ones: {t, frame}
  }

  /** Return {t, next, bitmap} at a moment; raises an error where the browser cannot decode the video. */
  async get(at) {
    if (!this.packets.length || at < this.packets[0].t || at > this.until) await this.#fetch(at);
    const { packets } = this, row = packets.findLastIndex(({ t }) => t <= at), last = row < 0 ? 0 : row;
    // Go on where decoding stopped, if that is before the moment and after the key frame before it.
    const key = packets.slice(0, last + 1).findLastIndex((one) => one.key);
    if (this.at === undefined || this.at > last || this.at < key - 1) this.#restart(key - 1);
    for (let i = this.at + 1; i <= last; i++) this.#push(packets[i], i);
    this.at = Math.max(this.at, last);
    const frame = await this.#frame(packets[last].t);
    return { t: packets[last].t, next: packets[last + 1]?.t ?? null, row: null, note: "", size: `${frame.displayWidth}x${frame.displayHeight}`, bitmap: frame };
  }

  async #fetch(at) {
    const response = await this.api.fetch(`/api/logs/${this.log}/video`, { topic: this.topic, from: Math.round(at), to: Math.round(at + AHEAD) });
    const codec = response.headers.get("Logreel-Codec"), buffer = await response.arrayBuffer(), view = new DataView(buffer);
    this.packets = [];
    for (let i = 0; i + HEAD <= buffer.byteLength;) {
      const size = view.getUint32(i + 12, true);
      this.packets.push({ t: view.getFloat64(i, true), key: view.getUint32(i + 8, true) === 1, data: new Uint8Array(buffer, i + HEAD, size) });
      i += HEAD + size;
    }
    if (!this.packets.length) throw new Error("no packets");
    this.until = Math.max(at, this.packets.at(-1).t);
    const name = codecName(codec, this.packets[0].data);
    this.config = { codec: name, optimizeForLatency: true };
    if (!name || !(await VideoDecoder.isConfigSupported(this.config)).supported) throw new Error(`this browser does not decode ${codec}`);
    this.#restart(-1);
  }

  #restart(at) {
    this.#drop();
    if (this.decoder?.state === "configured") this.decoder.close();
    this.failure = null;
    this.decoder = new VideoDecoder({
      output: (frame) => { this.frames.push(frame); this.wake?.(); while (this.frames.length > 4) this.frames.shift().close(); },
      error: (error) => { this.failure = error; this.wake?.(); },
    });
    this.decoder.configure(this.config);
    this.at = at;
  }

  #push({ t, key, data }) {
    this.decoder.decode(new EncodedVideoChunk({ type: key ? "key" : "delta", timestamp: Math.round(t / 1000), data }));
  }

  /** Wait for the frame of a time; a decoder that holds it back is flushed, and then needs a key frame. */
  async #frame(t) {
    const stamp = Math.round(t / 1000), find = () => this.frames.findLast(({ timestamp }) => timestamp === stamp);
    const waiting = () => !find() && !this.failure;
    if (waiting()) await Promise.race([new Promise((done) => { this.wake = () => waiting() || done(); }), new Promise((done) => setTimeout(done, PATIENCE))]);
    this.wake = null;
    if (waiting()) {
      await this.decoder.flush().catch((error) => { this.failure ??= error; });
      this.at = undefined;
    }
    const frame = find() ?? this.frames.at(-1);
    if (!frame) throw this.failure ?? new Error("no picture came out of the decoder");
    return frame;
  }

  #drop() {
    for (const frame of this.frames) frame.close();
    this.frames = [];
  }

  forget() {
    this.packets = [];
  }

  dispose() {
    this.#drop();
    if (this.decoder?.state === "configured") this.decoder.close();
  }
}

/** Return the name of a codec for WebCodecs, from the parameter sets in the first packet; null if they are missing. */
function codecName(codec, data) {
  const hex = (number) => number.toString(16).padStart(2, "0");
  for (let i = 0; i + 20 < data.length; i++) {
    if (data[i] || data[i + 1] || data[i + 2] !== 1) continue;
    const at = i + 3;
    if (codec === "h264" && (data[at] & 31) === 7) return `avc1.${hex(data[at + 1])}${hex(data[at + 2])}${hex(data[at + 3])}`;
    if (codec === "h265" && ((data[at] >> 1) & 63) === 33) return hevc(unescape3(data.subarray(at + 3, at + 24)));
  }
  return null;
}

/** Drop the bytes that keep start codes out of the payload. */
function unescape3(bytes) {
  return bytes.filter((byte, i) => !(byte === 3 && i >= 2 && !bytes[i - 1] && !bytes[i - 2]));
}

/** Profile, compatibility, tier and level, as in ISO/IEC 14496-15, annex E. */
function hevc(set) {
  const space = ["", "A", "B", "C"][set[0] >> 6], profile = set[0] & 31, tier = set[0] & 32 ? "H" : "L";
  // The bits in reverse order.
  let reverse = 0;
  const word = ((set[1] << 24) | (set[2] << 16) | (set[3] << 8) | set[4]) >>> 0;
  for (let i = 0; i < 32; i++) reverse = ((reverse << 1) | ((word >>> i) & 1)) >>> 0;
  const constraints = [...set.slice(5, 11)];
  while (constraints.length && !constraints.at(-1)) constraints.pop();
  return [`hev1.${space}${profile}`, reverse.toString(16), `${tier}${set[11]}`, ...constraints.map((byte) => byte.toString(16))].join(".");
}
