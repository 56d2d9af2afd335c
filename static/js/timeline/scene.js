/**
 * What one frame shows, computed once and handed to everything that draws: the columns in sight,
 * the ranks in sight, and where times and lanes lie. Drawing uses the left edge rounded down to a
 * whole column, so that labels and hatching move with the pixels under them.
 */
export class Scene {
  constructor({ trace, view, layout, colours, widthPx, heightPx, leftPx, scrollPx, pixelRatio }) {
    Object.assign(this, { trace, view, layout, colours, widthPx, heightPx, leftPx, scrollPx, pixelRatio });
    this.nsPerPx = view.nsPerPx;
    this.nsPerColumn = view.nsPerPx / pixelRatio;
    this.firstColumn = Math.floor(view.fromNs / this.nsPerColumn);
    this.fromNs = this.firstColumn * this.nsPerColumn;
    this.toNs = this.fromNs + (widthPx - leftPx) * view.nsPerPx;
    [this.firstRank, this.lastRank] = layout.visibleRanks(scrollPx, heightPx);
  }

  x(timeNs) {
    return this.leftPx + (timeNs - this.fromNs) / this.nsPerPx;
  }

  /** The top of a rank on the canvas. */
  y(rank) {
    return this.layout.topOf(rank) - this.scrollPx;
  }

  /** An x rounded to a whole device pixel, as the columns are. */
  snapped(x) {
    return Math.round(x * this.pixelRatio) / this.pixelRatio;
  }
}
