/**
 * The run as the page knows it: ranks × lanes, the steps' windows, and the table of strings. Of a run that is small
 * enough it holds every span; of others the stretches that were read, and cells for the rest (cover.js). Whoever draws,
 * finds or counts asks here, and need not know which it is, nor whether spans came live or from the store.
 */

import { IS_MODEL_WORK, KINDS, LANE, LANES } from "../core/kinds.js";
import { Cover } from "./cover.js";
import { goesBothWays, wayOf } from "../core/ways.js";
import { Lane } from "./lanes.js";
import { StepWindows } from "./windows.js";

/** Said to the page alone: the clock's zero, and what priority was granted. */
const PRIVATE_MARKS = new Set(["zero", "realtime"]);
const MIRROR = "mirror"; // no axis, but named as one in groups (trainer/grid.py)

/** For every lane, the numbers of its rows, in the order of the frame. */
function rowsByLane(spans) {
  const counts = new Uint32Array(LANES);
  for (let row = 0; row < spans.length; row++) counts[spans.lane[row]]++;
  const rows = Array.from(counts, (count) => new Uint32Array(count));
  counts.fill(0);
  for (let row = 0; row < spans.length; row++) {
    const lane = spans.lane[row];
    rows[lane][counts[lane]++] = row;
  }
  return rows;
}

export class Trace {
  /** `grid`: each rank's address, one number an axis; `stages`: those of each place in the pipeline. */
  constructor(ranks = 0, grid = [], stages = []) {
    this.ranks = [];
    this.grid = grid;
    this.cover = new Cover();
    this.lastPlace = stages.length - 1;
    this.isBothWays = goesBothWays(stages);
    /** How many are in memory, and how many the run has that this page knows of. */
    this.spans = 0;
    this.total = 0;
    this.version = 0;
    this.firstStartNs = Infinity;
    this.lastEndNs = -Infinity;
    this.counts = new Uint32Array(KINDS); // spans by kind
    this.steps = new StepWindows();
    /** `{timeNs, rank, step, kind, text}` in the order of time: what happened to the run, not what a rank did. */
    this.marks = [];
    this.strings = [""];
    this.numberOf = new Map([["", 0]]);
    if (ranks) this.rank(ranks - 1);
  }

  get isEmpty() {
    return this.total === 0;
  }

  /** Whether every span of the run is in memory. */
  get isWhole() {
    return this.cover.isWhole;
  }

  /** Whether every span of a range is; what lies outside of the run is nothing. */
  holds(fromNs, toNs) {
    return this.isWhole || this.cover.held.holds(Math.max(fromNs, this.firstStartNs), Math.min(toNs, this.lastEndNs));
  }

  /**
   * The run has more spans than the page is to hold: `spansBefore` will not come by `append`, which gets what touches the
   * time from `heldFromNs` on; null if nothing more comes.
   */
  begin({ spans_before: spansBefore, start_ns: startNs, end_ns: endNs, held_from_ns: heldFromNs }) {
    this.total = spansBefore;
    this.firstStartNs = startNs;
    this.lastEndNs = endNs;
    this.cover.held.set(heldFromNs === null ? [] : [[heldFromNs, Infinity]]);
    this.cover.changed();
    this.version++;
  }

  rank(rank) {
    while (this.ranks.length <= rank) {
      const number = this.ranks.length;
      this.ranks.push(Array.from({ length: LANES }, (_, lane) => new Lane(number, lane, this.cover)));
    }
    return this.ranks[rank];
  }

  lane(rank, lane) {
    return this.ranks[rank]?.[lane];
  }

  /**
   * Which of the groups with this name a rank is in: its place on every axis that the name ("tp", "dp×cp") does not say.
   * Of "mirror" are the two places of a pipeline that are as far from either end. One that is not named by axes holds all ranks.
   */
  instanceOf(rank, group) {
    const axes = group.split("×");
    const address = this.grid[rank];
    if (!address || !axes.every((axis) => axis === MIRROR || axis in address)) return "";
    const pp = axes.includes(MIRROR) ? Math.min(address.pp, this.lastPlace - address.pp) : address.pp;
    return Object.entries({ ...address, pp }).filter(([axis]) => !axes.includes(axis)).map(([, at]) => at).join(".");
  }

  areTogether(one, other, group) {
    return this.instanceOf(one, group) === this.instanceOf(other, group);
  }

  /** "↓" or "↑" where micro-batches go both ways, for those of a stage on a rank; else "". */
  wayOf(rank, stage) {
    return this.isBothWays && stage >= 0 ? wayOf(this.grid[rank]?.pp ?? 0, stage) : "";
  }

