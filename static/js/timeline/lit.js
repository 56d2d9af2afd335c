/** Where on a lane matches of a search lie, coarsely: stretches of time, in the order in which they end. */

export class Lit {
  constructor() {
    this.lanes = new Map(); // by the lane's number: {from, to}
  }

  /** Stretches of a lane come in order, but for a few that overlap: these become one. */
  add(lane, fromNs, toNs) {
    let known = this.lanes.get(lane);
    if (!known) this.lanes.set(lane, (known = { from: [], to: [] }));
    const last = known.to.length - 1;
    if (last < 0 || fromNs > known.to[last]) {
      known.from.push(fromNs);
      known.to.push(toNs);
    } else {
      known.from[last] = Math.min(known.from[last], fromNs);
      known.to[last] = Math.max(known.to[last], toNs);
    }
  }

  /** Calls `draw(fromNs, toNs)` for what of a range is lit. */
  each(lane, fromNs, toNs, draw) {
    const { from, to } = this.lanes.get(lane) ?? { from: [], to: [] };
    let low = 0;
    let high = to.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (to[middle] <= fromNs) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < from.length && from[at] < toNs; at++) draw(Math.max(from[at], fromNs), Math.min(to[at], toNs));
  }
}
