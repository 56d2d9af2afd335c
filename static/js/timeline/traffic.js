/** Who sent how much to whom in one step, from the sends that ranks recorded (as trainer/trace/analysis/traffic.py does). */

import { KIND, LANE } from "../core/kinds.js";
import { spansOfStep } from "./collectives.js";

/** Bytes by `sender * ranks + receiver`; pairs that exchanged none are left out. */
export function trafficOfStep(trace, window) {
  const ranks = trace.ranks.length;
  const found = new Map();
  for (let rank = 0; rank < ranks; rank++) {
    for (const span of spansOfStep(trace, rank, LANE.POINT_TO_POINT, window)) {
      if (span.kind !== KIND.SEND || !(span.bytes > 0) || span.peer < 0 || span.peer >= ranks) continue;
      const pair = rank * ranks + span.peer;
      found.set(pair, (found.get(pair) ?? 0) + span.bytes);
    }
  }
  return found;
}
