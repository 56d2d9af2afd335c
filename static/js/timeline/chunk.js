/**
 * A fixed number of one lane's spans, sorted by start, as columns, with a pyramid over them.
 *
 * The pyramid has a fan-out of four. A group holds the kind that fills most of it, that kind's busy
 * time, all busy time, and its end; it is made when its last span arrives, so an append costs O(1) a span.
 * Waiting is not busy: it is left out of the pyramid, and what lies behind it (the hatching) shows.
 */

import { KIND, KINDS } from "../core/kinds.js";

export const CHUNK_SPANS = 1024;
export const LEVELS = 5;
/** Spans of a lane do not overlap by contract; a search looks back this far for those that do anyway. */
export const LOOK_BACK_SPANS = 8;

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
const NUMBERED = ["name", "group"]; // which index strings
const COPIED = NAMES.filter((name) => !NUMBERED.includes(name));

const tally = new Float64Array(KINDS);

export class Chunk {
  /** One that is read from the server holds no more than came, and has room for no more. */
  constructor(capacity = CHUNK_SPANS) {
    this.capacity = capacity;
    this.spans = 0;
    for (const [name, Column] of COLUMNS) this[name] = new Column(capacity);
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

  get lastStartNs() {
    return this.start_ns[this.spans - 1];
  }

  get isFull() {
    return this.spans === this.capacity;
  }

  /**
   * Hot path: takes in source rows `rows[from]` to `rows[from + count - 1]`, whose starts follow the last one's in order.
   * `numbers` are the page's numbers of the source's strings. Each column has a line of its own here, because a loop
   * over columns of many types is several times slower.
   */
  take(source, rows, from, count, numbers) {
    const {
      start_ns: starts, duration_ns: durations, bytes, step: steps, sequence: sequences, peer: peers, micro_batch: microBatches,
      stage: stages, name: names, group: groups, kind: kinds,
    } = this;
    const first = this.spans;
    for (let at = 0; at < count; at++) {
      const row = rows[from + at];
      const to = first + at;
      starts[to] = source.start_ns[row];
      durations[to] = source.duration_ns[row];
      bytes[to] = source.bytes[row];
      steps[to] = source.step[row];
      sequences[to] = source.sequence[row];
      peers[to] = source.peer[row];
      microBatches[to] = source.micro_batch[row];
      stages[to] = source.stage[row];
      names[to] = numbers[source.name[row]] ?? 0;
      groups[to] = numbers[source.group[row]] ?? 0;
      kinds[to] = source.kind[row];
    }
    this.spans += count;
    this.#count(first);
    this.#closeGroups(first);
  }

  insert(at, source, row, name, group) {
    for (const column of NAMES) this[column].copyWithin(at + 1, at, this.spans);
    for (const column of COPIED) this[column][at] = source[column][row];
    this.name[at] = name;
    this.group[at] = group;
    this.spans++;
    this.#recount();
    this.#closeGroups(at);
  }

  /** The same spans in a chunk that has room for more. */
  roomy() {
    const copy = new Chunk();
    for (const column of NAMES) copy[column].set(this[column]);
    copy.spans = this.spans;
    copy.#recount();
    copy.#closeGroups(0);
    return copy;
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
    this.#closeGroups(0);
    later.#closeGroups(0);
    return later;
  }

  /** Drops the spans that a test of their start and end does not hold for; how many. */
  keep(test) {
    const before = this.spans;
    let kept = 0;
    for (let row = 0; row < before; row++) {
      if (!test(this.start_ns[row], this.start_ns[row] + this.duration_ns[row])) continue;
      if (kept !== row) for (const column of NAMES) this[column][kept] = this[column][row];
      kept++;
    }
    this.spans = kept;
    if (kept < before) {
      this.#recount();
      this.#closeGroups(0);
    }
    return before - kept;
  }

  /** The first row that may reach into what follows a time. */
  #reaching(timeNs) {
    return Math.max(0, this.upper(timeNs) - 1 - LOOK_BACK_SPANS);
  }

  /** Adds to `totalNs` and `counts` (by kind) what lies in a range, row by row. */
  addTotals(fromNs, toNs, totalNs, counts) {
    for (let row = this.#reaching(fromNs); row < this.spans && this.start_ns[row] < toNs; row++) {
      const start = this.start_ns[row];
      const inside = Math.min(toNs, start + this.duration_ns[row]) - Math.max(fromNs, start);
      if (inside <= 0) continue;
      totalNs[this.kind[row]] += inside;
      counts[this.kind[row]]++;
    }
  }

  /** Busy time inside a range: by groups where they lie inside. */
  busyWithin(fromNs, toNs) {
    let row = this.#reaching(fromNs);
    const { start_ns: starts, duration_ns: durations, kind: kinds, spans, endNs, busyNs } = this;
    let sum = 0;
    while (row < spans && starts[row] < toNs) {
      let taken = 1;
      if ((row & 3) === 0 && row + 4 <= spans && starts[row] >= fromNs && endNs[row >> 2] <= toNs) {
        let index = row >> 2;
        taken = 4;
        for (let level = 1, bits = 4; level < LEVELS && (row & ((1 << bits) - 1)) === 0 && row + (1 << bits) <= spans; level++, bits += 2) {
          const higher = LEVEL_AT[level] + (row >> bits);
          if (endNs[higher] > toNs) break;
          index = higher;
          taken = 1 << bits;
        }
        sum += busyNs[index];
      } else if (kinds[row] !== KIND.WAIT) sum += Math.max(0, Math.min(toNs, starts[row] + durations[row]) - Math.max(fromNs, starts[row]));
      row += taken;
    }
    return sum;
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

  #recount() {
    this.totalNs.fill(0);
    this.counts.fill(0);
    this.lastEndNs = -Infinity;
    this.#count(0);
  }

  #count(from) {
    const { start_ns: starts, duration_ns: durations, kind: kinds, totalNs, counts, spans } = this;
    let last = this.lastEndNs;
    for (let row = from; row < spans; row++) {
      totalNs[kinds[row]] += durations[row];
      counts[kinds[row]]++;
      if (starts[row] + durations[row] > last) last = starts[row] + durations[row];
    }
    this.lastEndNs = last;
  }

  /** All whole groups, on every level, that hold a row from `from` on. */
  #closeGroups(from) {
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
