/**
 * A stretch of the run in cells, as the server's zoom levels tell it: for each lane and cell the kind that took most of
 * it, that kind's share and all kinds' share in 255ths, at least 1 wherever anything was done.
 */

import { KINDS, LANES } from "../core/kinds.js";
import { opacityOf } from "./raster.js";

const WHOLE = 255;
const OPACITY = Uint32Array.from({ length: WHOLE + 1 }, (_, share) => (share ? opacityOf(share / WHOLE) << 24 : 0) >>> 0);

/** The column that is being gathered: busy time by kind; all zero between columns. */
const busyNs = new Float64Array(KINDS);

export class Tile {
  /** A decoded window of cells (core/window.js). */
  constructor({ fromNs, cellNs, count, cells: { lanes, kind, ofKind, coverage } }) {
    Object.assign(this, { fromNs, cellNs, count, toNs: fromNs + cellNs * count, kind, ofKind, coverage });
    this.rowOf = new Int32Array((lanes.at(-1) ?? -1) + 1).fill(-1);
    lanes.forEach((lane, row) => (this.rowOf[lane] = row));
    this.bytes = kind.length + ofKind.length + coverage.length + 4 * this.rowOf.length;
  }

  /** The kinds that it shows in any lane. */
  get kinds() {
    return new Set(this.kind);
  }

  get ranks() {
    return Math.ceil(this.rowOf.length / LANES);
  }

  /** Where the lane's cells begin; -1 where nothing was done in it. */
  #rowAt(lane) {
    const row = lane < this.rowOf.length ? this.rowOf[lane] : -1;
    return row < 0 ? -1 : row * this.count;
  }

  /**
   * Columns [lowest, highest) of a lane into `target`, where `rowAt` holds `firstColumn`; a column keeps what it has
   * where that is stronger. Cells no narrower than a column are shown by every column whose middle they hold, narrower
   * ones are added up: whatever was done is seen.
   */
  draw(lane, target, rowAt, firstColumn, lowest, highest, nsPerColumn, rgb) {
    const at = this.#rowAt(lane);
    if (at < 0) return;
    if (this.cellNs >= nsPerColumn) this.#drawWide(at, target, rowAt - firstColumn, lowest, highest, nsPerColumn, rgb);
    else this.#drawNarrow(at, target, rowAt - firstColumn, lowest, highest, nsPerColumn, rgb);
  }

  /** Hot path: a view of hundreds of lanes is drawn by it. */
  #drawWide(at, target, zero, lowest, highest, nsPerColumn, rgb) {
    const { fromNs, cellNs, count, kind, coverage } = this;
    const cellsPerColumn = nsPerColumn / cellNs;
    const offset = (0.5 * nsPerColumn - fromNs) / cellNs;
    const first = Math.max(lowest, Math.ceil(-offset / cellsPerColumn));
    for (let column = first; column < highest; column++) {
      const cell = Math.floor(column * cellsPerColumn + offset);
      if (cell >= count) return;
      const share = coverage[at + cell];
      if (share !== 0 && OPACITY[share] > (target[zero + column] & 0xff000000) >>> 0) target[zero + column] = (OPACITY[share] | rgb[kind[at + cell]]) >>> 0;
    }
  }

  #drawNarrow(at, target, zero, lowest, highest, nsPerColumn, rgb) {
    const { fromNs, cellNs, count, kind, ofKind, coverage } = this;
    for (let column = lowest; column < highest; column++) {
      const from = (column * nsPerColumn - fromNs) / cellNs;
      const to = from + nsPerColumn / cellNs;
      const end = Math.min(count, Math.ceil(to));
      let total = 0;
      let best = 0;
      for (let cell = Math.max(0, Math.floor(from)); cell < end; cell++) {
        const share = coverage[at + cell];
        if (share === 0) continue;
        const inside = Math.min(to, cell + 1) - Math.max(from, cell);
        total += share * inside;
        busyNs[kind[at + cell]] += ofKind[at + cell] * inside;
        if (busyNs[kind[at + cell]] >= busyNs[best]) best = kind[at + cell];
      }
      if (total === 0) continue;
      busyNs.fill(0);
      const opacity = OPACITY[Math.max(1, Math.min(WHOLE, Math.floor((total * cellNs) / nsPerColumn)))];
      if (opacity > (target[zero + column] & 0xff000000) >>> 0) target[zero + column] = (opacity | rgb[best]) >>> 0;
    }
  }

  /** Adds to `totalNs` what a lane did in a range, all of a cell's under the kind that took most of it. */
  addTotals(lane, fromNs, toNs, totalNs) {
    const at = this.#rowAt(lane);
    if (at < 0) return;
    const from = (fromNs - this.fromNs) / this.cellNs;
    const to = (toNs - this.fromNs) / this.cellNs;
    const end = Math.min(this.count, Math.ceil(to));
    for (let cell = Math.max(0, Math.floor(from)); cell < end; cell++) {
      const share = this.coverage[at + cell];
      if (share) totalNs[this.kind[at + cell]] += (share / WHOLE) * this.cellNs * (Math.min(to, cell + 1) - Math.max(from, cell));
    }
  }
}
