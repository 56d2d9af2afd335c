/**
 * Collectives matched across ranks, as trainer/trace/analysis/collectives.py does: by group, kind, sequence number and
 * step. The transfer is the shortest member's duration; what a member spends beyond it is waiting for the last to come.
 */

import { IS_COLLECTIVE, KIND, KIND_WORD, LANE } from "../core/kinds.js";

const MOST_STEPS = 10;
const MOST_SPANS = 20_000;

/** The latest steps that are complete, newest first. */
export const completeSteps = (trace, most) => latestSteps(trace, most, () => true);

/** The same of steps whose spans are in memory. */
export const heldSteps = (trace, most) => latestSteps(trace, most, ({ start_ns: fromNs, end_ns: toNs }) => trace.holds(fromNs, toNs));

function latestSteps(trace, most, test) {
  const found = [];
  for (let at = trace.steps.sorted.length - 1; at >= 0 && found.length < most; at--) {
    const window = trace.steps.sorted[at];
    if (window.figures?.complete && window.figures.end_ns !== null && test(window.figures)) found.push(window);
  }
  return found;
}

/** Spans of one lane of one rank that belong to a step. */
export function* spansOfStep(trace, rank, laneNumber, { step, figures }) {
  const lane = trace.lane(rank, laneNumber);
  if (!lane?.spans) return;
  for (let place = lane.firstEndingAfter(figures.start_ns); place < lane.end && lane.startOf(place) < figures.end_ns; place = lane.next(place)) {
    const span = lane.spanAt(place);
    if (span.step === step) yield span;
  }
}

/** The latest whole steps' collectives, the newest step first: at most ten steps, and no more spans than can be looked at often. */
export function latestCollectives(trace) {
  const found = [];
  let spans = 0;
  let steps = 0;
  for (const window of heldSteps(trace, MOST_STEPS)) {
    const collectives = collectivesOfStep(trace, window);
    found.push(...collectives);
    steps++;
    spans += collectives.reduce((sum, one) => sum + one.members.length, 0);
    if (spans > MOST_SPANS) break;
  }
  return { collectives: found, steps };
}

export function collectivesOfStep(trace, window) {
  const byKey = new Map();
  for (let rank = 0; rank < trace.ranks.length; rank++) {
    const instances = new Map(); // of groups, by name
    for (const span of spansOfStep(trace, rank, LANE.COLLECTIVE, window)) {
      if (!IS_COLLECTIVE[span.kind] || span.sequence < 0) continue;
      const group = trace.strings[span.group];
      if (!instances.has(group)) instances.set(group, trace.instanceOf(rank, group));
      const key = `${group}|${instances.get(group)}|${span.kind}|${span.sequence}`;
      if (!byKey.has(key)) byKey.set(key, []);
      byKey.get(key).push(span);
    }
  }
  return [...byKey.values()].map((members) => collective(trace, members));
}

function collective(trace, members) {
  members.sort((one, other) => one.startNs - other.startNs || one.rank - other.rank);
  const [first] = members;
  const transferNs = Math.min(...members.map((one) => one.durationNs));
  const wholeNs = members.reduce((sum, one) => sum + one.durationNs, 0);
  const name = trace.strings[first.name];
  return {
    kind: first.kind, group: trace.strings[first.group], step: first.step, sequence: first.sequence, members, transferNs,
    waitNs: wholeNs / members.length - transferNs, bytes: Math.max(...members.map((one) => one.bytes)),
    algorithm: name.includes(" · ") ? name.split(" · ")[1] : "backend",
    operation: KIND_WORD[first.kind].replaceAll("-", "_"), // as the algorithms' table is keyed
  };
}

/**
 * When each step of a collective's algorithm was through on all its ranks, in ns after its first member's start; null
 * unless every step was recorded. Steps are found by what their receives are called ("ring 2/6 · chunk 3") and numbered.
 */
export function measuredSteps(trace, { members, algorithm, group, sequence, step }, steps) {
  const firstNs = members[0].startNs;
  const endsNs = new Array(steps).fill(-Infinity);
  for (const member of members) {
    const lane = trace.lane(member.rank, LANE.POINT_TO_POINT);
    if (!lane?.spans) return null;
    for (let place = lane.firstEndingAfter(member.startNs); place < lane.end && lane.startOf(place) <= member.endNs; place = lane.next(place)) {
      const span = lane.spanAt(place);
      const at = span.sequence - sequence * steps;
      if (span.kind !== KIND.RECEIVE || span.step !== step || trace.strings[span.group] !== group || at < 0 || at >= steps) continue;
      if (!trace.strings[span.name].startsWith(`${algorithm} ${at + 1}/${steps}`)) continue;
      endsNs[at] = Math.max(endsNs[at], span.endNs - firstNs);
    }
  }
  return endsNs.every(Number.isFinite) ? endsNs : null;
}
