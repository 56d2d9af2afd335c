/** All spans that the page holds: ranks × lanes, the steps' windows, and the table of their strings. */

import { IS_MODEL_WORK, KINDS, LANE, LANES } from "../core/kinds.js";
import { Lane } from "./lanes.js";
import { StepWindows } from "./windows.js";

export class Trace {
  /** `grid`: each rank's address, one number an axis. */
  constructor(ranks = 0, grid = []) {
    this.ranks = [];
    this.grid = grid;
    this.spans = 0;
    this.version = 0;
    this.firstStartNs = Infinity;
    this.lastEndNs = -Infinity;
    this.steps = new StepWindows();
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
   * Whether two ranks are in one group along the axes that its name says ("tp", "dp×cp"): the same on every other axis.
   * Groups of one axis share a name. One that is not named by axes is taken to hold all ranks.
   */
  areTogether(one, other, group) {
    const axes = group.split("×");
    const [address, another] = [this.grid[one], this.grid[other]];
    if (!address || !another || !axes.every((axis) => axis in address)) return true;
    return Object.keys(address).every((axis) => axes.includes(axis) || address[axis] === another[axis]);
  }

  /** Takes in one decoded frame. */
  append(frame) {
    const spans = frame.spans;
    if (spans.length === 0) return;
    const lanes = this.rank(frame.rank);
    const numbers = frame.strings.map((text) => this.#number(text));
    for (let row = 0; row < spans.length; row++) {
      lanes[spans.lane[row]].append(spans, row, numbers[spans.name[row]] ?? 0, numbers[spans.group[row]] ?? 0);
      const startNs = spans.start_ns[row];
      const endNs = startNs + spans.duration_ns[row];
      if (IS_MODEL_WORK[spans.kind[row]] && spans.step[row] >= 0) this.steps.note(spans.step[row], startNs, endNs);
      if (startNs < this.firstStartNs) this.firstStartNs = startNs;
      if (endNs > this.lastEndNs) this.lastEndNs = endNs;
    }
    this.spans += spans.length;
    this.version++;
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
