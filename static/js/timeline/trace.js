/** All spans that the page holds: ranks × lanes, the steps' windows, and the table of their strings. */

import { IS_MODEL_WORK, KINDS, LANE, LANES } from "../core/kinds.js";
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
    this.lastPlace = stages.length - 1;
    this.isBothWays = goesBothWays(stages);
    this.spans = 0;
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
    return this.spans === 0;
  }

  rank(rank) {
    while (this.ranks.length <= rank) {
      const number = this.ranks.length;
      this.ranks.push(Array.from({ length: LANES }, (_, lane) => new Lane(number, lane)));
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
      const numbers = frame.strings.map((text) => this.#number(text));
      rowsByLane(spans).forEach((rows, lane) => lanes[lane].append(spans, rows, numbers));
      this.#note(spans);
      this.spans += spans.length;
    }
    this.#noteMarks(frame);
    this.version++;
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

  /** Nanoseconds and spans by kind in a range, of one rank or, without one, of all. */
  totals(fromNs, toNs, rank = -1) {
    const totalNs = new Float64Array(KINDS);
    const counts = new Float64Array(KINDS);
    const lanes = rank >= 0 ? this.ranks[rank] ?? [] : this.ranks.flat();
    for (const lane of lanes) if (lane.lane !== LANE.HOST) lane.addTotals(fromNs, toNs, totalNs, counts);
    return { totalNs, counts };
  }

  /** Spans held, by rank. */
  perRank() {
    return this.ranks.map((lanes) => lanes.reduce((sum, lane) => sum + lane.spans, 0));
  }
}
