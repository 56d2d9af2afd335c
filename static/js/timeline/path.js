/**
 * The chain of spans that made a step as long as it was: from its last work back to its first, each the one that the
 * next had to wait for (dependencies.js). Shortening anything that is not on it would not shorten the step.
 */

import { LANE } from "../core/kinds.js";
import { previousDependency } from "./dependencies.js";

const MOST_LINKS = 4000;

const keyOf = (span) => `${span.rank},${span.lane},${span.startNs}`;

/** The span of the step that ends last, on any rank; null if the page holds none. */
function lastOf(trace, step) {
  const window = trace.steps.byStep.get(step);
  if (!window || !Number.isFinite(window.endNs) || !trace.holds(window.startNs, window.endNs)) return null;
  let last = null;
  for (const lanes of trace.ranks) {
    const lane = lanes[LANE.COMPUTE];
    for (let place = lane.firstEndingAfter(window.endNs - 1); place < lane.end; place = lane.next(place)) {
      const span = lane.spanAt(place);
      if (span.step > step) break;
      if (span.step === step && (!last || span.endNs > last.endNs)) last = span;
    }
  }
  return last;
}

/**
 * `{step, startNs, endNs, links, keys, isWhole}`, the links in the order of time, each `{span, ownNs, gapNs}`: what it added to
 * the chain after the one before it had ended, and what passed between the two without either. All `ownNs` and `gapNs`
 * add up to `endNs − startNs`. Null where there is nothing to follow.
 */
export function criticalPath(trace, step) {
  let span = lastOf(trace, step);
  if (!span) return null;
  const { endNs } = span;
  const links = [];
  const keys = new Set();
  while (span && links.length < MOST_LINKS) {
    const before = previousDependency(trace, span);
    const isLink = before && before.step === step && before.startNs <= span.endNs && !keys.has(keyOf(before));
    const sinceNs = isLink ? Math.min(before.endNs, span.endNs) : span.startNs;
    keys.add(keyOf(span));
    links.push({ span, ownNs: span.endNs - Math.max(span.startNs, sinceNs), gapNs: Math.max(0, span.startNs - sinceNs) });
    if (!isLink) break;
    span = before;
  }
  links.reverse();
  return { step, startNs: links[0].span.startNs, endNs, links, keys, isWhole: links.length < MOST_LINKS };
}

/** The link that a span is, or null. */
export function linkOf(path, span) {
  return path?.keys.has(keyOf(span)) ? path.links.find((link) => keyOf(link.span) === keyOf(span)) : null;
}
