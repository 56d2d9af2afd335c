/** One frame of the timeline: the sheet of lanes, what is written on it, the ruler and the steps above, the gutter beside. */

import { drawGutter } from "./gutter.js";
import { drawLabels } from "./labels.js";
import { RULER_PX } from "./layout.js";
import { drawMarks } from "./marks.js";
import { Rows } from "./rows.js";
import { drawRuler } from "./ruler.js";
import { Sheet } from "./sheet.js";
import { PLAIN_FONT, SMALL_FONT, Sprites, TICK_FONT } from "./sprites.js";
import { drawSteps } from "./steps.js";

/** What a frame may spend on rows of pixels; what does not fit waits, stretched, for the next. */
export const ROWS_BUDGET_MS = 5;

export class Painter {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.rows = new Rows(0);
    this.sheet = new Sheet();
    this.sprites = new Sprites();
    this.smallSprites = new Sprites(SMALL_FONT);
    this.plainSprites = new Sprites(PLAIN_FONT);
    this.tickSprites = new Sprites(TICK_FONT);
    this.budgetMs = ROWS_BUDGET_MS;
    this.gutterKey = "";
    this.wasDone = true;
  }

  /** Draws; true if rows are left to be made good in the next frame. `ideal`: what the overlay lays under a step. */
  paint(scene, gutter, ideal = null) {
    const { context } = this;
    const { pixelRatio, colours } = scene;
    this.#resize(scene);
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    const isDone = this.#paintSheet(scene);
    for (const sprites of [this.sprites, this.smallSprites, this.plainSprites, this.tickSprites]) sprites.prepare(colours.version, pixelRatio);
    this.#clipped(scene, RULER_PX, () => (this.labels = drawLabels(context, scene, this.sprites, this.smallSprites, ideal)));
    this.#clipped(scene, 0, () => {
      context.fillStyle = colours.card;
      context.fillRect(scene.leftPx, 0, scene.widthPx - scene.leftPx, RULER_PX);
      drawRuler(context, scene, this.tickSprites);
      drawSteps(context, scene, this.sprites, this.plainSprites);
      drawMarks(context, scene);
    });
    this.#paintGutter(scene, gutter);
    return !isDone;
  }

  #clipped(scene, topPx, draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(scene.leftPx, topPx, scene.widthPx - scene.leftPx, scene.heightPx - topPx);
    context.clip();
    draw();
    context.restore();
  }

  #resize(scene) {
    const width = Math.round(scene.widthPx * scene.pixelRatio);
    const height = Math.round(scene.heightPx * scene.pixelRatio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
      this.gutterKey = "";
    }
    this.sheet.resize(scene.columns, height);
    this.rows.resize(scene.columns, scene.layout.ranks * scene.layout.lanes.length);
    const key = `${scene.layout.id},${scene.colours.version}`;
    if (this.rowsKey !== key) this.rows.forget();
    this.rowsKey = key;
  }

  /** Whether every row in sight could be brought up to date; those that were not stand for others for the moment. */
  #paintSheet(scene) {
    const { layout, trace, firstColumn, nsPerColumn } = scene;
    const lanes = layout.lanes.length;
    const laneOf = (row) => {
      const { rank, lanes: drawn } = layout.slots[Math.floor(row / lanes)];
      return row % lanes < drawn.length ? trace.lane(rank, drawn[row % lanes].lane) : null;
    };
    const { isDone, changed } = this.rows.update(scene.firstSlot * lanes, scene.lastSlot * lanes, laneOf, firstColumn, nsPerColumn,
      scene.colours, this.budgetMs);
    const changedStep = Math.floor(trace.steps.changedFromNs / nsPerColumn);
    trace.steps.changedFromNs = Infinity;
    const from = this.wasDone && isDone ? Math.min(changed, changedStep) : -Infinity;
    this.wasDone = isDone;
    this.sheet.paint(this.context, scene, from, isDone, (context, part) => this.#showRows(context, part));
    return isDone;
  }

  #showRows(context, part) {
    const { pixelRatio, layout } = part;
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.imageSmoothingEnabled = false;
    const x = Math.round(part.leftPx * pixelRatio);
    part.slots.forEach((slot, at) => {
      const row = (part.firstSlot + at) * layout.lanes.length;
      slot.lanes.forEach(({ topPx, heightPx }, number) => {
        const top = Math.round((part.y(slot.rank) + topPx) * pixelRatio);
        const bottom = Math.round((part.y(slot.rank) + topPx + heightPx) * pixelRatio);
        this.rows.show(context, row + number, x, top, bottom - top, part.firstColumn, part.columns, part.nsPerColumn);
      });
    });
    context.restore();
  }

  /** Text is dear: the gutter is drawn when it changes. */
  #paintGutter(scene, gutter) {
    const shares = gutter.shares.map((share) => Math.round(share * 1000)).join();
    const key = [scene.scrollPx, scene.leftPx, this.rowsKey, scene.pixelRatio, gutter.hoveredRank, shares].join("|");
    if (key === this.gutterKey) return;
    this.gutterKey = key;
    drawGutter(this.context, scene, gutter);
  }
}
