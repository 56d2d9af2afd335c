/**
 * One lane of one rank: its spans in chunks of fixed size. An append never copies what is there; a
 * span that comes late moves at most one chunk's rows. A span's place is chunk × CHUNK_SPANS + row,
 * and holds until the lane takes in a late span.
 */

import { KINDS } from "../core/kinds.js";
import { CHUNK_SPANS, Chunk } from "./chunk.js";

/** Spans of a lane do not overlap by contract; a search looks back this far for those that do anyway. */
const LOOK_BACK_SPANS = 8;

/** Who draws lanes: 0 the timeline, 1 the small map above it. */
const DRAWINGS = 2;

const chunkOf = (place) => Math.floor(place / CHUNK_SPANS);
const rowOf = (place) => place % CHUNK_SPANS;

function isSorted(starts, rows) {
  for (let at = 1; at < rows.length; at++) if (starts[rows[at]] < starts[rows[at - 1]]) return false;
  return true;
}

export class Lane {
  constructor(rank, lane) {
    this.rank = rank;
    this.lane = lane;
    this.chunks = [];
    /** The kinds it holds, each once, and how many spans of each. */
    this.kinds = [];
    this.counts = new Uint32Array(KINDS);
    this.spans = 0;
    this.lateSpans = 0;
    this.lastEndNs = -Infinity;
    /** For each drawing, the earliest start that came in since it last looked; it sets its own back to Infinity. */
    this.changedFromNs = new Float64Array(DRAWINGS).fill(Infinity);
  }

  get lastStartNs() {
    const chunk = this.chunks[this.chunks.length - 1];
    return chunk ? chunk.start_ns[chunk.spans - 1] : -Infinity;
  }

  get firstStartNs() {
    return this.chunks.length ? this.chunks[0].firstStartNs : Infinity;
  }

  /**
   * Hot path: takes in these rows of a frame's columns. `numbers` are the page's numbers of the frame's strings. What follows
   * the last span goes in whole runs; what is late is put where it belongs, one by one.
   */
  append(source, rows, numbers) {
    if (!rows.length) return;
    const starts = source.start_ns;
    if (!isSorted(starts, rows)) rows.sort((one, other) => starts[one] - starts[other]);
    let from = 0;
    for (const lastNs = this.lastStartNs; from < rows.length && starts[rows[from]] < lastNs; from++) {
      this.#insert(source, rows[from], numbers[source.name[rows[from]]] ?? 0, numbers[source.group[rows[from]]] ?? 0);
    }
    while (from < rows.length) {
      let chunk = this.chunks[this.chunks.length - 1];
      if (chunk === undefined || chunk.isFull) this.chunks.push(chunk = new Chunk());
      const count = Math.min(rows.length - from, CHUNK_SPANS - chunk.spans);
      chunk.take(source, rows, from, count, numbers);
      from += count;
    }
    this.#note(source, rows);
  }

