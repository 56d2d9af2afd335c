/** The place in a run that an address, a link or a teammate's view asks for, shown as soon as it is here. */

import { addressOf, readAddress, writeAddress } from "../core/address.js";
import { throttled } from "../core/dom.js";

const KEEP_MS = 300;

export class Place {
  /** `hash`: what the page opens at. */
  constructor(timeline, hash) {
    this.timeline = timeline;
    this.wanted = readAddress(hash);
    if (this.wanted.range) timeline.follow(false);
    const keep = throttled(KEEP_MS, () => this.#keep());
    for (const name of ["view", "select", "follow"]) timeline.addEventListener(name, keep);
  }

  get isOnTheWay() {
    return Boolean(this.wanted.range || this.wanted.span);
  }

  /** What an address would keep of what is seen now. */
  get hash() {
    const { view, selected, isFollowing, hasChosenScale } = this.timeline;
    return addressOf({ range: isFollowing || !hasChosenScale ? null : [view.fromNs, view.toNs], span: selected });
  }

  /** Shows what `hash` asks for: the whole of it, also that nothing is chosen. */
  go(hash, isAllHere) {
    this.wanted = readAddress(hash);
    if (!this.wanted.span) this.timeline.select(null);
    if (!this.wanted.range) this.timeline.follow(true);
    this.show(isAllHere);
  }

  /** Call it when more of the run is here. */
  show(isAllHere) {
    const { timeline, wanted } = this;
    if (wanted.range && (isAllHere || timeline.trace.lastEndNs >= wanted.range[1])) {
      timeline.setRange(...wanted.range);
      wanted.range = null;
    }
    const lane = wanted.span && timeline.trace.lane(wanted.span.rank, wanted.span.lane);
    if (lane && lane.lastEndNs > wanted.span.startNs) {
      const place = lane.firstEndingAfter(wanted.span.startNs);
      if (place < lane.end && lane.startOf(place) === wanted.span.startNs) timeline.select(lane.spanAt(place));
      wanted.span = null;
    }
  }

  #keep() {
    if (!this.isOnTheWay) writeAddress(this.hash);
  }
}
