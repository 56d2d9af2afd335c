/**
 * Where everything lies: groups of ranks one below the other, each rank a tall compute lane and two thin ones.
 * Ranks share out the height that a page can spare, so a few are tall and many are thin, and then the lanes scroll.
 * A group that is folded shows its ranks as one strip. timeline.css computes the same height for a page that
 * has no groups yet, so nothing moves when this one loads.
 */

import { LANE } from "../core/kinds.js";

const TALLEST_RANK_PX = 88;
const LOWEST_RANK_PX = 28;
const LOWEST_BARE_RANK_PX = 10;
const LANES_PX = 540;
const BELOW_PX = 6;
const STRIP_RANK_PX = 4;
const LOWEST_STRIP_PX = 18;
const HIGHEST_STRIP_PX = 64;
const STRIP_GAP_PX = 8;

export const RULER_PX = 46;
export const HEADER_PX = 26;
export const DRAWN_LANES = [LANE.COMPUTE, LANE.COLLECTIVE, LANE.POINT_TO_POINT];

/** A rank's lanes in its slot, `{lane, topPx, heightPx}`, for so much height. */
function lanesOf(rankPx, hasThinLanes) {
  const gap = rankPx > 50 ? 12 : rankPx >= LOWEST_RANK_PX ? 5 : rankPx > 16 ? 2 : 1;
  if (!hasThinLanes) return [{ lane: LANE.COMPUTE, topPx: 0, heightPx: rankPx - gap }];
  const thin = rankPx > 60 ? 9 : rankPx > 40 ? 6 : 4;
  const between = rankPx > 60 ? 3 : 1;
  const compute = rankPx - gap - 2 * (thin + between);
  return [
    { lane: LANE.COMPUTE, topPx: 0, heightPx: compute },
    { lane: LANE.COLLECTIVE, topPx: compute + between, heightPx: thin },
    { lane: LANE.POINT_TO_POINT, topPx: compute + 2 * between + thin, heightPx: thin },
  ];
}

let layouts = 0;

export class Layout {
  /** `groups`: `[{key, label, ranks, isFolded}]`; one without a label has no header. */
  constructor(groups, { hasThinLanes = true } = {}) {
    this.id = ++layouts; // for what is kept of a layout's drawing
    this.groups = groups;
    this.hasThinLanes = hasThinLanes;
    this.ranks = groups.reduce((sum, { ranks }) => sum + ranks.length, 0);
    const lowest = hasThinLanes ? LOWEST_RANK_PX : LOWEST_BARE_RANK_PX;
    this.rankPx = Math.round(Math.min(TALLEST_RANK_PX, Math.max(lowest, LANES_PX / Math.max(1, this.ranks))));
    this.lanes = lanesOf(this.rankPx, hasThinLanes);
    /** `{rank, topPx, heightPx, lanes, isFolded}`, from top to bottom, counted from below the ruler. */
    this.slots = [];
    this.headers = [];
    this.slotOf = new Int32Array(this.ranks).fill(-1);
    let topPx = 0;
    for (const group of groups) topPx = this.#place(group, topPx);
    this.contentPx = RULER_PX + topPx + BELOW_PX;
  }

  #place(group, fromPx) {
    let topPx = fromPx;
    if (group.label) {
      this.headers.push({ ...group, topPx });
      topPx += HEADER_PX;
    }
    if (group.isFolded) return this.#placeStrip(group.ranks, topPx);
    for (const rank of group.ranks) {
      this.#addSlot({ rank, topPx, heightPx: this.rankPx, lanes: this.lanes, isFolded: false });
      topPx += this.rankPx;
    }
    return topPx;
  }

  #placeStrip(ranks, topPx) {
    const strip = Math.min(HIGHEST_STRIP_PX, Math.max(LOWEST_STRIP_PX, ranks.length * STRIP_RANK_PX));
    ranks.forEach((rank, at) => {
      const begin = Math.round((at * strip) / ranks.length);
      const heightPx = Math.max(1, Math.round(((at + 1) * strip) / ranks.length) - begin);
      this.#addSlot({ rank, topPx: topPx + begin, heightPx, lanes: [{ lane: LANE.COMPUTE, topPx: 0, heightPx }], isFolded: true });
    });
    return topPx + strip + STRIP_GAP_PX;
  }

  #addSlot(slot) {
    this.slotOf[slot.rank] = this.slots.length;
    this.slots.push(slot);
  }

  slot(rank) {
    return this.slots[this.slotOf[rank]];
  }

  topOf(rank) {
    return RULER_PX + (this.slot(rank)?.topPx ?? 0);
  }

  /** A lane's box in its rank's slot; the compute lane's, where the lane is not drawn. */
  box(rank, lane) {
    const { lanes } = this.slot(rank);
    return lanes.find((each) => each.lane === lane) ?? lanes[0];
  }

  /** The first and one past the last slot in sight. */
  visibleSlots(scrollPx, heightPx) {
    const first = this.#partition((slot) => slot.topPx + slot.heightPx <= scrollPx);
    return [first, Math.max(first, this.#partition((slot) => slot.topPx < scrollPx + heightPx - RULER_PX))];
  }

  /** The rank and lane at a height of the canvas, or null between lanes and on the ruler. */
  laneAt(y, scrollPx) {
    if (y < RULER_PX) return null;
    const inside = y - RULER_PX + scrollPx;
    const slot = this.slots[this.#partition((each) => each.topPx + each.heightPx <= inside)];
    if (!slot || inside < slot.topPx - 1) return null;
    const offset = inside - slot.topPx;
    const lane = slot.lanes.find(({ topPx, heightPx }) => offset >= topPx - 1 && offset < topPx + heightPx + 2);
    return lane ? { rank: slot.rank, lane: lane.lane } : null;
  }

  headerAt(y, scrollPx) {
    if (y < RULER_PX) return null;
    const inside = y - RULER_PX + scrollPx;
    return this.headers.find(({ topPx }) => inside >= topPx && inside < topPx + HEADER_PX) ?? null;
  }

  /** How many slots, in order, satisfy a test that holds for the first ones and for none after. */
  #partition(test) {
    let low = 0;
    let high = this.slots.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (test(this.slots[middle])) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
