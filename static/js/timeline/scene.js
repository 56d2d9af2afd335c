/**
 * What one frame shows, computed once and handed to everything that draws: the columns in sight, the slots in
 * sight, and where times and lanes lie. Drawing uses the left edge rounded down to a whole column, so that labels
 * and hatching move with the pixels under them.
 */
export class Scene {
  constructor({ trace, view, layout, colours, widthPx, heightPx, leftPx, scrollPx, pixelRatio, hasChunks = false }) {
    Object.assign(this, { trace, view, layout, colours, widthPx, heightPx, leftPx, scrollPx, pixelRatio, hasChunks });
    this.nsPerPx = view.nsPerPx;
    this.nsPerColumn = view.nsPerPx / pixelRatio;
    this.columns = Math.round((widthPx - leftPx) * pixelRatio);
    this.firstColumn = Math.floor(view.fromNs / this.nsPerColumn);
    this.fromNs = this.firstColumn * this.nsPerColumn;
    this.toNs = this.fromNs + (widthPx - leftPx) * view.nsPerPx;
    [this.firstSlot, this.lastSlot] = layout.visibleSlots(scrollPx, heightPx);
    this.slots = layout.slots.slice(this.firstSlot, this.lastSlot);
  }

  /** The same for columns [from, to) alone, drawn from `leftPx` on. */
  part(from, to, leftPx) {
    const part = Object.assign(Object.create(Scene.prototype), this); // a scene as another's prototype would be slow
    part.firstColumn = from;
    part.columns = to - from;
    part.leftPx = leftPx;
    part.widthPx = leftPx + part.columns / this.pixelRatio;
    part.fromNs = from * this.nsPerColumn;
    part.toNs = to * this.nsPerColumn;
    return part;
  }

  x(timeNs) {
    return this.leftPx + (timeNs - this.fromNs) / this.nsPerPx;
  }

  /** The top of a rank on the canvas. */
  y(rank) {
    return this.layout.topOf(rank) - this.scrollPx;
  }

  /** The bottom of the lowest slot in sight. */
  get bottomPx() {
    const last = this.slots[this.slots.length - 1];
    return last ? Math.min(this.heightPx, this.y(last.rank) + last.heightPx) : 0;
  }

  /** An x rounded to a whole device pixel, as the columns are. */
  snapped(x) {
    return Math.round(x * this.pixelRatio) / this.pixelRatio;
  }
}
