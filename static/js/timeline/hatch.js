/** The hatching of idle time. It moves with the time under it, so a pan does not make it crawl. */

const TILE_PX = 8;

export class Hatch {
  #pattern = null;
  #key = "";

  /** A fill for `context`, whose scale is in CSS pixels. */
  fill(context, colours, pixelRatio, offsetPx) {
    const key = `${colours.version}|${pixelRatio}`;
    if (key !== this.#key) {
      this.#pattern = context.createPattern(tile(colours, pixelRatio), "repeat");
      this.#key = key;
    }
    const shift = ((offsetPx % TILE_PX) + TILE_PX) % TILE_PX;
    this.#pattern.setTransform(new DOMMatrix().translate(-shift, 0).scale(1 / pixelRatio));
    return this.#pattern;
  }
}

function tile(colours, pixelRatio) {
  const size = Math.round(TILE_PX * pixelRatio);
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
