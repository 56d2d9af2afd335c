/**
 * Where each lane lies: a tall compute lane and two thin ones for every rank. Ranks share out the
 * height that a page can spare, so a few are tall and many are thin, and then the lanes scroll.
 * run.css computes the same height from the number of ranks, so nothing moves when this one loads.
 */

import { LANE } from "../core/kinds.js";

const TALLEST_RANK_PX = 88;
const LOWEST_RANK_PX = 28;
const LANES_PX = 540;

export const RULER_PX = 46;
export const DRAWN_LANES = [LANE.COMPUTE, LANE.COLLECTIVE, LANE.POINT_TO_POINT];

export class Layout {
  constructor(ranks, hasThinLanes = true) {
    this.ranks = ranks;
    this.hasThinLanes = hasThinLanes;
    this.rankPx = Math.round(Math.min(TALLEST_RANK_PX, Math.max(LOWEST_RANK_PX, LANES_PX / Math.max(1, ranks))));
    const gap = this.rankPx > 50 ? 12 : 5;
    const thin = this.rankPx > 60 ? 9 : this.rankPx > 40 ? 6 : 4;
    const between = this.rankPx > 60 ? 3 : 1;
    const compute = this.rankPx - gap - 2 * (thin + between);
    this.lanes = [
      { lane: LANE.COMPUTE, topPx: 0, heightPx: compute },
      { lane: LANE.COLLECTIVE, topPx: compute + between, heightPx: thin },
      { lane: LANE.POINT_TO_POINT, topPx: compute + 2 * between + thin, heightPx: thin },
    ];
    this.usedPx = this.rankPx - gap;
  }

  get contentPx() {
    return RULER_PX + this.ranks * this.rankPx + 6;
  }

  topOf(rank) {
    return RULER_PX + rank * this.rankPx;
  }

  /** The first and one past the last rank in sight. */
  visibleRanks(scrollPx, heightPx) {
    const first = Math.max(0, Math.floor(scrollPx / this.rankPx));
    const last = Math.min(this.ranks, Math.ceil((scrollPx + heightPx - RULER_PX) / this.rankPx));
    return [first, Math.max(first, last)];
  }

  /** The rank and lane at a height of the canvas, or null between lanes and on the ruler. */
  laneAt(y, scrollPx) {
    if (y < RULER_PX) return null;
    const inside = y - RULER_PX + scrollPx;
    const rank = Math.floor(inside / this.rankPx);
    if (rank < 0 || rank >= this.ranks) return null;
    const offset = inside - rank * this.rankPx;
    const lane = this.lanes.find(({ topPx, heightPx }) => offset >= topPx - 1 && offset < topPx + heightPx + 2);
    return lane ? { rank, lane: lane.lane } : null;
  }
}
