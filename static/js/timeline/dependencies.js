/**
 * What a span waited for and what waits for it. Transfers tie ranks together: a send has a receive
 * at its peer, a collective has one member on every rank of its group. Between a transfer and the
 * work that made or needed it, the micro-batch tells which belong together.
 */

import { IS_COLLECTIVE, IS_MODEL_WORK, KIND, LANE, labelOf } from "../core/kinds.js";

/** How far from a span, in time and in spans, its partners are looked for. */
const REACH_NS = 20e9;
const MOST_LOOKED_AT = 4096;
/** A rank's own events a few microseconds apart belong together: reading the clock takes time. */
const SLACK_NS = 200e3;

/** What lies beyond a stretch that is not in memory is not a neighbour. */
const isApart = (lane, fromNs, toNs) => toNs > fromNs && !lane.holds(fromNs, toNs);

function* spansFrom(lane, timeNs, untilNs) {
  if (!lane) return;
  let looked = 0;
  let atNs = timeNs;
  for (let place = lane.firstEndingAfter(timeNs); place < lane.end && looked < MOST_LOOKED_AT; place = lane.next(place), looked++) {
    if (lane.startOf(place) > untilNs || isApart(lane, atNs, lane.startOf(place))) return;
    atNs = lane.endOf(place);
    yield lane.spanAt(place);
  }
}

function* spansBefore(lane, timeNs) {
  if (!lane || lane.spans === 0) return;
  let place = lane.firstEndingAfter(timeNs);
  if (place >= lane.end || lane.startOf(place) > timeNs) place = lane.previous(place);
  let atNs = timeNs;
  for (let looked = 0; place >= 0 && looked < MOST_LOOKED_AT; place = lane.previous(place), looked++) {
    if (isApart(lane, lane.endOf(place), atNs)) return;
    atNs = lane.startOf(place);
    yield lane.spanAt(place);
  }
}

/** A lane's spans from a time outward, the nearest first by turns. */
function* spansAround(lane, timeNs) {
  const later = spansFrom(lane, timeNs, timeNs + REACH_NS);
  const earlier = spansBefore(lane, timeNs);
  for (;;) {
    const one = later.next();
    const other = earlier.next();
    if (!one.done) yield one.value;
    if (!other.done && other.value.endNs > timeNs - REACH_NS) yield other.value;
    else if (one.done) return;
  }
}

function first(spans, test) {
  for (const span of spans) if (test(span)) return span;
  return null;
}

export const sameSpan = (one, other) => Boolean(one && other) && one.rank === other.rank && one.lane === other.lane
  && one.startNs === other.startNs && one.kind === other.kind;

/** The other end of a send or receive. */
export function partner(trace, span) {
  if (span.kind !== KIND.SEND && span.kind !== KIND.RECEIVE) return null;
  const wanted = span.kind === KIND.SEND ? KIND.RECEIVE : KIND.SEND;
  return first(spansAround(trace.lane(span.peer, LANE.POINT_TO_POINT), span.endNs), (other) => other.kind === wanted
    && other.peer === span.rank && sameBatch(other, span) && other.stage === span.stage // both name the stage that the letter is for
    && (span.sequence < 0 || other.sequence < 0 || span.sequence === other.sequence));
}

/** All loaded members of a collective, by rank. */
export function members(trace, span) {
  if (!IS_COLLECTIVE[span.kind]) return [];
  const found = [];
  const group = trace.strings[span.group];
  for (let rank = 0; rank < trace.ranks.length; rank++) {
    if (!trace.areTogether(span.rank, rank, group)) continue;
    const member = rank === span.rank ? span : first(
      spansAround(trace.lane(rank, LANE.COLLECTIVE), span.endNs),
      (other) => other.kind === span.kind && other.group === span.group && other.sequence === span.sequence && other.step === span.step,
    );
    if (member) found.push(member);
  }
  return found;
}

const isWork = (span) => span.kind !== KIND.WAIT;
const sameBatch = (one, other) => one.step === other.step && one.microBatch === other.microBatch;

/** The work on the other rank that a receive had to wait for, through the send. */
function producerOf(trace, receive) {
  const send = partner(trace, receive);
  if (!send) return null;
  return first(spansBefore(trace.lane(send.rank, LANE.COMPUTE), send.startNs + SLACK_NS),
    (span) => isWork(span) && sameBatch(span, send)) ?? send;
}

/** The receive whose data a compute span needed. */
function receiveFor(trace, work) {
  if (!IS_MODEL_WORK[work.kind] || work.microBatch < 0) return null;
  const receive = first(spansBefore(trace.lane(work.rank, LANE.POINT_TO_POINT), work.startNs + SLACK_NS),
    (span) => span.step < work.step || (span.kind === KIND.RECEIVE && sameBatch(span, work) && span.endNs <= work.startNs + SLACK_NS));
  if (!receive || receive.step !== work.step) return null;
  // What came for the forward pass is not what its backward pass waits for.
  const between = first(spansBefore(trace.lane(work.rank, LANE.COMPUTE), work.startNs - 1),
    (span) => span.startNs < receive.endNs - SLACK_NS || (isWork(span) && sameBatch(span, work)));
  return between && isWork(between) && sameBatch(between, work) && between.startNs >= receive.endNs - SLACK_NS ? null : receive;
}

