/** The whole run in a strip: a row of pixels a rank, and the window that the timeline shows. Drag to move it. */

import { LANE } from "../core/kinds.js";
import { Rows } from "./rows.js";

/** New spans are drawn this often at most: the strip is an overview. */
const REDRAW_MS = 250;
/** While the run grows, room is kept ahead, so that what is drawn need not be squeezed with every frame. */
const ROOM_AHEAD = 1.25;
const LEAST_NS = 5e9;
const GRIP_PX = 7;
/** Of a frame; the timeline comes first. */
const BUDGET_MS = 3;

export class Minimap {
  constructor(canvas, timeline) {
    this.canvas = canvas;
    this.timeline = timeline;
    this.context = canvas.getContext("2d", { alpha: false });
    this.picture = document.createElement("canvas");
    this.key = "";
    this.rows = new Rows(1);
    this.drawnMs = -Infinity;
    this.untilNs = LEAST_NS;
    this.#listen();
  }

  /** Draws; true while rows are left to draw. */
  paint(nowMs, widthPx, heightPx) {
    const { trace, view, colours, isGrowing } = this.timeline;
    const ratio = window.devicePixelRatio || 1;
    const columns = Math.round(widthPx * ratio);
    const height = Math.round(heightPx * ratio);
    for (const canvas of [this.canvas, this.picture]) {
      if (canvas.width !== columns) canvas.width = columns;
      if (canvas.height !== height) canvas.height = height;
    }
    this.#extent(trace, view, isGrowing);
    this.nsPerPx = (this.untilNs - this.beginNs) / widthPx;
    const nsPerColumn = (this.untilNs - this.beginNs) / columns;
    const key = [columns, height, this.beginNs, nsPerColumn, colours.version, trace.version].join();
    let isDone = true;
    if (key !== this.key && (!isGrowing || nowMs - this.drawnMs > REDRAW_MS)) {
      isDone = this.#drawPicture(columns, height, nsPerColumn, ratio);
      this.drawnMs = nowMs;
      if (isDone) this.key = key;
    }
    this.#draw(columns, height, nsPerColumn, ratio);
    return !isDone;
  }

  /** The run's rows, on a canvas of their own: a pan moves the window alone. */
  #drawPicture(columns, height, nsPerColumn, ratio) {
    const { trace, colours } = this.timeline;
    const context = this.picture.getContext("2d", { alpha: false });
    const ranks = trace.ranks.length;
    this.rows.resize(columns, ranks);
    if (this.paletteVersion !== colours.version) this.rows.forget();
    this.paletteVersion = colours.version;
    const firstColumn = Math.floor(this.beginNs / nsPerColumn);
    const { isDone } = this.rows.update(0, ranks, (rank) => trace.lane(rank, LANE.COMPUTE), firstColumn, nsPerColumn, colours, BUDGET_MS);
    context.fillStyle = colours.lane;
    context.fillRect(0, 0, columns, height);
    context.imageSmoothingEnabled = false;
    const pad = 3 * ratio;
    for (let rank = 0; rank < ranks; rank++) {
      const top = Math.round(pad + (rank * (height - 2 * pad)) / ranks);
      const bottom = Math.round(pad + ((rank + 1) * (height - 2 * pad)) / ranks);
      const gap = bottom - top > 3 ? 1 : 0;
      this.rows.show(context, rank, 0, top, Math.max(1, bottom - top - gap), firstColumn, columns, nsPerColumn);
    }
    return isDone;
  }

  #extent(trace, view, isGrowing) {
    this.beginNs = trace.isEmpty ? 0 : Math.min(0, trace.firstStartNs);
    if (trace.isEmpty) return;
    if (!isGrowing) this.untilNs = Math.max(view.endNs, this.beginNs + 1);
    else if (trace.lastEndNs > this.untilNs * 0.98) this.untilNs = Math.max(LEAST_NS, trace.lastEndNs * ROOM_AHEAD);
  }

  #draw(columns, height, nsPerColumn, ratio) {
    const { context } = this;
    const { view, colours } = this.timeline;
    context.drawImage(this.picture, 0, 0);
    const left = Math.max(0, Math.round((view.fromNs - this.beginNs) / nsPerColumn));
    const right = Math.min(columns, Math.max(left + 3 * ratio, Math.round((view.toNs - this.beginNs) / nsPerColumn)));
    context.fillStyle = colours.card;
    context.globalAlpha = 0.62;
    context.fillRect(0, 0, left, height);
    context.fillRect(right, 0, columns - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5 * ratio;
    context.strokeRect(left + 0.75 * ratio, 0.75 * ratio, Math.max(ratio, right - left - 1.5 * ratio), height - 1.5 * ratio);
  }

  /** The middle moves the window, its sides resize it, and elsewhere it jumps there. */
  #listen() {
    let grip = null;
    const timeOf = (event) => this.beginNs + (event.clientX - this.canvas.getBoundingClientRect().left) * this.nsPerPx;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !this.nsPerPx) return;
      const { view } = this.timeline;
      this.canvas.setPointerCapture(event.pointerId);
      const timeNs = timeOf(event);
      const reachNs = GRIP_PX * this.nsPerPx;
      if (view.spanNs > 4 * reachNs && Math.abs(timeNs - view.fromNs) < reachNs) grip = { edge: "from" };
      else if (view.spanNs > 4 * reachNs && Math.abs(timeNs - view.toNs) < reachNs) grip = { edge: "to" };
      else {
        const isInside = timeNs > view.fromNs && timeNs < view.toNs;
        grip = { edge: "both", offsetNs: isInside ? timeNs - view.fromNs : view.spanNs / 2 };
      }
      move(event);
    });
    const move = (event) => {
      if (!grip) return;
      const { view } = this.timeline;
      const timeNs = timeOf(event);
      if (grip.edge === "from") this.timeline.setRange(Math.min(timeNs, view.toNs - this.nsPerPx), view.toNs);
      else if (grip.edge === "to") this.timeline.setRange(view.fromNs, Math.max(timeNs, view.fromNs + this.nsPerPx));
      else this.timeline.setRange(timeNs - grip.offsetNs, timeNs - grip.offsetNs + view.spanNs);
    };
    this.canvas.addEventListener("pointermove", move);
    for (const end of ["pointerup", "pointercancel"]) this.canvas.addEventListener(end, () => (grip = null));
  }
}
