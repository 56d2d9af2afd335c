/**
 * A search of the whole run, of which the page holds parts: the server looks through the run's segments, a few an answer,
 * and tells how many matches each holds and coarsely where. The matches of a segment are read when one walks there.
 */

import { LANES } from "../core/kinds.js";
import { Refused } from "../core/reading.js";
import { Lit } from "./lit.js";
import { below } from "./search.js";

/** Whose matches are kept, at 12 bytes each and 65,536 at most. */
const KEPT_SEGMENTS = 16;
/** Of a run that goes on, what was sealed meanwhile is looked at this often. */
const AGAIN_MS = 2000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;

const laneOf = ({ rank, lane }) => rank * LANES + lane;

/** How many of a segment's matches come before a moment of a lane: by their starts, those of one start by lane. */
function before({ starts, lanes }, startNs, lane) {
  let at = below(starts, startNs);
  while (starts[at] === startNs && lanes[at] < lane) at++;
  return at;
}

export class WholeSearch {
  /**
   * `count(text, after, signal)` promises what the segments after a number hold, `matches(text, segment, signal)` a
   * segment's own, as dashboard/live/searching.py tells them; `onChange()` is called when more is known.
   */
  constructor({ count, matches }, onChange) {
    Object.assign(this, { ask: { count, matches }, onChange, goTo: () => {}, text: "", controller: new AbortController() });
    this.walking = Promise.resolve();
    this.#forget();
  }

