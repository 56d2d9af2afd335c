/** The view that an address, a link or a teammate asks for: arrangement, search, range and span, shown as soon as it is here. */

import { addressOf, readAddress, writeAddress } from "../core/address.js";
import { throttled } from "../core/dom.js";

const KEEP_MS = 300;
/** Longer views are told without what was folded; the server takes no longer ones. */
const LONGEST = 2000;

export class Place {
  /** `tools` set arrangement and search; `hash`: what the page opens at. */
  constructor(timeline, tools, hash) {
    Object.assign(this, { timeline, tools });
    this.wanted = readAddress(hash);
    if (this.wanted.range) timeline.follow(false);
    tools.set(this.wanted);
    const keep = throttled(KEEP_MS, () => this.#keep());
    for (const name of ["view", "select", "follow", "arrange", "search"]) timeline.addEventListener(name, keep);
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

  /** Shows the whole of what `hash` asks for, also that nothing is chosen or searched for. */
  go(hash, isAllHere) {
    const asked = readAddress(hash);
    this.tools.set(asked);
    if (!asked.range) this.timeline.follow(true);
    this.lookAt(hash, isAllHere);
  }

  /** Shows the range and the span that `hash` asks for; lanes stay arranged as they are. */
  lookAt(hash, isAllHere) {
    this.wanted = readAddress(hash);
    if (!this.wanted.span) this.timeline.select(null);
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
