/** The chosen span, and what it depended on, below the timeline. */

import { element } from "../core/dom.js";
import { bytes, durationNs, momentNs } from "../core/format.js";
import { IS_COLLECTIVE, KIND, KIND_VARIABLE, labelOf } from "../core/kinds.js";
import { lastToArrive, members, nextDependency, partner, previousDependency, waitedFor } from "../timeline/dependencies.js";
import { rateOf, titleOf, whereOf } from "../timeline/words.js";

/** A median is taken over this many spans of the kind on each rank, around the chosen one. */
const MEDIAN_OF = 256;
/** Longer than this times the median is worth a warning. */
const SLOW = 1.25;

const row = (term, ...value) => element("div", {}, element("dt", {}, term), element("dd", {}, ...value));

/** The median duration of a span's kind (and stage, if it has one) around it; NaN of fewer than three. */
export function medianNs(trace, span) {
  const found = [];
  for (let rank = 0; rank < trace.ranks.length; rank++) {
    const lane = trace.lane(rank, span.lane);
    const around = lane.firstEndingAfter(span.startNs);
    for (const step of [1, -1]) {
      let place = step > 0 ? around : lane.previous(around);
      for (let looked = 0; looked < MEDIAN_OF && place >= 0 && place < lane.end; looked++) {
        if (lane.kindOf(place) === span.kind) found.push(lane.endOf(place) - lane.startOf(place));
        place = step > 0 ? lane.next(place) : lane.previous(place);
      }
    }
  }
  if (found.length < 3) return NaN;
  return found.sort((one, other) => one - other)[found.length >> 1];
}

export class Details {
  constructor({ details, why, hint }, timeline) {
    Object.assign(this, { details, why, hint, timeline });
    timeline.addEventListener("select", () => this.show());
  }

  show() {
    const { selected, trace } = this.timeline;
    this.hint.hidden = selected !== null;
    this.details.replaceChildren(...(selected ? this.#facts(trace, selected) : []));
    this.why.replaceChildren(...(selected ? this.#reasons(trace, selected) : []));
  }

  #facts(trace, span) {
    const median = medianNs(trace, span);
    const ratio = span.durationNs / median;
    const rows = [
      row("Kind", element("b", { style: `color:var(${KIND_VARIABLE[span.kind]})` }, "■ "), titleOf(span)),
      row("Where", whereOf(span)),
      row("Start", momentNs(span.startNs)),
      row("Duration", durationNs(span.durationNs)),
    ];
    if (Number.isFinite(median)) {
      const times = ` ${ratio.toFixed(2)} ×`;
      rows.push(row("Median of its kind", durationNs(median), ratio > SLOW ? element("span", { class: "error" }, times) : times));
    }
    if (span.bytes > 0) rows.push(row("Size", `${bytes(span.bytes)}${rateOf(span) ? ` at ${rateOf(span)}` : ""}`));
    if (span.peer >= 0) rows.push(row("Peer", `rank ${span.peer}`));
    const name = trace.strings[span.name];
    const group = trace.strings[span.group];
    if (name && name !== labelOf(span.kind, span.microBatch)) rows.push(row("Name", name));
    if (group) rows.push(row("Group", span.sequence >= 0 ? `${group}, number ${span.sequence}` : group));
    return rows;
  }

  #reasons(trace, span) {
    const rows = [];
    const waited = span.kind === KIND.WAIT ? waitedFor(trace, span) : null;
    if (waited) {
      rows.push(row("Waited for", waited.span ? this.#link(waited.span, waited.words) : waited.words));
      if (Number.isFinite(waited.readyNs)) rows.push(row("Data there → work begins", durationNs(Math.max(0, span.endNs - waited.readyNs))));
    }
    const other = partner(trace, span);
    if (other) rows.push(row(span.kind === KIND.SEND ? "Received by" : "Sent by", this.#link(other)));
    if (IS_COLLECTIVE[span.kind]) rows.push(...this.#collective(trace, span));
    const before = previousDependency(trace, span);
    const after = nextDependency(trace, span);
    if (before && !waited && !IS_COLLECTIVE[span.kind]) {
      rows.push(row("After", this.#link(before)));
      rows.push(row("Ready → start", durationNs(Math.max(0, span.startNs - before.endNs))));
    }
    if (after) rows.push(row("Then", this.#link(after)));
    if (!rows.length) rows.push(row("Nothing", "that this page holds"));
    return rows;
  }

  #collective(trace, span) {
    const all = members(trace, span);
    const last = lastToArrive(trace, span) ?? span;
    const shortest = Math.min(...all.map((member) => member.durationNs));
    const apart = Math.max(...all.map((member) => member.endNs)) - Math.min(...all.map((member) => member.endNs));
    return [
      row("Ranks in it here", String(all.length)),
      row("Last to arrive", this.#link(last, `rank ${last.rank}`)),
      row("Waited for it", durationNs(Math.max(0, span.durationNs - shortest))),
      row("Ends are apart by", durationNs(apart)),
    ];
  }

  #link(span, words) {
    const text = words ?? `${labelOf(span.kind, span.microBatch) || titleOf(span)} of rank ${span.rank}`;
    return element("button", { type: "button", class: "link", onclick: () => this.timeline.select(span, { reveal: true }) }, text);
  }
}
