/**
 * Which stretches of the run the page holds span by span: every span that touches one of them is in memory. What lies
 * between them is known by cells alone (tile.js). A stretch is [from, to) in ns on the run's clock; a span without
 * duration is taken to last 1 ns, as the server does.
 */

const endOf = (startNs, endNs) => Math.max(endNs, startNs + 1);

export class Held {
  constructor() {
    this.stretches = [[-Infinity, Infinity]];
    this.#merge();
  }

  /** Everything there is: no cells are needed. */
  get isWhole() {
    return this.merged.length === 1 && this.merged[0][0] === -Infinity && this.merged[0][1] === Infinity;
  }

  set(stretches) {
    this.stretches = stretches;
    this.#merge();
  }

  add(fromNs, toNs) {
    this.set([...this.stretches, [fromNs, toNs]]);
  }

  /** One stretch that was added; others may hold parts of it still. */
  remove(fromNs, toNs) {
    const at = this.stretches.findIndex(([from, to]) => from === fromNs && to === toNs);
    this.set(this.stretches.filter((_, each) => each !== at));
  }

  #merge() {
    this.merged = [];
    for (const [from, to] of [...this.stretches].sort((one, other) => one[0] - other[0])) {
      const last = this.merged.at(-1);
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else this.merged.push([from, to]);
    }
  }

  /** The first merged stretch that ends after a time. */
  #after(timeNs) {
    let low = 0;
    let high = this.merged.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.merged[middle][1] <= timeNs) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Whether a span is in memory. */
  touches(startNs, endNs) {
    const stretch = this.merged[this.#after(startNs)];
    return stretch !== undefined && stretch[0] < endOf(startNs, endNs);
  }

  /** Whether all of a range is. */
  holds(fromNs, toNs) {
    const stretch = this.merged[this.#after(fromNs)];
    return stretch !== undefined && stretch[0] <= fromNs && stretch[1] >= toNs;
  }

  /** What of a range is not, as [from, to] in order. */
  missing(fromNs, toNs) {
    const found = [];
    let at = fromNs;
    for (let each = this.#after(fromNs); each < this.merged.length && this.merged[each][0] < toNs; each++) {
      if (this.merged[each][0] > at) found.push([at, this.merged[each][0]]);
      at = Math.max(at, this.merged[each][1]);
    }
    if (at < toNs) found.push([at, toNs]);
    return found;
  }
}
