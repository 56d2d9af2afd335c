/**
 * `window.lockstep`: what the page holds, for tests and benchmarks. Its names stay as they are.
 *
 *   run               as the server describes it
 *   spans, perRank    how many spans are in memory, in all and by rank
 *   spanDigest()      per rank a count and a checksum that does not depend on order (timeline/digest.js)
 *   firstSpanAtMs     when the first frame that showed a span was drawn, in ms since 1970; else null
 *   latencySamples    ms from a span's end to the drawn frame that showed it, of spans that ended since the page is open: of all,
 *                     or of every second, fourth, … span, so that there are at most 20,000
 *   stats             of the connection (core/live.js)
 *   complete          whether the run is sealed and all of it is here
 *   view(), setView(fromNs, toNs)
 *   reading()         whether detail in sight is being read from the server: "", "reading" or "failed"
 */

import { spanDigest } from "../timeline/digest.js";

const MOST_SAMPLES = 20_000;

export class Surface {
  constructor(timeline, getRun, getStats, reader = null) {
    this.timeline = timeline;
    this.reader = reader;
    this.firstSpanAtMs = null;
    this.latencySamples = [];
    this.openedMs = performance.timeOrigin + performance.now(); // what ended before is history, and tells nothing of its way
    this.complete = false;
    this.zeroUnixMs = NaN;
    this.waiting = [];
    this.noted = 0;
    this.stride = 1; // of spans, from one that is timed to the next
    Object.defineProperty(this, "run", { get: getRun, enumerable: true });
    Object.defineProperty(this, "stats", { get: getStats, enumerable: true });
    timeline.addEventListener("painted", () => this.#painted());
  }

  get spans() {
    return this.timeline.trace.spans;
  }

  get perRank() {
    return this.timeline.trace.perRank();
  }

  spanDigest() {
    return spanDigest(this.timeline.trace);
  }

  view() {
    const { fromNs, toNs } = this.timeline.view;
    return { fromNs, toNs, following: this.timeline.isFollowing };
  }

  setView(fromNs, toNs) {
    this.timeline.setRange(fromNs, toNs);
  }

  reading() {
    return this.reader?.status ?? "";
  }

  /** Notes the ends of spans that the next drawn frame will show. */
  note(frames) {
    for (const frame of frames) {
      this.#readZero(frame);
      const { start_ns: starts, duration_ns: durations, length } = frame.spans;
      for (let row = 0; row < length; row++) {
        if (this.noted++ % this.stride === 0) this.waiting.push(starts[row] + durations[row]);
      }
    }
    if (document.hidden) this.waiting = []; // nothing is drawn, and nothing timed
    while (this.waiting.length + this.latencySamples.length > MOST_SAMPLES) this.#thin();
  }

  /** Neither the latest spans nor those of a busy moment may count for more than the others. */
  #thin() {
    const isKept = (_, at) => at % 2 === 0;
    this.waiting = this.waiting.filter(isKept);
    this.latencySamples = this.latencySamples.filter(isKept);
    this.stride *= 2;
  }

  /** The unix time of the run clock's zero comes as a mark; whole nanoseconds are too long for a float64. */
  #readZero({ marks, strings }) {
    for (let row = 0; row < marks.length; row++) {
      if (strings[marks.kind[row]] === "zero") this.zeroUnixMs = Number(BigInt(strings[marks.text[row]]) / 1000n) / 1000;
    }
  }

  #painted() {
    if (!this.waiting.length) return;
    const nowMs = performance.timeOrigin + performance.now();
    this.firstSpanAtMs ??= nowMs;
    if (Number.isFinite(this.zeroUnixMs)) {
      for (const endNs of this.waiting) {
        const endedMs = this.zeroUnixMs + endNs / 1e6;
        if (endedMs > this.openedMs) this.latencySamples.push(nowMs - endedMs);
      }
    }
    this.waiting = [];
  }
}
