/** The chosen span, why it waited, and what it cost, below the timeline; without one, the step's longest chain and ideal. */

import { element, setText } from "../core/dom.js";
import { bytes, durationNs, momentNs, percent } from "../core/format.js";
import { IS_COLLECTIVE, KIND, KIND_VARIABLE, KIND_WORD, labelOf } from "../core/kinds.js";
import { lastToArrive, members, nextDependency, partner, previousDependency, waitedFor } from "../timeline/dependencies.js";
import { criticalPath, linkOf } from "../timeline/path.js";
import { rateOf, titleOf, whereOf } from "../timeline/words.js";

/** A median is taken over this many spans of the kind on each rank, around the chosen one. */
const MEDIAN_OF = 256;
/** Longer than this times the median is worth a warning. */
const SLOW = 1.25;
const MOST_ARRIVALS = 64;

const row = (term, ...value) => element("div", {}, element("dt", {}, term), element("dd", {}, ...value));
const swatch = (kind) => element("i", { class: "tl-swatch", style: `background:var(${KIND_VARIABLE[kind]})` });

/** The median duration of a span's kind around it; NaN of fewer than three. */
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
  constructor({ details, why, arrivals, hint, whyTitle }, timeline) {
    Object.assign(this, { details, why, arrivals, hint, whyTitle, timeline });
    for (const event of ["select", "path"]) timeline.addEventListener(event, () => this.show());
  }

  show() {
    const { selected, path, trace } = this.timeline;
    this.hint.hidden = selected !== null;
    const showsPath = !selected && path;
    setText(this.whyTitle, showsPath ? `Longest chain of step ${path.step}` : "Why did it wait");
    this.details.replaceChildren(...(selected ? this.#facts(trace, selected) : []));
    this.why.replaceChildren(...(selected ? this.#reasons(trace, selected) : showsPath ? this.#chain(path) : []));
    this.arrivals.replaceChildren(...(selected && IS_COLLECTIVE[selected.kind] ? this.#arrivals(trace, selected) : []));
  }

  #facts(trace, span) {
    const median = medianNs(trace, span);
    const ratio = span.durationNs / median;
    const rows = [
      row("Kind", swatch(span.kind), titleOf(span)),
      row("Where", whereOf(span)),
      row("Start", momentNs(span.startNs)),
      row("Duration", durationNs(span.durationNs)),
    ];
    if (Number.isFinite(median) && span.kind !== KIND.WAIT) { // how long a rank waits is its place in the schedule
      const times = `${ratio.toFixed(2)} ×`;
      rows.push(row("Median of its kind", durationNs(median), " · ", ratio > SLOW ? element("b", { class: "tl-slow" }, times) : times));
    }
    rows.push(...this.#cost(trace, span, median));
    if (span.bytes > 0) rows.push(row("Size", `${bytes(span.bytes)}${rateOf(span) ? ` at ${rateOf(span)}` : ""}`));
    if (span.peer >= 0) rows.push(row("Peer", `rank ${span.peer}`));
    const name = trace.strings[span.name];
    const group = trace.strings[span.group];
    if (name && name !== labelOf(span.kind, span.microBatch)) rows.push(row("Name", name));
    if (group) rows.push(row("Group", span.sequence >= 0 ? `${group}, number ${span.sequence}` : group));
    return rows;
  }

  /**
   * What the step would be shorter by, had the span lasted as long as the median: nothing, unless it is on the longest chain,
   * and no more than it adds to that.
   */
  #cost(trace, span, median) {
    if (span.step < 0 || span.kind === KIND.WAIT) return [];
    const path = this.timeline.path?.step === span.step ? this.timeline.path : criticalPath(trace, span.step);
    if (!path?.isWhole) return [];
    const link = linkOf(path, span);
    const costNs = link && Number.isFinite(median) ? Math.max(0, Math.min(link.ownNs, span.durationNs - median)) : 0;
    return [
      row("On the step's longest chain", link ? "yes" : "no"),
      row("Cost to the step", costNs > 0 ? `+ ${durationNs(costNs)}` : "none beyond the median"),
    ];
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
      rows.push(row("Had to wait for", this.#link(before)));
      rows.push(row("Ready → start", durationNs(Math.max(0, span.startNs - before.endNs))));
    }
    if (after) rows.push(row("Made wait", this.#link(after)));
    if (!rows.length) rows.push(row("Nothing", "that this page holds"));
    return rows;
  }

  #collective(trace, span) {
    const all = members(trace, span);
    const last = lastToArrive(trace, span) ?? span;
    const shortest = Math.min(...all.map((member) => member.durationNs));
    const apart = Math.max(...all.map((member) => member.endNs)) - Math.min(...all.map((member) => member.endNs));
    return [
      row("Last to arrive", this.#link(last, `rank ${last.rank}`)),
      row("Waited for it", durationNs(Math.max(0, span.durationNs - shortest))),
      row("Transfer itself", durationNs(shortest)),
      row("Ends are apart by", durationNs(apart)),
    ];
  }

  /** The collective on all its ranks, in the order of arrival; a bar shows how much later each came than the first. */
  #arrivals(trace, span) {
    const all = members(trace, span).sort((one, other) => one.startNs - other.startNs);
    const firstNs = all[0].startNs;
    const spreadNs = Math.max(1, all.at(-1).startNs - firstNs);
    const items = all.slice(0, MOST_ARRIVALS).map((member) => element("li", {},
      this.#link(member, `rank ${member.rank}`),
      element("span", { class: "tl-arrival-bar" }, element("i", { style: `width:${((member.startNs - firstNs) / spreadNs) * 100}%` })),
      element("span", { class: "muted" }, member.startNs === firstNs ? "first" : `+ ${durationNs(member.startNs - firstNs)}`)));
    const rest = all.length - items.length;
    return [element("h4", {}, "Order of arrival"), element("ol", { class: "tl-arrivals" }, ...items), rest ? element("p", { class: "muted" }, `and ${rest} more`) : null].filter(Boolean);
  }

  /** What the chain is made of: by kind, and what passed between its spans. */
  #chain({ links, startNs, endNs, isWhole }) {
    const whole = endNs - startNs;
    const byKind = new Map();
    for (const { span, ownNs } of links) byKind.set(span.kind, (byKind.get(span.kind) ?? 0) + ownNs);
    const gapNs = links.reduce((sum, link) => sum + link.gapNs, 0);
    const share = (ns) => `${durationNs(ns)} · ${percent(ns / whole)}`;
    return [
      row("Length", durationNs(whole)),
      ...[...byKind].sort((one, other) => other[1] - one[1]).map(([kind, ns]) => row(element("span", {}, swatch(kind), KIND_WORD[kind]), share(ns))),
      row("Between spans: transfers, hand-over", share(gapNs)),
      row("Spans on it", `${links.length}${isWhole ? "" : ", and it goes on"}`),
      row("Begins", this.#link(links[0].span)),
    ];
  }

  #link(span, words) {
    const text = words ?? `${labelOf(span.kind, span.microBatch) || titleOf(span)} of rank ${span.rank}`;
    return element("button", { type: "button", class: "link", onclick: () => this.timeline.select(span, { reveal: true }) }, text);
  }
}
