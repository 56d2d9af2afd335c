/** What lies under the pointer: a span, an idle gap inside a step, or nothing. */

import { KIND, LANE } from "../core/kinds.js";

/** A span narrower than the pointer can point is taken from this far. */
export const REACH_PX = 4;

/**
 * `{span}`, `{gap}` or null at a time of a lane, by binary search. Within `reachNs` the nearest span
 * is taken, if none lies under the time itself.
 */
export function hit(trace, rank, laneNumber, timeNs, reachNs) {
  const lane = trace.lane(rank, laneNumber);
  if (!lane || lane.spans === 0) return null;
  const place = nearest(lane, timeNs, reachNs);
  if (place >= 0) return { span: lane.spanAt(place) };
  return laneNumber === LANE.COMPUTE ? gapAt(trace, rank, lane, timeNs) : null;
}

/** The place of the span at `timeNs`, or of the nearest within `reachNs`; -1 if there is none. */
export function nearest(lane, timeNs, reachNs) {
  const after = lane.firstEndingAfter(timeNs);
  const before = lane.previous(after);
  const afterNs = after < lane.end ? Math.max(0, lane.startOf(after) - timeNs) : Infinity;
  if (afterNs === 0) return after;
  const beforeNs = before >= 0 ? Math.max(0, timeNs - lane.endOf(before)) : Infinity;
  if (Math.min(beforeNs, afterNs) > reachNs) return -1;
  if (beforeNs <= afterNs) return before;
  return after < lane.end ? after : -1;
}

/** The idle time around `timeNs` inside its step; a recorded wait in it belongs to it. */
function gapAt(trace, rank, lane, timeNs) {
  const window = trace.steps.at(timeNs);
  if (!window) return null;
  let startNs = window.startNs;
  let endNs = window.endNs;
  let after = lane.firstEndingAfter(timeNs);
  for (let place = lane.previous(after); place >= 0; place = lane.previous(place)) {
    if (lane.kindOf(place) === KIND.WAIT) continue;
    startNs = Math.max(startNs, lane.endOf(place));
    break;
  }
  while (after < lane.end && lane.kindOf(after) === KIND.WAIT) after = lane.next(after);
  if (after < lane.end) endNs = Math.min(endNs, lane.startOf(after));
  if (endNs <= startNs || !trace.holds(startNs, endNs)) return null;
  return { gap: { rank, lane: LANE.COMPUTE, step: window.step, startNs, endNs, durationNs: endNs - startNs } };
}
