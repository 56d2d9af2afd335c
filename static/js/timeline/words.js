/** A span in words, for tooltips, the details beside the timeline and screen readers. */

import { IS_COLLECTIVE, KIND, KIND_WORD, LANE_WORDS, labelOf } from "../core/kinds.js";
import { bytes, durationNs, momentNs } from "../core/format.js";
import { lastToArrive, waitedFor } from "./dependencies.js";

/** "forward F3", "all-reduce". */
export function titleOf(span) {
  const label = labelOf(span.kind, span.microBatch);
  return label.length > 1 && label !== "opt" ? `${KIND_WORD[span.kind]} ${label}` : KIND_WORD[span.kind];
}

export function whereOf(span) {
  const isOut = span.kind === KIND.SEND; // it names the stage that the letter is for
  return [
    `rank ${span.rank}`,
    span.stage >= 0 ? `${isOut ? "for " : ""}stage ${span.stage}` : "",
    span.microBatch >= 0 ? `micro-batch ${span.microBatch}` : "",
    span.step >= 0 ? `step ${span.step}` : "",
  ].filter(Boolean).join(" · ");
}

/** Bytes a second, of a transfer. */
export function rateOf(span) {
  const isTransfer = span.kind === KIND.RECEIVE || IS_COLLECTIVE[span.kind]; // a send ends when it is handed over, a wait before any byte came
  return isTransfer && span.bytes > 0 && span.durationNs > 0 ? `${bytes(span.bytes / (span.durationNs / 1e9))}/s` : "";
}

/** What this span waited for, or what it did to others; empty when there is nothing to say. */
export function whyOf(trace, span) {
  if (span.kind === KIND.WAIT) {
    const waited = waitedFor(trace, span);
    return waited ? `waits for ${waited.words}` : "";
  }
  if (IS_COLLECTIVE[span.kind]) {
    const last = lastToArrive(trace, span);
    return last ? `rank ${last.rank} came last, ${durationNs(last.startNs - span.startNs)} later` : "the last to arrive";
  }
  if (span.peer >= 0 && span.kind === KIND.SEND) return `to rank ${span.peer}`;
  if (span.peer >= 0 && span.kind === KIND.RECEIVE) return `from rank ${span.peer}`;
  return "";
}

export function whyIdle(trace, gap) {
  const waited = waitedFor(trace, gap);
  return waited ? `waits for ${waited.words}` : "nothing to do until the next work of this rank";
}

/** One sentence for a screen reader. */
export function sentenceOf(trace, span) {
  const why = whyOf(trace, span);
  return `${titleOf(span)}, ${durationNs(span.durationNs)}, ${whereOf(span).replaceAll(" · ", ", ")}, ${LANE_WORDS[span.lane]} lane, `
    + `starts at ${momentNs(span.startNs)}${why ? `, ${why}` : ""}.`;
}
