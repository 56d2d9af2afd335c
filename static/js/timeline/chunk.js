/**
 * A fixed number of one lane's spans, sorted by start, as columns, with a pyramid over them.
 *
 * The pyramid has a fan-out of four. A group holds the kind that fills most of it, that kind's busy
 * time, all busy time, and its end; it is made when its last span arrives, so an append costs O(1).
 * Waiting is not busy: it is left out of the pyramid, and what lies behind it (the hatching) shows.
 */

import { KIND, KINDS } from "../core/kinds.js";

export const CHUNK_SPANS = 1024;
export const LEVELS = 5;

/** Where each level's groups begin: 256 groups of 4, 64 of 16, 16 of 64, 4 of 256, 1 of 1,024. */
export const LEVEL_AT = [0, 256, 320, 336, 340];
const GROUPS = 341;

export const COLUMNS = [
  ["start_ns", Float64Array], ["duration_ns", Float64Array], ["bytes", Float64Array],
  ["step", Int32Array], ["sequence", Int32Array], ["peer", Int32Array],
  ["micro_batch", Int16Array], ["stage", Int16Array], ["name", Uint16Array], ["group", Uint16Array],
  ["kind", Uint8Array],
];
const NAMES = COLUMNS.map(([name]) => name);

const tally = new Float64Array(KINDS);

export class Chunk {
  constructor() {
    this.spans = 0;
    for (const [name, Column] of COLUMNS) this[name] = new Column(CHUNK_SPANS);
    this.dominant = new Uint8Array(GROUPS);
    this.dominantNs = new Float64Array(GROUPS);
    this.busyNs = new Float64Array(GROUPS);
    this.endNs = new Float64Array(GROUPS);
    this.totalNs = new Float64Array(KINDS);
    this.counts = new Uint32Array(KINDS);
    this.lastEndNs = -Infinity;
  }

  get firstStartNs() {
    return this.start_ns[0];
  }

  get isFull() {
    return this.spans === CHUNK_SPANS;
  }

  /** Hot path: the row after the last one, whose start is not before the last one's. */
  push(source, row, name, group) {
    const at = this.spans++;
    this.#write(at, source, row, name, group);
    if ((at & 3) === 3) this.#closeGroups(at + 1);
  }

  insert(at, source, row, name, group) {
    for (const column of NAMES) this[column].copyWithin(at + 1, at, this.spans);
    this.spans++;
    this.#write(at, source, row, name, group);
    this.#rebuild(at);
  }

  /** Moves the later half into a new chunk and returns it. */
  split() {
    const later = new Chunk();
    const half = this.spans >> 1;
    for (const column of NAMES) later[column].set(this[column].subarray(half, this.spans));
    later.spans = this.spans - half;
    this.spans = half;
    this.#recount();
    later.#recount();
    this.#rebuild(0);
    later.#rebuild(0);
    return later;
  }

  /** The first row whose start is after `timeNs`. */
  upper(timeNs) {
    let low = 0;
    let high = this.spans;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.start_ns[middle] <= timeNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #write(at, source, row, name, group) {
    const start = source.start_ns[row];
    const duration = source.duration_ns[row];
    const kind = source.kind[row];
    this.start_ns[at] = start;
    this.duration_ns[at] = duration;
    this.bytes[at] = source.bytes[row];
    this.step[at] = source.step[row];
    this.sequence[at] = source.sequence[row];
    this.peer[at] = source.peer[row];
    this.micro_batch[at] = source.micro_batch[row];
    this.stage[at] = source.stage[row];
    this.name[at] = name;
    this.group[at] = group;
    this.kind[at] = kind;
    this.totalNs[kind] += duration;
    this.counts[kind]++;
    if (start + duration > this.lastEndNs) this.lastEndNs = start + duration;
  }

  #recount() {
    this.totalNs.fill(0);
    this.counts.fill(0);
    this.lastEndNs = -Infinity;
    for (let row = 0; row < this.spans; row++) {
      this.totalNs[this.kind[row]] += this.duration_ns[row];
      this.counts[this.kind[row]]++;
      this.lastEndNs = Math.max(this.lastEndNs, this.start_ns[row] + this.duration_ns[row]);
    }
  }

  /** The groups that the `spans`-th span completes, on every level. */
  #closeGroups(spans) {
    this.#groupOfSpans((spans >> 2) - 1);
    for (let level = 1; level < LEVELS; level++) {
      const bits = 2 * (level + 1);
      if (spans & ((1 << bits) - 1)) return;
      this.#groupOfGroups(level, (spans >> bits) - 1);
    }
  }

  #rebuild(from) {
    for (let group = from >> 2; group < this.spans >> 2; group++) this.#groupOfSpans(group);
    for (let level = 1; level < LEVELS; level++) {
      const bits = 2 * (level + 1);
      for (let group = from >> bits; group < this.spans >> bits; group++) this.#groupOfGroups(level, group);
    }
  }

  #groupOfSpans(group) {
    const first = group << 2;
    let end = -Infinity;
    let busy = 0;
    for (let row = first; row < first + 4; row++) {
      const duration = this.duration_ns[row];
      if (this.start_ns[row] + duration > end) end = this.start_ns[row] + duration;
      tally[this.kind[row]] = 0;
    }
    for (let row = first; row < first + 4; row++) {
      if (this.kind[row] === KIND.WAIT) continue;
      tally[this.kind[row]] += this.duration_ns[row];
      busy += this.duration_ns[row];
    }
    let dominant = this.kind[first];
    for (let row = first + 1; row < first + 4; row++) if (tally[this.kind[row]] > tally[dominant]) dominant = this.kind[row];
    this.#set(group, dominant, tally[dominant], busy, end);
  }

  #groupOfGroups(level, group) {
    const first = LEVEL_AT[level - 1] + (group << 2);
    let end = -Infinity;
    let busy = 0;
    for (let child = first; child < first + 4; child++) tally[this.dominant[child]] = 0;
    for (let child = first; child < first + 4; child++) {
      tally[this.dominant[child]] += this.dominantNs[child];
      busy += this.busyNs[child];
      if (this.endNs[child] > end) end = this.endNs[child];
    }
    let dominant = this.dominant[first];
    for (let child = first + 1; child < first + 4; child++) {
      if (tally[this.dominant[child]] > tally[dominant]) dominant = this.dominant[child];
    }
    this.#set(LEVEL_AT[level] + group, dominant, tally[dominant], busy, end);
  }

  #set(at, dominant, dominantNs, busyNs, endNs) {
    this.dominant[at] = dominant;
    this.dominantNs[at] = dominantNs;
    this.busyNs[at] = busyNs;
    this.endNs[at] = endNs;
  }
}