const previousWork = (trace, span) => first(spansBefore(trace.lane(span.rank, LANE.COMPUTE), span.startNs - 1), isWork);
const nextWork = (trace, span) => first(spansFrom(trace.lane(span.rank, LANE.COMPUTE), span.endNs - 1, span.endNs + REACH_NS),
  (other) => isWork(other) && other.startNs >= span.endNs - SLACK_NS && !sameSpan(other, span));

/** The span that had to end before this one could begin, or null. */
export function previousDependency(trace, span) {
  if (span.kind === KIND.RECEIVE) return partner(trace, span) ?? producerOf(trace, span);
  if (span.kind === KIND.SEND) return first(spansBefore(trace.lane(span.rank, LANE.COMPUTE), span.startNs + SLACK_NS),
    (other) => isWork(other) && sameBatch(other, span));
  if (IS_COLLECTIVE[span.kind]) return lastToArrive(trace, span) ?? previousWork(trace, span);
  if (span.kind === KIND.WAIT) return waitedFor(trace, span)?.span ?? previousWork(trace, span);
  const receive = receiveFor(trace, span);
  const before = previousWork(trace, span);
  const collective = collectiveFor(trace, span);
  // The latest of them is what it really waited for.
  if (collective && collective.endNs > Math.max(before?.endNs ?? -Infinity, receive?.endNs ?? -Infinity)) return collective;
  if (receive && (!before || receive.endNs >= before.endNs - SLACK_NS)) return producerOf(trace, receive) ?? receive;
  return before;
}

/** The rank's last collective of the step that was through when the work began. */
function collectiveFor(trace, work) {
  const found = first(spansBefore(trace.lane(work.rank, LANE.COLLECTIVE), work.startNs),
    (span) => span.endNs <= work.startNs + SLACK_NS || span.startNs < work.startNs - REACH_NS);
  return found?.step === work.step ? found : null;
}

/** The span that could begin only after this one, or null. */
export function nextDependency(trace, span) {
  if (span.kind === KIND.SEND) return partner(trace, span);
  if (span.kind === KIND.RECEIVE) {
    // Paced work begins when its stage is free, with its data still on the way: then it ends after the data came.
    return first(spansFrom(trace.lane(span.rank, LANE.COMPUTE), span.endNs - SLACK_NS, span.endNs + REACH_NS),
      (other) => isWork(other) && sameBatch(other, span) && other.endNs > span.endNs
        && (span.stage < 0 || other.stage === span.stage));
  }
  const send = IS_MODEL_WORK[span.kind] ? sendOf(trace, span) : null;
  const received = send && partner(trace, send);
  const consumer = received && nextDependency(trace, received);
  return consumer ?? nextWork(trace, span);
}

function sendOf(trace, work) {
  const lane = trace.lane(work.rank, LANE.POINT_TO_POINT);
  return first(spansFrom(lane, work.endNs - SLACK_NS, work.endNs + REACH_NS),
    (span) => span.kind === KIND.SEND && sameBatch(span, work) && span.startNs >= work.endNs - SLACK_NS && span.startNs <= work.endNs + SLACK_NS * 10);
}

/** The member of a collective that came last, if it was another one: everyone else waited for it. */
export function lastToArrive(trace, span) {
  const all = members(trace, span);
  const last = all.reduce((latest, member) => (member.startNs > latest.startNs ? member : latest), span);
  return sameSpan(last, span) ? null : last;
}

/**
 * What an idle time was for: `{span, words, readyNs}`, where `span` is the work on another rank,
 * `words` name it, and `readyNs` is when its data had arrived; null when nothing tells.
 */
export function waitedFor(trace, idle) {
  const next = first(spansFrom(trace.lane(idle.rank, LANE.COMPUTE), idle.endNs - SLACK_NS, idle.endNs + REACH_NS),
    (span) => isWork(span) && span.startNs >= idle.endNs - SLACK_NS);
  const receive = next && receiveFor(trace, next);
  if (receive && receive.endNs > idle.startNs) {
    const span = producerOf(trace, receive) ?? receive;
    return { span, words: `${workWords(span)} of rank ${receive.peer}`, readyNs: receive.endNs };
  }
  const collective = first(spansBefore(trace.lane(idle.rank, LANE.COLLECTIVE), idle.endNs + SLACK_NS),
    (span) => span.startNs < idle.startNs - REACH_NS || (span.endNs > idle.startNs && span.endNs <= idle.endNs + SLACK_NS));
  if (collective && collective.endNs > idle.startNs) return { span: collective, words: workWords(collective), readyNs: collective.endNs };
  if (idle.peer >= 0 && next) return { span: null, words: `${workWords(next)} of rank ${idle.peer}`, readyNs: NaN };
  return null;
}

/** "F3", or the kind's word where spans carry no label. */
function workWords(span) {
  return labelOf(span.kind, span.microBatch) || { [KIND.SEND]: "the send", [KIND.RECEIVE]: "data" }[span.kind] || "the collective";
}
