/**
 * Reads from the server what the timeline shows and the page does not hold: cells for the whole run, and the window in
 * sight as finer cells or, where it holds few enough spans, as these. Whatever was there stays until better comes.
 *
 * One answer is one entry. Entries are bounded in bytes, and those that were seen least lately go first; of a run that
 * grows beyond the page's budget the oldest spans go, once cells stand in for them.
 */

import { decodeWindow } from "../core/window.js";
import { Requests } from "./requests.js";
import { Tile } from "./tile.js";
import { levelOf, levelOfSpans, overviewLevel, tilesOf } from "./tiling.js";

/** What was read, beside the spans that came live. */
const MOST_BYTES = 96e6;
/** A span's columns; and a chunk's pyramid, which a lane of a few spans has as well, on three lanes of a rank. */
const SPAN_BYTES = 54;
const RANK_BYTES = 3 * 11_000;
/** Of the view's width, on either side: read before it comes into sight. */
const MARGIN = 0.5;
/** Of the budget: so much goes at once, so that it goes seldom. */
const DROPPED_SHARE = 1 / 16;
/** Of the budget: beyond it spans go though no cells stand in for them, since the server does not answer. */
const HARD_SHARE = 1.25;

export class Reader {
  /** `read(fromNs, toNs, pixels, signal)` promises a window's bytes; `mostSpans`: that the page holds of what comes live. */
  constructor(timeline, { read, mostSpans, mostBytes = MOST_BYTES }) {
    Object.assign(this, { timeline, trace: timeline.trace, mostSpans, mostBytes });
    this.entries = new Map(); // by key: {key, fromNs, toNs, tile, spans, bytes, usedAt}
    this.bytes = 0;
    this.clock = 0;
    this.alsoNs = NaN;
    this.alsoBits = 0;
    this.leavingNs = NaN; // up to where live spans are to go, once cells stand in for them
    this.pinned = this.near = [];
    this.requests = new Requests({
      read: ({ fromNs, toNs, pixels }, signal) => read(fromNs, toNs, pixels, signal),
      onAnswer: (wish, buffer) => this.#take(wish, decodeWindow(buffer)),
      onChange: () => timeline.dispatchEvent(new Event("reading")),
    });
    timeline.addEventListener("view", () => this.look());
    timeline.addEventListener("appended", () => this.#trim());
  }

  /** "": all that is in sight is here as fine as it gets; "reading"; or "failed", which is tried again (requests.retryInMs, .error). */
  get status() {
    return this.requests.status;
  }

  /** A run of which not everything will come by itself (Trace.begin). */
  begin(sealed) {
    this.trace.begin(sealed);
    this.timeline.extend();
    this.look();
  }

  /** A time, beside the view, whose spans are wanted: of a span that is to be chosen. */
  want(timeNs) {
    if (this.alsoNs === timeNs) return;
    this.alsoNs = timeNs;
    this.alsoBits = levelOfSpans(this.trace);
    this.look();
  }

  look() {
    if (this.#endNs > -Infinity) this.requests.want(this.#wishes());
  }

  /** Up to here the run is read from the server; what follows comes live. */
  get #endNs() {
    const live = this.trace.cover.held.stretches.find(([, to]) => to === Infinity);
    return Math.max(live ? live[0] : this.trace.lastEndNs + 1, Number.isFinite(this.leavingNs) ? this.leavingNs : -Infinity);
  }

  /** What is not here, the most urgent first: the whole run, what is in sight from its middle outward, then what lies beside it. */
  #wishes() {
    const { trace, timeline: { view }, alsoNs } = this;
    const endNs = this.#endNs;
    const within = (bits, fromNs, toNs) => tilesOf(bits, Math.max(fromNs, trace.firstStartNs), Math.min(toNs, endNs));
    const overview = overviewLevel(trace.lastEndNs - trace.firstStartNs);
    const level = Math.min(overview, levelOf(view.nsPerPx / (window.devicePixelRatio || 1)));
    const marginNs = view.spanNs * MARGIN;
    const middleNs = (view.fromNs + view.toNs) / 2;
    const apartNs = ({ fromNs, toNs }) => Math.abs((fromNs + toNs) / 2 - middleNs);
    const isSeen = ({ fromNs, toNs }) => fromNs < view.toNs && toNs > view.fromNs;
    const around = within(level, view.fromNs - marginNs, view.toNs + marginNs).sort((one, other) => apartNs(one) - apartNs(other));
    const also = Number.isFinite(alsoNs) ? within(Math.min(level, this.alsoBits), alsoNs, alsoNs + 1) : [];
    this.pinned = within(overview, -Infinity, Infinity);
    this.near = [...also, ...around];
    const byKey = new Map([...this.pinned, ...also, ...around.filter(isSeen), ...around].map((tile) => [tile.key, tile]));
    const urgent = new Set(this.pinned.map(({ key }) => key));
    const awaited = new Set(also.map(({ key }) => key));
    return [...byKey.values()].filter((tile) => !this.#isHere(tile, endNs)).map((tile) => {
      const isAwaited = isSeen(tile) || awaited.has(tile.key);
      return { ...tile, isSeen: isAwaited, isUrgent: isAwaited || urgent.has(tile.key) };
    });
  }

  /** Whether a tile was read as far as the run is to be; one that is to stand in for what leaves has to be read though it is held. */
  #isHere({ key, fromNs, toNs }, endNs) {
    const known = this.entries.get(key);
    if (known) known.usedAt = ++this.clock;
    const untilNs = Math.min(toNs, endNs);
    if (known?.toNs >= untilNs) return true;
    return !this.pinned.some((tile) => tile.key === key) && this.trace.cover.held.holds(Math.max(fromNs, this.trace.firstStartNs), untilNs);
  }

  /** False if the server does not have all of it yet, and has to be asked again. */
  #take({ key, bits, fromNs, toNs }, answer) {
    const { trace } = this;
    const untilNs = Math.min(toNs, this.#endNs);
    if (answer.settledNs < untilNs) return false;
    const before = this.entries.get(key);
    const spans = trace.spans;
    const entry = { key, fromNs, toNs: untilNs, tile: answer.cells && new Tile(answer), usedAt: ++this.clock };
    if (entry.tile) trace.addTile(entry.tile);
    else trace.addStretch(fromNs, untilNs, answer.frames);
    entry.spans = trace.spans - spans;
    entry.bytes = entry.tile?.bytes ?? entry.spans * SPAN_BYTES + answer.frames.length * RANK_BYTES;
    this.entries.set(key, entry);
    this.bytes += entry.bytes;
    if (before) this.#remove(before);
    this.#forget();
    this.#trim();
    if (entry.tile && bits <= this.alsoBits && fromNs <= this.alsoNs && toNs > this.alsoNs) {
      this.alsoBits = bits - 1; // so many spans lie there that a shorter stretch has to do
      this.look();
    }
    this.timeline.extend();
    this.timeline.dispatchEvent(new Event("read"));
    return true;
  }

  #remove(entry) {
    if (this.entries.get(entry.key) === entry) this.entries.delete(entry.key);
    this.bytes -= entry.bytes;
    if (entry.tile) this.trace.removeTile(entry.tile);
    else this.trace.dropStretch(entry.fromNs, entry.toNs);
  }

  /** Keeps what was read within its bytes; what is in sight, what lies beside it and the whole run stay. */
  #forget() {
    if (this.bytes <= this.mostBytes) return;
    const kept = new Set([...this.pinned, ...this.near].map(({ key }) => key));
    const oldest = [...this.entries.values()].filter(({ key }) => !kept.has(key)).sort((one, other) => one.usedAt - other.usedAt);
    while (this.bytes > this.mostBytes && oldest.length) this.#remove(oldest.shift());
  }

  get #liveSpans() {
    let read = 0;
    for (const { spans } of this.entries.values()) read += spans;
    return this.trace.spans - read;
  }

  /** Of a run that grows beyond the budget the oldest spans leave, as soon as cells stand in for them. */
  #trim() {
    const { trace, mostSpans } = this;
    const live = this.#liveSpans;
    if (live <= mostSpans) return;
    if (!Number.isFinite(this.leavingNs)) {
      this.leavingNs = this.#timeOf(live - mostSpans * (1 - DROPPED_SHARE));
      this.look();
    }
    if (!this.pinned.every((tile) => this.#isHere(tile, this.leavingNs)) && live <= mostSpans * HARD_SHARE) return;
    trace.dropBefore(this.leavingNs);
    this.leavingNs = NaN;
    this.look();
  }

  /** Before which about so many of the live spans began. */
  #timeOf(spans) {
    const { trace } = this;
    const lanes = trace.ranks.flat();
    let low = Math.max(trace.firstStartNs, trace.cover.held.stretches.find(([, to]) => to === Infinity)[0]);
    let high = trace.lastEndNs;
    const beginNs = low;
    while (high - low > 1000) {
      const middle = (low + high) / 2;
      if (lanes.reduce((sum, lane) => sum + lane.countBetween(beginNs, middle), 0) < spans) low = middle;
      else high = middle;
    }
    return Math.floor(high);
  }
}