  /** Takes in one decoded frame. */
  append(frame) {
    const { spans } = frame;
    if (spans.length) {
      const lanes = this.rank(frame.rank);
      const numbers = this.#numbers(frame);
      const held = this.isWhole ? null : this.cover.held;
      rowsByLane(spans).forEach((all, lane) => {
        const rows = held ? all.filter((row) => held.touches(spans.start_ns[row], spans.start_ns[row] + spans.duration_ns[row])) : all;
        lanes[lane].append(spans, rows, numbers);
        this.spans += rows.length;
      });
      this.#note(spans);
      this.total += spans.length;
    }
    this.#noteMarks(frame);
    this.version++;
  }

  /** All spans that touch a stretch of the run, in decoded frames: from now on they are held. */
  addStretch(fromNs, toNs, frames) {
    const { held } = this.cover;
    for (const { rank, spans, strings } of frames) {
      const lanes = this.rank(rank);
      const numbers = this.#numbers({ strings });
      rowsByLane(spans).forEach((all, lane) => {
        const rows = all.filter((row) => !held.touches(spans.start_ns[row], spans.start_ns[row] + spans.duration_ns[row]));
        lanes[lane].addStretch(spans, rows, numbers);
        this.spans += rows.length;
        for (const row of rows) this.counts[spans.kind[row]]++;
      });
    }
    held.add(fromNs, toNs);
    this.#changed(fromNs, toNs);
  }

  /** A stretch that was added, or the beginning of what comes live, is to be held no more. */
  dropStretch(fromNs, toNs) {
    this.cover.held.remove(fromNs, toNs);
    this.#drop(fromNs, toNs);
  }

  /** Of what comes live, nothing but what touches the time from `timeNs` on is to be held. */
  dropBefore(timeNs) {
    const { held } = this.cover;
    const live = held.stretches.find(([, to]) => to === Infinity);
    held.set([...held.stretches.filter((each) => each !== live), [timeNs, Infinity]]);
    this.#drop(live[0], timeNs);
  }

  #drop(fromNs, toNs) {
    for (const lanes of this.ranks) for (const lane of lanes) this.spans -= lane.drop(fromNs, toNs, this.cover.held);
    this.#changed(fromNs, toNs);
  }

  addTile(tile) {
    if (tile.ranks) this.rank(tile.ranks - 1);
    for (const kind of tile.kinds) this.counts[kind] ||= 1;
    this.cover.addTile(tile);
    this.#changed(tile.fromNs, tile.toNs);
  }

  removeTile(tile) {
    this.cover.removeTile(tile);
    this.#changed(tile.fromNs, tile.toNs);
  }

  #changed(fromNs, toNs) {
    this.cover.changed();
    for (const lanes of this.ranks) for (const lane of lanes) lane.changed(fromNs, toNs);
    this.version++;
  }

  #numbers({ strings }) {
    return strings.map((text) => this.#number(text));
  }

  #noteMarks({ rank, marks, strings }) {
    for (let row = 0; row < marks.length; row++) {
      const kind = strings[marks.kind[row]];
      if (PRIVATE_MARKS.has(kind)) continue;
      const mark = { timeNs: marks.time_ns[row], rank, step: marks.step[row], kind, text: strings[marks.text[row]] };
      let at = this.marks.length;
      while (at > 0 && this.marks[at - 1].timeNs > mark.timeNs) at--;
      this.marks.splice(at, 0, mark);
    }
  }

  /** Hot path: steps' windows, and where the run begins and ends. */
  #note(spans) {
    const { start_ns: starts, duration_ns: durations, kind: kinds, step: steps } = spans;
    let first = this.firstStartNs;
    let last = this.lastEndNs;
    for (let row = 0; row < spans.length; row++) {
      const startNs = starts[row];
      const endNs = startNs + durations[row];
      if (IS_MODEL_WORK[kinds[row]] && steps[row] >= 0) this.steps.note(steps[row], startNs, endNs);
      this.counts[kinds[row]]++;
      if (startNs < first) first = startNs;
      if (endNs > last) last = endNs;
    }
    this.firstStartNs = first;
    this.lastEndNs = last;
  }

  #number(text) {
    let number = this.numberOf.get(text);
    if (number === undefined) {
      number = this.strings.length;
      this.strings.push(text);
      this.numberOf.set(text, number);
    }
    return number;
  }

  /** Nanoseconds and spans by kind in a range, of one rank or, without one, of all; where it is not held, as cells tell. */
  totals(fromNs, toNs, rank = -1) {
    const totalNs = new Float64Array(KINDS);
    const counts = new Float64Array(KINDS);
    const lanes = rank >= 0 ? this.ranks[rank] ?? [] : this.ranks.flat();
    for (const lane of lanes) if (lane.lane !== LANE.HOST) this.cover.addTotals(lane, fromNs, toNs, totalNs, counts);
    return { totalNs, counts };
  }

  /** Spans held, by rank. */
  perRank() {
    return this.ranks.map((lanes) => lanes.reduce((sum, lane) => sum + lane.spans, 0));
  }
}
