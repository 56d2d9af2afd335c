/** What lies over the lanes and changes with the visitor: the search's light, the ideal, the longest chain, selection, range, head. */

import { durationNs } from "../core/format.js";
import { LANE } from "../core/kinds.js";
import { drawIdeal } from "./ideal.js";
import { RULER_PX } from "./layout.js";
import { arrow, boxOf, chip, outline } from "./shapes.js";

const HEAD_GLOW_PX = 36;
/** More links than this in sight are drawn without their joints: they would cover the lanes. */
const MOST_JOINTS = 400;

export class Overlay {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
  }

  paint(scene, { selected, dependency, hover, pointer, range, path, ideal, search, headNs }) {
    const { context } = this;
    const isEmpty = !(selected || hover?.span || hover?.gap || pointer || range || path || ideal || search.isOn || Number.isFinite(headNs));
    this.canvas.style.visibility = isEmpty ? "hidden" : ""; // a layer that shows nothing would still be blended with every frame
    if (isEmpty) return;
    this.#clear(scene);
    context.save();
    this.#clip(scene, 0);
    if (Number.isFinite(headNs)) this.#drawHead(scene, headNs);
    if (range) this.#drawRange(scene, range);
    if (pointer) this.#drawCrosshair(scene, pointer.x);
    if (path) this.#chipOfPath(scene, path);
    context.save();
    this.#clip(scene, RULER_PX);
    if (search.isOn) this.#drawLight(scene, search);
    if (Number.isFinite(headNs)) this.#drawUnderWay(scene, headNs);
    if (path) this.#drawPath(scene, path);
    const pointed = hover?.span ?? hover?.gap;
    if (pointed) outline(context, scene, pointed, scene.colours.text, 1);
    if (dependency && selected) arrow(context, scene, dependency, selected);
    if (dependency) outline(context, scene, dependency, scene.colours.accent, 1.5);
    if (selected) outline(context, scene, selected, scene.colours.text, 2);
    context.restore();
    if (ideal) drawIdeal(context, scene, ideal);
    context.restore();
  }

  #clear(scene) {
    const { canvas, context } = this;
    const width = Math.round(scene.widthPx * scene.pixelRatio);
    const height = Math.round(scene.heightPx * scene.pixelRatio);
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    context.setTransform(scene.pixelRatio, 0, 0, scene.pixelRatio, 0, 0);
    context.clearRect(0, 0, scene.widthPx, scene.heightPx);
  }

  #clip(scene, topPx) {
    this.context.beginPath();
    this.context.rect(scene.leftPx, topPx, scene.widthPx - scene.leftPx, scene.heightPx - topPx);
    this.context.clip();
  }

  /** Everything but the matches in a shade. */
  #drawLight(scene, search) {
    const { context } = this;
    context.globalAlpha = 0.72;
    context.fillStyle = scene.colours.card;
    context.fillRect(scene.leftPx, RULER_PX, scene.widthPx - scene.leftPx, scene.heightPx);
    context.globalAlpha = 1;
    for (const slot of scene.slots) {
      for (const { lane, topPx, heightPx } of slot.lanes) {
        const top = scene.y(slot.rank) + topPx;
        search.each(scene.trace.lane(slot.rank, lane), scene.fromNs, scene.toNs, scene.nsPerPx, (fromNs, toNs) => {
          const left = scene.snapped(scene.x(fromNs));
          context.clearRect(left, top, Math.max(1.5, scene.snapped(scene.x(toNs)) - left), heightPx);
        });
      }
    }
  }

  /** The chain as a line from span to span; each link's box is framed. */
  #drawPath(scene, path) {
    const { context } = this;
    const seen = path.links.filter(({ span }) => span.endNs > scene.fromNs && span.startNs < scene.toNs);
    context.strokeStyle = scene.colours.warn;
    context.lineJoin = "round";
    if (seen.length <= MOST_JOINTS) for (const { span } of seen) outline(context, scene, span, scene.colours.warn, 1.5);
    for (const [colour, lineWidth] of [[scene.colours.card, 5], [scene.colours.warn, 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = lineWidth;
      context.beginPath();
      for (const { span } of path.links) {
        const { top, height } = boxOf(scene, span);
        const y = top + height - Math.min(4, height / 2);
        context.lineTo(scene.x(span.startNs), y);
        context.lineTo(scene.x(span.endNs), y);
      }
      context.stroke();
    }
  }

  #chipOfPath(scene, path) {
    const words = `longest chain of step ${path.step}: ${durationNs(path.endNs - path.startNs)}`;
    const middle = (Math.max(scene.x(path.startNs), scene.leftPx) + Math.min(scene.x(path.endNs), scene.widthPx)) / 2;
    if (scene.x(path.endNs) < scene.leftPx || scene.x(path.startNs) > scene.widthPx) return;
    chip(this.context, scene, words, middle, RULER_PX - 22, { ground: scene.colours.warn, colour: scene.colours.card });
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
    chip(context, scene, durationNs(toNs - fromNs), (left + right) / 2, RULER_PX - 22, { ground: scene.colours.accent, colour: scene.colours.card });
  }

  /** From each rank's last span to the head it does something that it has not told yet: an open span with a fading end. */
  #drawUnderWay(scene, headNs) {
    const { context } = this;
    const right = Math.min(scene.x(headNs), scene.widthPx);
    for (const slot of scene.slots) {
      const lane = scene.trace.lane(slot.rank, LANE.COMPUTE);
      const left = Math.max(scene.snapped(scene.x(lane.lastEndNs)), scene.leftPx);
      if (!lane.spans || right - left < 3) continue;
      const fade = context.createLinearGradient(left, 0, right, 0);
      fade.addColorStop(0, scene.colours.strongLine);
      fade.addColorStop(1, "transparent");
      context.globalAlpha = 0.5;
      context.fillStyle = fade;
      context.fillRect(left, scene.y(slot.rank), right - left, slot.lanes[0].heightPx);
      context.globalAlpha = 1;
    }
  }

  /** Where the run has come to: what lies to the right has not happened yet. */
  #drawHead(scene, headNs) {
    const x = scene.snapped(scene.x(headNs));
    if (x < scene.leftPx || x > scene.widthPx) return;
    const { context } = this;
    const bottom = scene.bottomPx;
    const glow = context.createLinearGradient(x - HEAD_GLOW_PX, 0, x, 0);
    glow.addColorStop(0, "transparent");
    glow.addColorStop(1, scene.colours.ok);
    context.globalAlpha = 0.14;
    context.fillStyle = glow;
    context.fillRect(x - HEAD_GLOW_PX, RULER_PX - 4, HEAD_GLOW_PX, bottom - RULER_PX + 4);
    context.globalAlpha = 1;
    context.fillStyle = scene.colours.ok;
    context.fillRect(x, RULER_PX - 4, 1.5, bottom - RULER_PX + 4);
    context.beginPath();
    context.arc(x + 0.75, RULER_PX - 5, 3, 0, 2 * Math.PI);
    context.fill();
  }
}
