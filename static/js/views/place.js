/** The view that an address, a link or a teammate asks for: arrangement, search, range and span, shown as soon as it is here. */

import { addressOf, readAddress, writeAddress } from "../core/address.js";
import { throttled } from "../core/dom.js";

const KEEP_MS = 300;
/** Longer views are told without what was folded; the server takes no longer ones (runs/shown.py). */
const LONGEST = 3000;
/** Events of the timeline after which an address would be another. */
export const CHANGES = ["view", "select", "follow", "arrange", "search"];

export class Place {
  /** `hash`: what the page opens at; `reader` (timeline/reader.js) reads what is not in memory, if there is a server. */
  constructor(timeline, tools, hash, reader = null) {
    Object.assign(this, { timeline, tools, reader, wanted: readAddress(hash) });
    if (this.wanted.range) timeline.follow(false);
    tools.set(this.wanted);
    const keep = throttled(KEEP_MS, () => this.#keep());
    for (const name of CHANGES) timeline.addEventListener(name, keep);
    timeline.addEventListener("read", () => this.isOnTheWay && this.show(false));
  }

  /** Goes to a span and chooses it, at the scale that is seen, once it is here. */
  seek(span) {
    this.wanted = { range: null, span, isRevealed: true };
    this.show(true);
  }

  get isOnTheWay() {
    return Boolean(this.wanted.range || this.wanted.span);
  }

  /** What an address would keep of what is seen now. */
  get hash() {
    const { view, selected, camera, search, arrangement } = this.timeline;
    const { by, folded, isSorted, isBare } = arrangement;
    const range = camera.isFollowing || !camera.hasChosenScale ? null : [view.fromNs, view.toNs];
    const seen = { range, span: selected, by, folded: [...folded], isSorted, isBare, search: search.text };
    const whole = addressOf(seen);
    return whole.length > LONGEST ? addressOf({ ...seen, folded: [] }) : whole;
  }

  /** Shows what `hash` asks for: the whole of it, also that nothing is chosen, grouped or searched. */
  go(hash, isAllHere) {
    const wanted = readAddress(hash);
    this.tools.set(wanted);
    this.visit(wanted, isAllHere);
  }

  /** Goes to a range and a span, or to the head of the run and none; lanes and search stay as they are. */
  visit({ range = null, span = null }, isAllHere) {
    this.wanted = { range, span };
    if (!span) this.timeline.select(null);
    if (!range) this.timeline.follow(true);
    this.show(isAllHere);
  }

  /** Call it when more of the run is here. */
  show(isAllHere) {
    const { timeline, wanted } = this;
    if (wanted.range && (isAllHere || timeline.trace.lastEndNs >= wanted.range[1])) {
      timeline.setRange(...wanted.range);
      wanted.range = null;
    }
    const { span } = wanted;
    if (span && timeline.trace.lastEndNs >= span.startNs && !timeline.trace.holds(span.startNs, span.startNs + 1)) {
      this.reader?.want(span.startNs);
      return;
    }
    const lane = span && timeline.trace.lane(span.rank, span.lane);
    if (lane && lane.lastEndNs >= span.startNs) {
      wanted.span = null;
      const found = lane.spanStartingAt(span.startNs);
      if (found) timeline.select(found, { reveal: wanted.isRevealed });
    }
  }

  #keep() {
    if (!this.isOnTheWay) writeAddress(this.hash);
  }
}
