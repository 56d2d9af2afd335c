/** Step marks: a row of their own on top, with each step's duration and bubble, and a line through the lanes. */

import { durationNs, percent } from "../core/format.js";
import { RULER_PX } from "./layout.js";

const ROW_PX = 20;
const NARROWEST_LINE_PX = 8;
const NARROWEST_LABEL_PX = 44;

/** As the recorder figured it; until then from a step's first work to the next one's, of the last step as far as it has come. */
export function stepDurationNs(steps, at) {
  const window = steps.sorted[at];
  return window.figures?.period_ns ?? (steps.sorted[at + 1]?.startNs ?? window.endNs) - window.startNs;
}

export function drawSteps(context, scene) {
  const { steps } = scene.trace;
  const [first, last] = steps.between(scene.fromNs, scene.toNs);
  if (first === last) return;
  const typicalPx = (scene.x(steps.sorted[last - 1].endNs) - scene.x(steps.sorted[first].startNs)) / (last - first);
  const stride = Math.max(1, Math.ceil(NARROWEST_LABEL_PX / typicalPx));
  for (let at = first; at < last; at++) {
    if (typicalPx < NARROWEST_LINE_PX && steps.sorted[at].step % stride) continue;
    drawStep(context, scene, at, typicalPx, steps.sorted[at].step % stride === 0 ? typicalPx * stride : 0);
  }
}

function drawStep(context, scene, at, typicalPx, roomPx) {
  const { colours, leftPx } = scene;
  const window = scene.trace.steps.sorted[at];
  const left = scene.snapped(scene.x(window.startNs));
  const right = Math.min(scene.x(window.endNs), scene.widthPx);
  const from = Math.max(left, leftPx);
  context.fillStyle = colours.strongLine;
  if (typicalPx >= NARROWEST_LINE_PX) {
    context.globalAlpha = 0.5;
    context.fillRect(from, ROW_PX + 1, Math.max(1, right - from - 1), 2);
    context.globalAlpha = 1;
  }
  if (left >= leftPx && typicalPx >= NARROWEST_LINE_PX) drawLine(context, scene, left);
  if (roomPx) drawStepText(context, scene, at, from, Math.min(scene.widthPx - from, Math.max(roomPx, scene.x(window.endNs) - left) - (from - left) - 8));
}

function drawLine(context, scene, x) {
  context.strokeStyle = scene.colours.strongLine;
  context.lineWidth = 1;
  context.setLineDash([3, 3]);
  context.beginPath();
  context.moveTo(x + 0.5, ROW_PX + 1);
  context.lineTo(x + 0.5, Math.min(scene.heightPx, RULER_PX + scene.layout.ranks * scene.layout.rankPx));
  context.stroke();
  context.setLineDash([]);
}

function drawStepText(context, scene, at, x, roomPx) {
  const { colours } = scene;
  const window = scene.trace.steps.sorted[at];
  context.textBaseline = "middle";
  context.font = "600 12px Inter, ui-sans-serif, system-ui, sans-serif";
  const name = roomPx > 60 ? `step ${window.step}` : String(window.step);
  const nameWidth = context.measureText(name).width;
  if (nameWidth > roomPx) return;
  context.fillStyle = colours.text;
  context.fillText(name, x + 2, ROW_PX / 2 + 1);
  context.font = "12px Inter, ui-sans-serif, system-ui, sans-serif";
  context.fillStyle = colours.muted;
  const bubble = window.figures?.bubble_share;
  const duration = durationNs(stepDurationNs(scene.trace.steps, at));
  const long = bubble === undefined || bubble === null ? duration : `${duration} · bubble ${percent(bubble)}`;
  for (const text of [long, duration]) {
    if (nameWidth + 10 + context.measureText(text).width > roomPx) continue;
    context.fillText(text, x + 2 + nameWidth + 8, ROW_PX / 2 + 1);
    return;
  }
}
