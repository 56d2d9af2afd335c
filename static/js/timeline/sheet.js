/**
 * The lanes as one picture that is kept between frames: ground, hatching and spans, without what is written on them.
 *
 * It is a ring of columns: column c of the run lies at c - zero modulo the width. A pan draws the columns that came into
 * sight over those that left it, and moves nothing; a frame copies the ring to the screen in two pieces. While every
 * frame differs in all columns, as in a zoom, nothing is worth keeping: it is drawn to the screen at once.
 */

import { LANE } from "../core/kinds.js";
import { Hatch } from "./hatch.js";
import { HEADER_PX, RULER_PX } from "./layout.js";
import { drawGrid } from "./ruler.js";
import { drawStepLines } from "./steps.js";

/** Steps narrower than this are tinted, narrower than TINY_STEP_PX all together: hatching would be a blur, and dear. */
const NARROW_STEP_PX = 26;
const TINY_STEP_PX = 10;

const stepsPx = (scene) => scene.trace.steps.typicalNs / scene.nsPerPx;

/** What the sheet shows of steps at the scene's scale: a picture is kept only as long as this stays. */
const idleStyle = (scene) => (stepsPx(scene) < TINY_STEP_PX ? "whole" : stepsPx(scene) < NARROW_STEP_PX ? "tint" : "hatch");

/** For spans and steps that end in the last column of a picture, it is drawn again with those that follow. */
const SEAM_COLUMNS = 1;

export class Sheet {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.hatch = new Hatch();
    this.key = ""; // of the picture that is kept
    this.shownKey = ""; // of the latest frame
    this.from = this.to = 0; // the columns it holds
    this.zero = 0;
  }

  resize(columns, height) {
    if (this.canvas.width === columns && this.canvas.height === height) return;
    this.canvas.width = Math.max(1, columns);
    this.canvas.height = Math.max(1, height);
    this.forget();
  }

  /** The next frame draws all of it. */
  forget() {
    this.key = this.shownKey = "";
  }

  /**
   * Shows the scene on a canvas whose transform is in CSS pixels; columns from `changed` on are drawn anew, and
   * `showRows(context, part)` draws spans. `isDone`: whether these are as the next frame will want them.
   */
  paint(context, scene, changed, isDone, showRows) {
    this.hatch.prepare(scene.colours, scene.pixelRatio, this.canvas.width, this.canvas.height);
    const key = [scene.nsPerColumn, scene.scrollPx, scene.layout.id, scene.colours.version, scene.pixelRatio, idleStyle(scene)].join();
    const from = scene.firstColumn;
    const to = from + scene.columns;
    const isAnew = key !== this.key || from >= this.to || to <= this.from || changed <= from;
    if (isAnew && (key !== this.shownKey || changed <= from || !isDone)) {
      this.key = "";
      this.#drawPart(context, scene, showRows);
    } else {
      this.#bring(scene, from, to, isAnew ? -Infinity : changed, showRows);
      this.key = key;
      this.#show(context, scene);
    }
    this.shownKey = key;
  }

  #bring(scene, from, to, changed, showRows) {
    if (changed <= from) {
      this.zero = from; // then nothing is drawn in pieces
      this.#draw(scene, from, to, showRows);
    } else {
      if (from < this.from) this.#draw(scene, from, Math.min(to, this.from + SEAM_COLUMNS), showRows);
      const again = Math.min(changed, to > this.to ? this.to - SEAM_COLUMNS : Infinity);
      if (again < to) this.#draw(scene, Math.max(from, again), to, showRows);
    }
    this.from = from;
    this.to = to;
  }

  /** Columns [from, to), which the end of the ring may cut in two. */
  #draw(scene, from, to, showRows) {
    const { canvas: { width }, context } = this;
    for (let begin = from; begin < to;) {
      const at = this.#placeOf(begin);
      const end = Math.min(to, begin + width - at);
      context.setTransform(scene.pixelRatio, 0, 0, scene.pixelRatio, 0, 0);
      this.#drawPart(context, scene.part(begin, end, at / scene.pixelRatio), showRows);
      begin = end;
    }
  }

  #placeOf(column) {
    const { width } = this.canvas;
    return (((column - this.zero) % width) + width) % width;
  }

  #drawPart(context, part, showRows) {
    context.save();
    context.beginPath();
    context.rect(part.leftPx, 0, part.widthPx - part.leftPx, part.heightPx);
    context.clip();
    this.#drawGround(context, part);
    drawGrid(context, part);
    showRows(context, part);
    drawStepLines(context, part);
    context.restore();
  }

  /** The hatching is drawn over all lanes at once, and what is not a compute lane over it: far fewer pieces. */
  #drawGround(context, part) {
    const { colours, leftPx, widthPx } = part;
    const width = widthPx - leftPx;
    context.fillStyle = colours.lane;
    context.fillRect(leftPx, 0, width, part.heightPx);
    this.#drawIdle(context, part);
    context.fillStyle = colours.card;
    let freeFrom = 0;
    for (const slot of part.slots) {
      const top = part.y(slot.rank);
      const { topPx, heightPx } = slot.lanes[0];
      context.fillRect(leftPx, freeFrom, width, top + topPx - freeFrom);
      freeFrom = top + topPx + heightPx;
    }
    context.fillRect(leftPx, freeFrom, width, part.heightPx - freeFrom);
    context.fillStyle = colours.thinLane;
    for (const slot of part.slots) {
      for (const { lane, topPx, heightPx } of slot.lanes) {
        if (lane !== LANE.COMPUTE) context.fillRect(leftPx, part.y(slot.rank) + topPx, width, heightPx);
      }
    }
    context.fillStyle = colours.line;
    for (const { topPx } of part.layout.headers) {
      const top = RULER_PX + topPx - part.scrollPx;
      if (top > RULER_PX - HEADER_PX && top < part.heightPx) context.fillRect(leftPx, top + HEADER_PX / 2, width, 1);
    }
  }

  /** Steps, from their first to their last work: what is busy is drawn over it. */
  #drawIdle(context, part) {
    const { steps } = part.trace;
    const { sorted } = steps;
    const [first, last] = steps.between(part.fromNs, part.toNs);
    if (first === last) return;
    const style = idleStyle(part);
    if (style === "whole") this.#fill(context, part, style, sorted[0].startNs, sorted[sorted.length - 1].endNs);
    else for (let at = first; at < last; at++) this.#fill(context, part, style, sorted[at].startNs, sorted[at].endNs);
  }

  #fill(context, part, style, fromNs, toNs) {
    const left = Math.max(part.snapped(part.x(fromNs)), part.leftPx);
    const right = Math.min(part.snapped(part.x(toNs)), part.widthPx);
    if (right <= left) return;
    if (style === "hatch") return this.hatch.fill(context, part, left, right);
    context.fillStyle = part.colours.hatchGround;
    context.fillRect(left, 0, right - left, part.heightPx);
  }

  #show(context, scene) {
    const { width, height } = this.canvas;
    const at = this.#placeOf(scene.firstColumn);
    const left = Math.round(scene.leftPx * scene.pixelRatio);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.canvas, at, 0, width - at, height, left, 0, width - at, height);
    if (at) context.drawImage(this.canvas, 0, 0, at, height, left + width - at, 0, at, height);
    context.restore();
  }
}
