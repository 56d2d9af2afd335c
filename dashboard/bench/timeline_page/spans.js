// Spans for the timeline's bench, made in the page: the same for the same seed.

import { KIND, LANE } from "/static/js/core/kinds.js";

export const FRAME_SPANS = 4096; // of one rank's flush
const KINDS = [KIND.FORWARD, KIND.BACKWARD_INPUT, KIND.BACKWARD_WEIGHT, KIND.OPTIMIZER];
const STEP_SPANS = 64;

/** A generator of numbers in [0, 1) by Numerical Recipes' linear congruence. */
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function columns(count) {
  return {
    length: count,
    start_ns: new Float64Array(count), duration_ns: new Float64Array(count), bytes: new Float64Array(count).fill(-1),
    step: new Int32Array(count), sequence: new Int32Array(count).fill(-1), peer: new Int32Array(count).fill(-1),
    micro_batch: new Int16Array(count), stage: new Int16Array(count), name: new Uint16Array(count), group: new Uint16Array(count),
    kind: new Uint8Array(count), lane: new Uint8Array(count).fill(LANE.COMPUTE),
  };
}

/** Of a span with its share of a gap, at the pace of 1. */
export const MEAN_NS = 2e4 + 2e6 / 4 + 2e6 / 4 / 3;

/**
 * One rank's spans, frame by frame: durations from 20 µs to 2 ms, every third one after a gap of the same sort.
 * Whoever calls `frame(count)` again gets the spans that follow. `slower` stretches all times.
 */
export class Rank {
  constructor(rank, seed, slower = 1) {
    Object.assign(this, { rank, slower });
    this.next = dice(seed + rank * 7919);
    this.atNs = 0;
    this.made = 0;
  }

  /** It idles until then, if it is not there yet. */
  waitUntil(timeNs) {
    this.atNs = Math.max(this.atNs, timeNs);
  }

  frame(count) {
    const { next } = this;
    const spans = columns(count);
    for (let row = 0; row < count; row++, this.made++) {
      const durationNs = this.slower * (2e4 + 2e6 * next() ** 3);
      if (this.made % 3 === 0) this.atNs += this.slower * 2e6 * next() ** 3;
      spans.start_ns[row] = this.atNs;
      spans.duration_ns[row] = durationNs;
      spans.kind[row] = KINDS[(next() * KINDS.length) | 0];
      spans.step[row] = Math.floor(this.made / STEP_SPANS);
      spans.micro_batch[row] = this.made % 8;
      spans.stage[row] = this.rank;
      this.atNs += durationNs;
    }
    return { rank: this.rank, strings: [""], marks: { length: 0 }, spans };
  }
}

/** Frames of `count` spans in all, shared out over ranks and mixed as they would come. */
export function* frames(ranks, count) {
  const left = ranks.map((_, at) => Math.floor(count / ranks.length) + (at < count % ranks.length ? 1 : 0));
  while (left.some(Boolean)) {
    for (let at = 0; at < ranks.length; at++) {
      const now = Math.min(FRAME_SPANS, left[at]);
      left[at] -= now;
      if (now) yield ranks[at].frame(now);
    }
  }
}

export const makeRanks = (count, seed, slower = 1) => Array.from({ length: count }, (_, rank) => new Rank(rank, seed, slower));
