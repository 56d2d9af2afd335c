/** From span to span without a pointer: along a lane, from lane to lane, along dependencies, and from match to match. */

import { LANE } from "../core/kinds.js";
import { nextDependency, previousDependency } from "./dependencies.js";
import { nearest } from "./hit.js";

export class Walk {
  constructor(timeline) {
    this.timeline = timeline;
  }

  #go(span) {
    if (span) this.timeline.select(span, { reveal: true });
  }

  /** Arrow keys: the neighbour in the lane. */
  step(direction) {
    const { selected, trace } = this.timeline;
    if (!selected) return this.#selectInMiddle();
    const lane = trace.lane(selected.rank, selected.lane);
    const place = lane.placeOf(selected);
    const next = direction > 0 ? lane.next(place) : lane.previous(place);
    if (place < 0 || next < 0 || next >= lane.end) return;
    const span = lane.spanAt(next);
    const [fromNs, toNs] = direction > 0 ? [selected.endNs, span.startNs] : [span.endNs, selected.startNs];
    if (toNs <= fromNs || trace.holds(fromNs, toNs)) this.#go(span); // else one that is not read yet lies between
  }

  /** The nearest span of the next lane that is drawn and holds one. */
  stepLane(direction) {
    const { selected, trace, layout } = this.timeline;
    if (!selected) return this.#selectInMiddle();
    const lanes = layout.slots.flatMap(({ rank, lanes: drawn }) => drawn.map(({ lane }) => trace.lane(rank, lane)));
    const middleNs = (selected.startNs + selected.endNs) / 2;
    const at = lanes.indexOf(trace.lane(selected.rank, selected.lane));
    for (let next = at + direction; next >= 0 && next < lanes.length; next += direction) {
      const place = nearest(lanes[next], middleNs, Infinity);
      if (place >= 0) return this.#go(lanes[next].spanAt(place));
    }
  }

  #selectInMiddle() {
    const { trace, view } = this.timeline;
    const [slot] = this.timeline.scene().slots;
    const lane = slot && trace.lane(slot.rank, LANE.COMPUTE);
    const place = lane?.spans ? nearest(lane, (view.fromNs + view.toNs) / 2, Infinity) : -1;
    if (place >= 0) this.#go(lane.spanAt(place));
  }

  /** [ and ]: what the selected span waited for, and what waited for it. */
  stepDependency(direction) {
    const { selected, trace } = this.timeline;
    this.#go(selected && (direction < 0 ? previousDependency(trace, selected) : nextDependency(trace, selected)));
  }

  /** N and shift N: the search's next match after the chosen span, or after the left edge of the view. */
  stepMatch(direction) {
    const { selected, search, view } = this.timeline;
    if (!search.isOn) return;
    const from = selected ?? { startNs: direction > 0 ? view.fromNs : view.toNs, rank: -1, lane: 0 };
    const turnedBack = { startNs: direction > 0 ? -Infinity : Infinity, rank: -1, lane: 0 };
    if (search.teller === search) this.#go(search.next(direction, from) ?? search.next(direction, turnedBack));
    else search.whole.walk(direction, from, turnedBack);
  }
}
