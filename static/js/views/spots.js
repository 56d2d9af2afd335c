/** The spots in a run that comments are about: in words, as places to go to, and what is chosen on the timeline now. */

import { durationNs, momentNs } from "../core/format.js";
import { titleOf } from "../timeline/words.js";

/** "rank 2", "1.24 s from 3,000.000 ms on"; empty for the whole run. */
export function spotWords(about) {
  if (about.kind === "rank") return `rank ${about.rank}`;
  if (about.kind === "range") return `${durationNs(about.to_ns - about.from_ns)} from ${momentNs(about.from_ns)} on`;
  if (about.kind === "span") return `a span of ${durationNs(about.to_ns - about.from_ns)} on rank ${about.rank}`;
  return "";
}

/** `{range, span}` to see the spot by; null where there is nothing to go to. */
export function spotPlace(about) {
  if (about.from_ns === undefined) return null;
  const marginNs = Math.max(200, (about.to_ns - about.from_ns) * (about.kind === "span" ? 4 : 0.1));
  return {
    range: [about.from_ns - marginNs, about.to_ns + marginNs],
    span: about.kind === "span" ? { rank: about.rank, lane: about.lane, startNs: about.from_ns } : null,
  };
}

/** What a comment could be about now, likeliest first: [words, about]. */
export function spotsNow(timeline) {
  const { range, selected, view, trace } = timeline;
  const spots = [];
  if (selected) {
    spots.push([`this span: ${titleOf(selected)} on rank ${selected.rank}`,
      { kind: "span", from_ns: selected.startNs, to_ns: selected.endNs, rank: selected.rank, lane: selected.lane }]);
  }
  if (range) spots.unshift([`the chosen range: ${durationNs(range.toNs - range.fromNs)}`, { kind: "range", from_ns: range.fromNs, to_ns: range.toNs }]);
  spots.push(["the whole run", { kind: "run" }]);
  if (!trace.isEmpty && !range) spots.push([`what is in sight: ${durationNs(view.spanNs)}`, { kind: "range", from_ns: view.fromNs, to_ns: view.toNs }]);
  if (selected) spots.push([`rank ${selected.rank}`, { kind: "rank", rank: selected.rank }]);
  return spots;
}