  #forget() {
    clearTimeout(this.timer);
    Object.assign(this, { timer: 0, count: 0, through: 0, last: 0, unread: 0, attempts: 0, error: null, target: null });
    /** Whether all that was sealed is looked through, whether that is under way, and whether more of the run may come. */
    Object.assign(this, { isDone: false, isLooking: false, isGrowing: true });
    this.segments = []; // {number, count, firstNs, lastNs} of those with matches
    this.lists = new Map(); // by segment: {promise, starts, lanes}, the latest used last
    this.lit = new Lit();
    this.ended = null;
  }

  get isOn() {
    return this.text !== "";
  }

  /** Of what was looked through, from 0 to 1. */
  get share() {
    return this.last ? this.through / this.last : 0;
  }

  /** Why the server does not search for this at all; "" if it does. */
  get refusal() {
    return this.error instanceof Refused && this.error.status === 400 ? this.error.words : "";
  }

  /** Looks for another text; nothing for "". */
  set(text) {
    this.controller.abort();
    this.controller = new AbortController();
    this.#forget();
    this.text = text;
    if (text) this.#look();
  }

  /** More of the run may be sealed by now. */
  note() {
    if (!this.isOn || this.isLooking || !this.isGrowing || this.timer || this.refusal) return;
    this.timer = setTimeout(() => this.#look(), AGAIN_MS);
  }

  #look() {
    this.timer = 0;
    this.isLooking = true;
    this.ended = this.#lookThrough(this.controller.signal);
  }

  async #lookThrough(signal) {
    try {
      do {
        const told = await this.ask.count(this.text, this.through, signal);
        if (signal.aborted) return;
        this.#take(told);
      } while (this.through < this.last);
      this.isDone = true;
      this.isLooking = false;
      this.onChange();
    } catch (error) {
      this.#failed(error, signal);
      if (signal.aborted) return;
      this.isLooking = false;
      if (!this.refusal) this.timer = setTimeout(() => this.#look(), Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.attempts++));
    }
  }

  #failed(error, signal) {
    if (signal.aborted) return;
    this.error = error;
    this.onChange();
  }

  #take({ through, last, complete, segments, lit, cell_ns: cellNs, unread }) {
    Object.assign(this, { through, last, isGrowing: !complete, attempts: 0, error: null });
    this.unread += unread.length;
    for (const [number, count, firstNs, lastNs] of segments) {
      this.segments.push({ number, count, firstNs, lastNs });
      this.count += count;
    }
    for (const [lane, first, cells] of lit) this.lit.add(lane, first * cellNs, (first + cells) * cellNs);
    this.onChange();
  }

  /** A segment's matches, once they are here. */
  #list(number) {
    const known = this.lists.get(number) ?? this.#read(number);
    this.lists.delete(number);
    this.lists.set(number, known);
    for (const oldest of this.lists.keys()) {
      if (this.lists.size <= KEPT_SEGMENTS) break;
      this.lists.delete(oldest);
    }
    return known;
  }

  #read(number) {
    const { signal } = this.controller;
    const list = { starts: null, lanes: null };
    list.promise = this.ask.matches(this.text, number, signal).then((buffer) => {
      const count = new DataView(buffer).getUint32(0, true);
      list.starts = new Float64Array(buffer, 8, count);
      list.lanes = new Uint32Array(buffer, 8 + 8 * count, count);
      if (!signal.aborted) {
        this.error = null;
        this.onChange();
      }
      return list;
    });
    list.promise.catch((error) => {
      if (this.lists.get(number) === list) this.lists.delete(number);
      this.#failed(error, signal);
    });
    return list;
  }

  /**
   * Promises the match after (or before) a span, or a moment of a lane, as `{rank, lane, startNs}`; null if there is none or
   * another search has begun. Segments overlap where ranks tell late, so all that may hold the nearest one are asked.
   */
  async next(direction, from) {
    const { signal } = this.controller;
    while (!this.isDone && !signal.aborted && this.ended && !this.error) await this.ended;
    const { startNs } = from;
    const reach = this.segments.filter(({ firstNs, lastNs }) => (direction > 0 ? lastNs >= startNs : firstNs <= startNs));
    const nearestNs = direction > 0
      ? Math.min(...reach.filter(({ firstNs }) => firstNs > startNs).map(({ firstNs }) => firstNs))
      : Math.max(...reach.filter(({ lastNs }) => lastNs < startNs).map(({ lastNs }) => lastNs));
    const near = reach.filter(({ firstNs, lastNs }) => (direction > 0 ? firstNs <= nearestNs : lastNs >= nearestNs));
    const lists = await Promise.all(near.map(({ number }) => this.#list(number).promise));
    if (signal.aborted) return null;
    let best = null;
    for (const list of lists) {
      const at = direction > 0 ? before(list, startNs, laneOf(from) + 1) : before(list, startNs, laneOf(from)) - 1;
      if (at < 0 || at >= list.starts.length) continue;
      const one = { startNs: list.starts[at], rank: Math.floor(list.lanes[at] / LANES), lane: list.lanes[at] % LANES };
      if (!best || direction * (one.startNs - best.startNs || laneOf(one) - laneOf(best)) < 0) best = one;
    }
    return best;
  }

  /**
   * Goes to the next match after `from`, or after the one to which it is under way, else to the next after `turnedBack`.
   * `this.goTo(match)` is told of it; keys that are pressed in quick succession are done one after the other.
   */
  walk(direction, from, turnedBack) {
    const { signal } = this.controller;
    this.walking = this.walking.then(async () => {
      const match = await this.next(direction, this.target ?? from) ?? await this.next(direction, turnedBack);
      if (!match || signal.aborted) return;
      this.target = match;
      this.goTo(match);
    }).catch((error) => this.#failed(error, signal));
  }

  /** Another span was chosen, or none: keys go on from there. */
  chosen(span) {
    const { target } = this;
    const isTarget = target && span && target.startNs === span.startNs && laneOf(target) === laneOf(span);
    if (!isTarget) this.target = null;
  }

  /** How many matches come before a span, if it is one; -1 if not, or as long as that is not known. */
  placeOf(span) {
    let place = 0;
    let isMatch = false;
    for (const { number, count, firstNs, lastNs } of this.segments) {
      if (lastNs < span.startNs) place += count;
      if (lastNs < span.startNs || firstNs > span.startNs) continue;
      const list = this.#list(number);
      if (!list.starts) return -1; // it will be here
      const at = before(list, span.startNs, laneOf(span));
      isMatch ||= list.starts[at] === span.startNs && list.lanes[at] === laneOf(span);
      place += at;
    }
    return isMatch ? place : -1;
  }
}
