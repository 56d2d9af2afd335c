/**
 * The lanes as one picture that is kept between frames: ground, hatching and spans, without what is written on them.
 *
 * It is a ring of columns: column c of the run lies at c modulo the width. A pan draws the columns that came into
 * sight over those that left it, and moves nothing; a frame copies the ring to the screen in two pieces.
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
    this.key = "";
    this.from = this.to = 0; // the columns it holds
  }

  resize(columns, height) {
    if (this.canvas.width === columns && this.canvas.height === height) return;
    this.canvas.width = Math.max(1, columns);
    this.canvas.height = Math.max(1, height);
    this.key = "";
  }

  /** Brings it up to the scene; columns from `changed` on are drawn anew, and `showRows(context, part)` draws spans. */
  update(scene, changed, showRows) {
    this.hatch.prepare(scene.colours, scene.pixelRatio, this.canvas.width, this.canvas.height);
    const key = [scene.nsPerColumn, scene.scrollPx, scene.layout.id, scene.colours.version, scene.pixelRatio, idleStyle(scene)].join();
    const from = scene.firstColumn;
    const to = from + scene.columns;
    if (key !== this.key || from >= this.to || to <= this.from) {
      this.#draw(scene, from, to, showRows);
    } else {
      if (from < this.from) this.#draw(scene, from, Math.min(to, this.from + SEAM_COLUMNS), showRows);
      const again = Math.max(from, Math.min(changed, to > this.to ? this.to - SEAM_COLUMNS : Infinity));
      if (again < to) this.#draw(scene, again, to, showRows);
    }
    this.key = key;
    this.from = from;
    this.to = to;
  }

  /** What it holds is good for nothing: some rows stand for others for the moment. */
  forget() {
    this.key = "";
  }

  /** Columns [from, to), which the end of the ring may cut in two. */
  #draw(scene, from, to, showRows) {
    const width = this.canvas.width;
    for (let begin = from; begin < to;) {
      const at = ((begin % width) + width) % width;
      const end = Math.min(to, begin + width - at);
      this.#drawPart(scene.part(begin, end, at / scene.pixelRatio), showRows);
      begin = end;
    }
  }

  #drawPart(part, showRows) {
    const { context } = this;
    context.save();
    context.setTransform(part.pixelRatio, 0, 0, part.pixelRatio, 0, 0);
    context.beginPath();
    context.rect(part.leftPx, 0, part.widthPx - part.leftPx, part.heightPx);
    context.clip();
    this.#drawGround(part);
    drawGrid(context, part);
    showRows(context, part);
    drawStepLines(context, part);
    context.restore();
  }

  /** The hatching is drawn over all lanes at once, and what is not a compute lane over it: far fewer pieces. */
  #drawGround(part) {
    const { context } = this;
    const { colours, leftPx, widthPx } = part;
    const width = widthPx - leftPx;
    context.fillStyle = colours.lane;
    context.fillRect(leftPx, 0, width, part.heightPx);
    this.#drawIdle(part);
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
  #drawIdle(part) {
    const { steps } = part.trace;
    const { sorted } = steps;
    const [first, last] = steps.between(part.fromNs, part.toNs);
    if (first === last) return;
    const style = idleStyle(part);
    if (style === "whole") this.#fill(part, style, sorted[0].startNs, sorted[sorted.length - 1].endNs);
    else for (let at = first; at < last; at++) this.#fill(part, style, sorted[at].startNs, sorted[at].endNs);
  }

  #fill(part, style, fromNs, toNs) {
    const left = Math.max(part.snapped(part.x(fromNs)), part.leftPx);
    const right = Math.min(part.snapped(part.x(toNs)), part.widthPx);
    if (right <= left) return;
    if (style === "hatch") return this.hatch.fill(this.context, part, left, right);
    this.context.fillStyle = part.colours.hatchGround;
    this.context.fillRect(left, 0, right - left, part.heightPx);
  }

  /** Copies it to a canvas whose transform is in CSS pixels. */
  show(context, scene) {
    const { width, height } = this.canvas;
    const at = ((scene.firstColumn % width) + width) % width;
    const left = Math.round(scene.leftPx * scene.pixelRatio);
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(this.canvas, at, 0, width - at, height, left, 0, width - at, height);
    if (at) context.drawImage(this.canvas, 0, 0, at, height, left + width - at, 0, at, height);
    context.restore();
  }
}
