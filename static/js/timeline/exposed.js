/** Communication that is not hidden: time in which a rank sends, receives or takes part in a collective and computes nothing. */

import { KIND, LANE } from "../core/kinds.js";

/** The parts of a lane's spans inside a range, as [from, to] in order; waiting is no work. */
function* parts(lane, fromNs, toNs) {
  if (!lane?.spans) return;
  for (let place = lane.firstEndingAfter(fromNs); place < lane.end && lane.startOf(place) < toNs; place = lane.next(place)) {
    if (lane.kindOf(place) !== KIND.WAIT) yield [Math.max(fromNs, lane.startOf(place)), Math.min(toNs, lane.endOf(place))];
  }
}

/** What several lanes cover together, as [from, to] in order. */
function covered(lanes, fromNs, toNs) {
  const all = lanes.flatMap((lane) => [...parts(lane, fromNs, toNs)]).sort((one, other) => one[0] - other[0]);
  const joined = [];
  for (const [from, to] of all) {
    const last = joined.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else joined.push([from, to]);
  }
  return joined;
}

/** ns of one rank in a range. */
export function exposedNs(trace, rank, fromNs, toNs) {
  const talk = covered([trace.lane(rank, LANE.COLLECTIVE), trace.lane(rank, LANE.POINT_TO_POINT)], fromNs, toNs);
  const work = covered([trace.lane(rank, LANE.COMPUTE)], fromNs, toNs);
  let exposed = 0;
  let at = 0;
  for (const [from, to] of talk) {
    let hidden = 0;
    while (at < work.length && work[at][1] <= from) at++;
    for (let each = at; each < work.length && work[each][0] < to; each++) {
      hidden += Math.min(to, work[each][1]) - Math.max(from, work[each][0]);
    }
    exposed += to - from - hidden;
  }
  return exposed;
}

/** Of a step from `fromNs` to `toNs`: the mean over ranks, as a share; NaN where the page holds no span of it. */
export function exposedShare(trace, fromNs, toNs) {
  if (!(toNs > fromNs) || trace.isEmpty || fromNs < trace.firstStartNs - 1 || !trace.holds(fromNs, toNs)) return NaN;
  const sum = trace.ranks.reduce((total, _, rank) => total + exposedNs(trace, rank, fromNs, toNs), 0);
  return sum / ((toNs - fromNs) * trace.ranks.length);
}
