/** One frame of the timeline, from the ground up: lanes, hatching, spans, marks, labels, gutter. */

import { LANE } from "../core/kinds.js";
import { drawGutter } from "./gutter.js";
import { Hatch } from "./hatch.js";
import { drawLabels } from "./labels.js";
import { DRAWN_LANES, RULER_PX } from "./layout.js";
import { Rows } from "./rows.js";
import { drawGrid, drawRuler } from "./ruler.js";
import { SMALL_FONT, Sprites } from "./sprites.js";
import { drawSteps } from "./steps.js";

/** What a frame may spend on rows of pixels; what does not fit waits, stretched, for the next. */
export const ROWS_BUDGET_MS = 8;

/** Steps narrower than this are tinted, narrower than TINY_STEP_PX all together: hatching would be a blur. */
const NARROW_STEP_PX = 26;
const TINY_STEP_PX = 3;

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.rows = new Rows(0);
    this.hatch = new Hatch();
    this.sprites = new Sprites();
    this.smallSprites = new Sprites(SMALL_FONT);
    this.budgetMs = ROWS_BUDGET_MS;
  }

  /** Draws; true if rows are left to be made good in the next frame. */
  paint(scene, gutter) {
    const { context } = this;
    const { pixelRatio, colours } = scene;
    this.#resize(scene);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    context.fillStyle = colours.card;
    context.fillRect(0, 0, scene.widthPx, scene.heightPx);
    const isDone = this.#updateRows(scene);
    context.save();
    context.beginPath();
    context.rect(scene.leftPx, RULER_PX, scene.widthPx - scene.leftPx, scene.heightPx - RULER_PX);
    context.clip();
    this.#drawGround(scene);
    drawGrid(context, scene);
    this.#drawIdle(scene);
    this.#showRows(scene);
    this.sprites.prepare(colours.version, pixelRatio);
    this.smallSprites.prepare(colours.version, pixelRatio);
    this.labels = drawLabels(context, scene, this.sprites, this.smallSprites);
    context.restore();
    context.save();
    context.beginPath();
    context.rect(scene.leftPx, 0, scene.widthPx - scene.leftPx, scene.heightPx);
    context.clip();
    drawRuler(context, scene);
    drawSteps(context, scene);
    context.restore();
    drawGutter(context, scene, gutter.addresses, gutter.shares, gutter.hoveredRank);
    return !isDone;
  }

  #resize(scene) {
    const width = Math.round(scene.widthPx * scene.pixelRatio);
    const height = Math.round(scene.heightPx * scene.pixelRatio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    const columns = Math.round((scene.widthPx - scene.leftPx) * scene.pixelRatio);
    this.rows.resize(columns, scene.layout.ranks * DRAWN_LANES.length);
    if (this.paletteVersion !== scene.colours.version) this.rows.forget();
    this.paletteVersion = scene.colours.version;
  }

  #updateRows(scene) {
    const lanes = DRAWN_LANES.length;
    const laneOf = (row) => scene.trace.rank(Math.floor(row / lanes))[DRAWN_LANES[row % lanes]];
    return this.rows.update(scene.firstRank * lanes, scene.lastRank * lanes, laneOf, scene.firstColumn, scene.nsPerColumn,
      scene.colours, this.budgetMs);
  }

  #drawGround(scene) {
    const { context } = this;
    for (let rank = scene.firstRank; rank < scene.lastRank; rank++) {
      for (const { lane, topPx, heightPx } of scene.layout.lanes) {
        context.fillStyle = lane === LANE.COMPUTE ? scene.colours.lane : scene.colours.thinLane;
        context.fillRect(scene.leftPx, scene.y(rank) + topPx, scene.widthPx - scene.leftPx, heightPx);
      }
    }
  }

  /** Hatches the compute lanes inside steps; what is busy is drawn over it. */
  #drawIdle(scene) {
    const { context } = this;
    const { sorted } = scene.trace.steps;
    const [first, last] = scene.trace.steps.between(scene.fromNs, scene.toNs);
    if (first === last) return;
    const typicalPx = (scene.x(sorted[last - 1].endNs) - scene.x(sorted[first].startNs)) / (last - first);
    context.fillStyle = typicalPx < NARROW_STEP_PX ? scene.colours.hatchGround
      : this.hatch.fill(context, scene.colours, scene.pixelRatio, (scene.fromNs / scene.nsPerPx) - scene.leftPx);
    if (typicalPx < TINY_STEP_PX) this.#fillLanes(scene, sorted[first].startNs, sorted[last - 1].endNs);
    else for (let at = first; at < last; at++) this.#fillLanes(scene, sorted[at].startNs, sorted[at].endNs);
  }

  #fillLanes(scene, fromNs, toNs) {
    const left = Math.max(scene.snapped(scene.x(fromNs)), scene.leftPx);
    const right = Math.min(scene.snapped(scene.x(toNs)), scene.widthPx);
    const { heightPx } = scene.layout.lanes[LANE.COMPUTE];
    for (let rank = scene.firstRank; rank < scene.lastRank; rank++) this.context.fillRect(left, scene.y(rank), right - left, heightPx);
  }

  #showRows(scene) {
    const { context } = this;
    const { pixelRatio } = scene;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = false;
    const x = Math.round(scene.leftPx * pixelRatio);
    for (let rank = scene.firstRank; rank < scene.lastRank; rank++) {
      scene.layout.lanes.forEach(({ topPx, heightPx }, at) => {
        const top = Math.round((scene.y(rank) + topPx) * pixelRatio);
        const bottom = Math.round((scene.y(rank) + topPx + heightPx) * pixelRatio);
        this.rows.show(context, rank * DRAWN_LANES.length + at, x, top, bottom - top, scene.firstColumn, scene.nsPerColumn);
      });
    }
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
  }
}
