/**
 * The hatching of idle time. It belongs to the run's columns, so a pan does not make it crawl. A pattern's fill would cost
 * a full redraw more than all spans do, so a sheet of it is drawn once and pieces of that are copied.
 */

const TILE_PX = 8;

export class Hatch {
  #key = "";

  constructor() {
    this.canvas = document.createElement("canvas");
  }

  /** A sheet for so many device pixels, on the ground of a compute lane. */
  prepare(colours, pixelRatio, columns, height) {
    const key = [colours.version, pixelRatio, columns, height].join();
    if (key === this.#key) return;
    this.#key = key;
    this.tile = Math.round(TILE_PX * pixelRatio);
    this.canvas.width = columns + this.tile;
    this.canvas.height = height;
    const context = this.canvas.getContext("2d", { alpha: false });
    for (const fill of [colours.lane, context.createPattern(tile(colours, this.tile, pixelRatio), "repeat")]) {
      context.fillStyle = fill;
      context.fillRect(0, 0, this.canvas.width, height);
    }
  }

  /** Fills from `left` to `right` of a part of the scene, over its whole height. */
  fill(context, part, left, right) {
    const { pixelRatio } = part;
    const column = part.firstColumn + Math.round((left - part.leftPx) * pixelRatio);
    const from = ((column % this.tile) + this.tile) % this.tile;
    const { height } = this.canvas;
    context.drawImage(this.canvas, from, 0, (right - left) * pixelRatio, height, left, 0, right - left, height / pixelRatio);
  }
}

function tile(colours, size, pixelRatio) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  context.fillStyle = colours.hatchGround;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = colours.hatch;
  context.lineWidth = pixelRatio;
  context.beginPath();
  for (const offset of [-size, 0, size]) {
    context.moveTo(offset, size);
    context.lineTo(offset + size, 0);
  }
  context.stroke();
  return canvas;
}
