/** What lies over the lanes and changes with the pointer: crosshair, selection, its arrow, the range chosen, the head. */

import { LANE } from "../core/kinds.js";
import { RULER_PX } from "./layout.js";
import { durationNs } from "../core/format.js";

const SHORTEST_ARROW_PX = 24;
const FONT = "600 11px Inter, ui-sans-serif, system-ui, sans-serif";

export class Overlay {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  paint(scene, { selected, dependency, hover, pointer, range, headNs }) {
    const { context } = this;
    const { pixelRatio } = scene;
    const width = Math.round(scene.widthPx * pixelRatio);
    const height = Math.round(scene.heightPx * pixelRatio);
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    context.setTransform(pixelRatio, 0, 0, pixelRatio, 0, 0);
    context.clearRect(0, 0, scene.widthPx, scene.heightPx);
    context.save();
    context.beginPath();
    context.rect(scene.leftPx, 0, scene.widthPx - scene.leftPx, scene.heightPx);
    context.clip();
    if (headNs !== null) this.#drawHead(scene, headNs);
    if (range) this.#drawRange(scene, range);
    if (pointer) this.#drawCrosshair(scene, pointer.x);
    context.beginPath();
    context.rect(scene.leftPx, RULER_PX, scene.widthPx - scene.leftPx, scene.heightPx);
    context.clip();
    const idle = hover?.span ?? hover?.gap;
    if (idle) this.#outline(scene, idle, scene.colours.text, 1);
    if (dependency && selected) this.#drawArrow(scene, dependency, selected);
    if (dependency) this.#outline(scene, dependency, scene.colours.accent, 1.5);
    if (selected) this.#outline(scene, selected, scene.colours.text, 2);
    context.restore();
  }

  #box(scene, span) {
    const lane = scene.layout.lanes.find((each) => each.lane === span.lane) ?? scene.layout.lanes[LANE.COMPUTE];
    const left = Math.max(scene.snapped(scene.x(span.startNs)), scene.leftPx - 4);
    const right = Math.min(Math.max(scene.snapped(scene.x(span.endNs)), left + 2), scene.widthPx + 4);
    return { left, right, top: scene.y(span.rank) + lane.topPx, height: lane.heightPx };
  }

  #outline(scene, span, colour, lineWidth) {
    const { left, right, top, height } = this.#box(scene, span);
    if (right < scene.leftPx || left > scene.widthPx) return;
    this.context.strokeStyle = colour;
    this.context.lineWidth = lineWidth;
    this.context.beginPath();
    this.context.roundRect(left - lineWidth / 2, top - lineWidth / 2, right - left + lineWidth, height + lineWidth, 2.5);
    this.context.stroke();
  }

  /** From the end of what had to be done first to the start of what waited for it. */
  #drawArrow(scene, from, to) {
    const { context } = this;
    const start = this.#box(scene, from);
    const end = this.#box(scene, to);
    const x1 = scene.x(from.endNs);
    const x2 = scene.x(to.startNs);
    if (Math.max(x1, x2) < scene.leftPx || Math.min(x1, x2) > scene.widthPx) return;
    if (from.rank === to.rank && from.lane === to.lane && x2 - x1 < SHORTEST_ARROW_PX) return;
    const y1 = start.top + start.height / 2;
    const y2 = end.top + end.height / 2;
    const bend = Math.max(24, Math.min(90, Math.abs(x2 - x1) / 2));
    for (const [style, lineWidth] of [[scene.colours.card, 4.5], [scene.colours.text, 1.6]]) {
      context.strokeStyle = context.fillStyle = style;
      context.lineWidth = lineWidth;
      context.beginPath();
      context.moveTo(x1, y1);
      context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 5, y2);
      context.stroke();
    }
    context.beginPath();
    context.arc(x1, y1, 2.6, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 8, y2 - 4.5);
    context.lineTo(x2 - 8, y2 + 4.5);
    context.fill();
  }

  #drawCrosshair(scene, x) {
    if (x < scene.leftPx) return;
    this.context.fillStyle = scene.colours.muted;
    this.context.globalAlpha = 0.55;
    this.context.fillRect(scene.snapped(x), RULER_PX - 8, 1, scene.heightPx);
    this.context.globalAlpha = 1;
  }

  #drawRange(scene, { fromNs, toNs }) {
    const { context } = this;
    const left = Math.max(scene.x(fromNs), scene.leftPx - 2);
    const right = Math.min(scene.x(toNs), scene.widthPx + 2);
    if (right < scene.leftPx || left > scene.widthPx) return;
    context.fillStyle = scene.colours.accent;
    context.globalAlpha = 0.12;
    context.fillRect(left, RULER_PX - 22, right - left, scene.heightPx);
    context.globalAlpha = 1;
    context.fillRect(left, RULER_PX - 22, 1, scene.heightPx);
    context.fillRect(right - 1, RULER_PX - 22, 1, scene.heightPx);
    const text = durationNs(toNs - fromNs);
    context.font = FONT;
    context.textBaseline = "middle";
    const width = context.measureText(text).width + 12;
    const middle = Math.min(Math.max((left + right) / 2, scene.leftPx + width / 2), scene.widthPx - width / 2);
    context.beginPath();
    context.roundRect(middle - width / 2, RULER_PX - 22, width, 17, 4);
    context.fill();
    context.fillStyle = scene.colours.card;
    context.fillText(text, middle - width / 2 + 6, RULER_PX - 13);
  }

  /** Where the run has come to: what lies to the right has not happened yet. */
  #drawHead(scene, headNs) {
    const x = scene.snapped(scene.x(headNs));
    if (x < scene.leftPx || x > scene.widthPx) return;
    const { context } = this;
    const bottom = Math.min(scene.heightPx, RULER_PX + scene.layout.ranks * scene.layout.rankPx - scene.scrollPx);
    const glow = context.createLinearGradient(x - 36, 0, x, 0);
    glow.addColorStop(0, "transparent");
    glow.addColorStop(1, scene.colours.ok);
    context.globalAlpha = 0.14;
    context.fillStyle = glow;
    context.fillRect(x - 36, RULER_PX - 4, 36, bottom - RULER_PX + 4);
    context.globalAlpha = 1;
    context.fillStyle = scene.colours.ok;
    context.fillRect(x, RULER_PX - 4, 1.5, bottom - RULER_PX + 4);
    context.beginPath();
    context.arc(x + 0.75, RULER_PX - 5, 3, 0, 2 * Math.PI);
    context.fill();
  }
}
