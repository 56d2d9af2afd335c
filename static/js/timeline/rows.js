/**
 * One row of pixels for every drawn lane, kept between frames. A pan shifts a row and draws the
 * columns that came into sight; new spans redraw a row from the earliest of them on; a new scale
 * redraws all of it. Rows for which a frame's budget does not suffice stay as they are: they are
 * shown stretched to the new view, and made good in the following frames.
 */

import { rasterLane } from "./raster.js";

/** At a seam one column more is drawn, for spans that end in it. */
const SEAM_COLUMNS = 1;

export class Rows {
  constructor(drawing) {
    this.drawing = drawing;
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d");
    this.columns = 0;
    this.count = 0;
    this.turn = 0;
  }

  resize(columns, count) {
    if (columns === this.columns && count === this.count) return;
    this.columns = columns;
    this.count = count;
    this.canvas.width = Math.max(1, columns);
    this.canvas.height = Math.max(1, count);
    this.image = this.context.createImageData(this.canvas.width, this.canvas.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.firstColumn = new Float64Array(count);
    this.nsPerColumn = new Float64Array(count);
  }

  forget() {
    this.nsPerColumn?.fill(0);
  }

  /**
   * Brings rows [from, to) up to date; `laneOf(row)` gives each one's lane, or null for a row that shows none. What
   * could be done within `budgetMs`: `{isDone, changed}`, where `changed` is the earliest column that differs from what
   * the row held of it.
   */
  update(from, to, laneOf, firstColumn, nsPerColumn, colours, budgetMs) {
    const rows = to - from;
    if (rows <= 0 || !this.columns) return { isDone: true, changed: Infinity };
    const began = performance.now();
    let low = to;
    let high = from;
    let step = 0;
    this.changed = Infinity;
    for (; step < rows; step++) {
      if ((step & 7) === 7 && performance.now() - began > budgetMs) break;
      const row = from + ((this.turn + step) % rows);
      const lane = laneOf(row);
      if (!lane || !this.#update(row, lane, firstColumn, nsPerColumn, colours)) continue;
      low = Math.min(low, row);
      high = Math.max(high, row + 1);
    }
    this.turn = (this.turn + step) % rows;
    if (high > low) this.context.putImageData(this.image, 0, 0, 0, low, this.columns, high - low);
    return { isDone: step === rows, changed: this.changed };
  }

  /** Whether the row's pixels changed. */
  #update(row, lane, firstColumn, nsPerColumn, colours) {
    const columns = this.columns;
    const rowAt = row * columns;
    const isBefore = lane.changedToNs[this.drawing] <= firstColumn * nsPerColumn; // what changed has left to the left
    const changedNs = isBefore ? Infinity : lane.changedFromNs[this.drawing];
    const shift = firstColumn - this.firstColumn[row];
    let lowest = 0;
    let highest = columns;
    if (this.nsPerColumn[row] === nsPerColumn && Math.abs(shift) < columns) {
      const changed = Math.floor(changedNs / nsPerColumn) - firstColumn - SEAM_COLUMNS;
      if (shift === 0 && changed >= columns) {
        lane.isDrawn(this.drawing);
        return false;
      }
      this.#shift(rowAt, shift);
      if (shift > 0) lowest = columns - shift - SEAM_COLUMNS;
      else if (shift < 0) highest = -shift + SEAM_COLUMNS;
      else lowest = columns;
      if (changed < columns) {
        lowest = shift < 0 ? 0 : Math.min(lowest, changed);
        highest = columns;
        this.changed = Math.min(this.changed, firstColumn + changed);
      }
      lowest = Math.max(0, lowest);
      highest = Math.min(columns, highest);
    } else this.changed = -Infinity;
    this.pixels.fill(0, rowAt + lowest, rowAt + highest);
    const given = [this.pixels, rowAt, firstColumn, firstColumn + lowest, firstColumn + highest, nsPerColumn, colours.rgb, colours.edge];
    if (lane.cover === null || lane.cover.isWhole) rasterLane(lane, ...given);
    else lane.cover.draw(lane, ...given);
    this.firstColumn[row] = firstColumn;
    this.nsPerColumn[row] = nsPerColumn;
    lane.isDrawn(this.drawing);
    return true;
  }

  #shift(rowAt, shift) {
    const { pixels, columns } = this;
    if (shift > 0) pixels.copyWithin(rowAt, rowAt + shift, rowAt + columns);
    else if (shift < 0) pixels.copyWithin(rowAt - shift, rowAt, rowAt + columns + shift);
  }

  /** Shows a row's part of columns [from, from + columns) in device pixels, stretched if it was made for another view. */
  show(context, row, x, y, height, from, columns, nsPerColumn) {
    const scale = this.nsPerColumn[row];
    if (!scale) return;
    const stretch = nsPerColumn / scale;
    context.drawImage(this.canvas, from * stretch - this.firstColumn[row], row, columns * stretch, 1, x, y, columns, height);
  }
}
