/** Short texts drawn once and stamped from then on: a stamp costs a tenth of drawing the text. */

const MOST_SPRITES = 4000;
const FAMILY = "Inter, ui-sans-serif, system-ui, sans-serif";
const FONT = `600 12px ${FAMILY}`;
export const SMALL_FONT = `600 9.5px ${FAMILY}`;
export const PLAIN_FONT = `12px ${FAMILY}`;
export const TICK_FONT = `11px ${FAMILY}`;

export class Sprites {
  #made = new Map();
  #key = "";

  constructor(font = FONT) {
    this.font = font;
    this.measure = document.createElement("canvas").getContext("2d");
    this.measure.font = font;
  }

  /** Everything is drawn anew when the theme or the screen's density changes. */
  prepare(version, pixelRatio) {
    const key = `${version}|${pixelRatio}`;
    if (key === this.#key && this.#made.size < MOST_SPRITES) return;
    this.#key = key;
    this.#made.clear();
    this.pixelRatio = pixelRatio;
  }

  get(text, colour) {
    const key = text + colour;
    let sprite = this.#made.get(key);
    if (!sprite) {
      sprite = this.#draw(text, colour);
      this.#made.set(key, sprite);
    }
    return sprite;
  }

  /** Stamps a text whose left edge is at `x` and whose middle is at `y`; returns its width. */
  stamp(context, text, colour, x, y) {
    const { canvas, widthPx, heightPx } = this.get(text, colour);
    context.drawImage(canvas, Math.round(x * this.pixelRatio) / this.pixelRatio, Math.round((y - heightPx / 2) * this.pixelRatio) / this.pixelRatio, widthPx, heightPx);
    return widthPx;
  }

  #draw(text, colour) {
    const widthPx = Math.ceil(this.measure.measureText(text).width) + 1;
    const heightPx = 16;
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(widthPx * this.pixelRatio);
    canvas.height = heightPx * this.pixelRatio;
    const context = canvas.getContext("2d");
    context.scale(this.pixelRatio, this.pixelRatio);
    context.font = this.font;
    context.textBaseline = "middle";
    context.fillStyle = colour;
    context.fillText(text, 0.5, heightPx / 2 + 0.5);
    return { canvas, widthPx, heightPx };
  }
}
