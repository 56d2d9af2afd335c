/**
 * Which part of the run is in sight: time at the left edge and nanoseconds per pixel. Both are kept,
 * rather than two ends, so that a pan leaves the scale exactly what it was.
 */

/** The range in sight is never shorter than this. */
const SHORTEST_NS = 100;

/**
 * A float64 near t has steps of t × 2^-52. A pixel keeps 64 of them, so that columns and edges stay
 * where they are; ten minutes into a run that allows a hundredth of a nanosecond a pixel.
 */
const STEPS_A_PIXEL = 2 ** -46;

/** One can zoom out to this many times the length of the run, so that its ends are seen. */
const FURTHEST = 1.5;
const SHORTEST_RUN_NS = 1e6;

export class View {
  constructor(widthPx = 1000) {
    this.widthPx = widthPx;
    this.fromNs = 0;
    this.nsPerPx = 1e9 / widthPx;
    this.beginNs = 0;
    this.endNs = 1e9;
  }

  get toNs() {
    return this.fromNs + this.spanNs;
  }

  get spanNs() {
    return this.nsPerPx * this.widthPx;
  }

  /** The extent of what there is to see. */
  setExtent(beginNs, endNs) {
    this.beginNs = beginNs;
    this.endNs = Math.max(endNs, beginNs + SHORTEST_RUN_NS);
  }

  /** Keeps the range in sight when the width changes. */
  resize(widthPx) {
    if (widthPx === this.widthPx || widthPx <= 0) return;
    this.nsPerPx *= this.widthPx / widthPx;
    this.widthPx = widthPx;
  }

  setRange(fromNs, toNs) {
    this.nsPerPx = this.#allowedScale(Math.abs(toNs - fromNs) / this.widthPx, (fromNs + toNs) / 2);
    const middle = (fromNs + toNs) / 2;
    this.fromNs = this.#allowedFrom(middle - this.spanNs / 2);
  }

  panPx(px) {
    this.fromNs = this.#allowedFrom(this.fromNs + px * this.nsPerPx);
  }

  /** Zooms so that the time under `x` stays under it; a factor below 1 shows less. */
  zoomAt(x, factor) {
    const anchor = this.timeAt(x);
    this.nsPerPx = this.#allowedScale(this.nsPerPx * factor, anchor);
    this.fromNs = this.#allowedFrom(anchor - x * this.nsPerPx);
  }

  fit() {
    const margin = (this.endNs - this.beginNs) * 0.01;
    this.setRange(this.beginNs - margin, this.endNs + margin);
  }

  timeAt(x) {
    return this.fromNs + x * this.nsPerPx;
  }

  pxAt(timeNs) {
    return (timeNs - this.fromNs) / this.nsPerPx;
  }

  #allowedScale(nsPerPx, nearNs) {
    const least = Math.max(SHORTEST_NS / this.widthPx, Math.abs(nearNs) * STEPS_A_PIXEL);
    const most = (Math.max(this.endNs - this.beginNs, SHORTEST_RUN_NS) * FURTHEST) / this.widthPx;
    return Math.min(Math.max(nsPerPx, least), Math.max(most, least));
  }

  /** Half of the view at least keeps showing the run. */
  #allowedFrom(fromNs) {
    const half = this.spanNs / 2;
    return Math.min(Math.max(fromNs, this.beginNs - half), this.endNs - half);
  }
}
