/** The spots in a run that comments are about: in words, as addresses, and what is chosen on the timeline now. */

import { durationNs, momentNs } from "../core/format.js";
import { titleOf } from "../timeline/words.js";

/** "rank 2", "1.24 s from 3,000.000 ms on"; empty for the whole run. */
export function spotWords(about) {
  if (about.kind === "rank") return `rank ${about.rank}`;
  if (about.kind === "range") return `${durationNs(about.to_ns - about.from_ns)} from ${momentNs(about.from_ns)} on`;
  if (about.kind === "span") return `a span of ${durationNs(about.to_ns - about.from_ns)} on rank ${about.rank}`;
  return "";
}

/** What stands behind the # of an address that shows the spot; null where there is nothing to go to. */
export function spotAddress(about) {
  if (about.from_ns === undefined) return null;
  const margin = Math.max(200, (about.to_ns - about.from_ns) * (about.kind === "span" ? 4 : 0.1));
  const range = `t=${Math.round(about.from_ns - margin)},${Math.round(about.to_ns + margin)}`;
  return about.kind === "span" ? `${range}&span=${about.rank},${about.lane},${about.from_ns}` : range;
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