  #note(source, rows) {
    this.spans += rows.length;
    const firstNs = source.start_ns[rows[0]];
    for (let drawing = 0; drawing < DRAWINGS; drawing++) {
      if (firstNs < this.changedFromNs[drawing]) this.changedFromNs[drawing] = firstNs;
    }
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at];
      if (!this.counts[source.kind[row]]++) this.kinds.push(source.kind[row]);
      const endNs = source.start_ns[row] + source.duration_ns[row];
      if (endNs > this.lastEndNs) this.lastEndNs = endNs;
    }
  }

  #insert(source, row, name, group) {
    const start = source.start_ns[row];
    let at = Math.max(0, this.chunkFor(start));
    if (this.chunks[at].isFull) {
      this.chunks.splice(at + 1, 0, this.chunks[at].split());
      if (start >= this.chunks[at + 1].firstStartNs) at++;
    }
    this.chunks[at].insert(this.chunks[at].upper(start), source, row, name, group);
    this.lateSpans++;
  }

  /** The last chunk that begins at or before `timeNs`; -1 if none does. */
  chunkFor(timeNs) {
    let low = 0;
    let high = this.chunks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.chunks[middle].firstStartNs <= timeNs) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The place of the first span that ends after `timeNs`; `end` if there is none. */
  firstEndingAfter(timeNs) {
    const chunk = this.chunkFor(timeNs);
    if (chunk < 0) return 0;
    const row = this.chunks[chunk].upper(timeNs);
    let place = chunk * CHUNK_SPANS + row;
    let best = row < this.chunks[chunk].spans ? place : this.next(place - 1);
    for (let back = 0; back < LOOK_BACK_SPANS; back++) {
      place = this.previous(place);
      if (place < 0) break;
      if (this.endOf(place) > timeNs) best = place;
    }
    return best;
  }

  /** One past the last place. */
  get end() {
    const last = this.chunks.length - 1;
    if (last < 0) return 0;
    return this.chunks[last].isFull ? (last + 1) * CHUNK_SPANS : last * CHUNK_SPANS + this.chunks[last].spans;
  }

  next(place) {
    const chunk = chunkOf(place);
    return rowOf(place) + 1 < this.chunks[chunk].spans || chunk === this.chunks.length - 1 ? place + 1 : (chunk + 1) * CHUNK_SPANS;
  }

  /** -1 before the first. */
  previous(place) {
    if (rowOf(place) > 0) return place - 1;
    const chunk = chunkOf(place) - 1;
    return chunk < 0 ? -1 : chunk * CHUNK_SPANS + this.chunks[chunk].spans - 1;
  }

  startOf(place) {
    return this.chunks[chunkOf(place)].start_ns[rowOf(place)];
  }

  endOf(place) {
    const chunk = this.chunks[chunkOf(place)];
    return chunk.start_ns[rowOf(place)] + chunk.duration_ns[rowOf(place)];
  }

  kindOf(place) {
    return this.chunks[chunkOf(place)].kind[rowOf(place)];
  }

  microBatchOf(place) {
    return this.chunks[chunkOf(place)].micro_batch[rowOf(place)];
  }

  stageOf(place) {
    return this.chunks[chunkOf(place)].stage[rowOf(place)];
  }

  /** A copy of one span that stays true whatever comes in. */
  spanAt(place) {
    const chunk = this.chunks[chunkOf(place)];
    const row = rowOf(place);
    const startNs = chunk.start_ns[row];
    return {
      rank: this.rank, lane: this.lane, kind: chunk.kind[row],
      startNs, durationNs: chunk.duration_ns[row], endNs: startNs + chunk.duration_ns[row],
      bytes: chunk.bytes[row], step: chunk.step[row], sequence: chunk.sequence[row], peer: chunk.peer[row],
      microBatch: chunk.micro_batch[row], stage: chunk.stage[row], name: chunk.name[row], group: chunk.group[row],
    };
  }

  /** A copy of the first span that begins at `startNs`, or null. */
  spanStartingAt(startNs) {
    for (let place = this.firstEndingAfter(startNs - 1); place < this.end; place = this.next(place)) {
      if (this.startOf(place) === startNs) return this.spanAt(place);
      if (this.startOf(place) > startNs) break;
    }
    return null;
  }

  /** Where a span that was copied lies now; -1 if the lane does not hold it. */
  placeOf(span) {
    let place = this.firstEndingAfter(span.startNs - 1);
    for (; place < this.end && this.startOf(place) <= span.startNs; place = this.next(place)) {
      if (this.startOf(place) === span.startNs && this.kindOf(place) === span.kind) return place;
    }
    return -1;
  }

  /** How many spans the range holds: exact inside a chunk, in O(chunks). */
  countBetween(fromNs, toNs) {
    let count = 0;
    for (let at = Math.max(0, this.chunkFor(fromNs)); at < this.chunks.length; at++) {
      const chunk = this.chunks[at];
      if (chunk.firstStartNs >= toNs) break;
      const whole = chunk.firstStartNs >= fromNs && chunk.lastEndNs <= toNs;
      count += whole ? chunk.spans : chunk.upper(toNs) - chunk.upper(fromNs);
    }
    return count;
  }

  /** Adds to `totalNs` and `counts` (by kind) what lies in the range; spans that stick out count by their part in it. */
  addTotals(fromNs, toNs, totalNs, counts) {
    for (let at = Math.max(0, this.chunkFor(fromNs) - 1); at < this.chunks.length; at++) {
      const chunk = this.chunks[at];
      if (chunk.firstStartNs >= toNs) return;
      if (chunk.lastEndNs <= fromNs) continue;
      if (chunk.firstStartNs >= fromNs && chunk.lastEndNs <= toNs) {
        for (let kind = 0; kind < totalNs.length; kind++) {
          totalNs[kind] += chunk.totalNs[kind];
          counts[kind] += chunk.counts[kind];
        }
      } else addPart(chunk, fromNs, toNs, totalNs, counts);
    }
  }
}

function addPart(chunk, fromNs, toNs, totalNs, counts) {
  for (let row = Math.max(0, chunk.upper(fromNs) - 1 - LOOK_BACK_SPANS); row < chunk.spans; row++) {
    const start = chunk.start_ns[row];
    if (start >= toNs) return;
    const inside = Math.min(toNs, start + chunk.duration_ns[row]) - Math.max(fromNs, start);
    if (inside <= 0) continue;
    totalNs[chunk.kind[row]] += inside;
    counts[chunk.kind[row]]++;
  }
}
