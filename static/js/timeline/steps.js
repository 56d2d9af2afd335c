/** Step marks: a row of their own on top, with each step's duration and bubble, and a line through the lanes. */

import { durationNs, percent } from "../core/format.js";

const ROW_PX = 20;
const NARROWEST_LINE_PX = 8;
const NARROWEST_LABEL_PX = 44;
const NARROWEST_DASHED_PX = 80;
const DASH_PX = 6;

/** As the recorder figured it; until then from a step's first work to the next one's, of the last step as far as it has come. */
export function stepDurationNs(steps, at) {
  const window = steps.sorted[at];
  return window.figures?.period_ns ?? (steps.sorted[at + 1]?.startNs ?? window.endNs) - window.startNs;
}

/** `words` and `plain` are the sprites of the step's name and of its figures. */
export function drawSteps(context, scene, words, plain) {
  const { steps } = scene.trace;
  const [first, last] = steps.between(scene.fromNs, scene.toNs);
  if (first === last) return;
  const typicalPx = steps.typicalNs / scene.nsPerPx;
  const stride = Math.max(1, Math.ceil(NARROWEST_LABEL_PX / typicalPx));
  const stridden = typicalPx < NARROWEST_LINE_PX ? stride : 1;
  let isFirst = true;
  for (let at = first; at < last; at++) {
    if (steps.sorted[at].step % stridden) continue;
    const isNamed = steps.sorted[at].step % stride === 0;
    drawStep(context, scene, at, typicalPx >= NARROWEST_LINE_PX, isNamed ? steps.sorted[at + stride] : null, (from, roomPx) => {
      if (stride === 1) drawStepText(context, scene, at, from, roomPx, [words, plain]);
      else drawStepNumber(context, scene, at, from, roomPx, words, isFirst);
    });
    if (isNamed) isFirst = false;
  }
}

/** What the step took to its last rank's end: where gradients are averaged that is long after the work's. */
function stepEndNs(steps, at) {
  const { endNs, figures } = steps.sorted[at];
  return Math.min(Math.max(endNs, figures?.end_ns ?? endNs), steps.sorted[at + 1]?.startNs ?? Infinity);
}

/** `nextNamed` is the step whose name comes next, undefined where none does; null leaves this one without a name. */
function drawStep(context, scene, at, hasLine, nextNamed, drawName) {
  const { colours, leftPx } = scene;
  const window = scene.trace.steps.sorted[at];
  const left = scene.snapped(scene.x(window.startNs));
  const right = Math.min(scene.x(stepEndNs(scene.trace.steps, at)), scene.widthPx);
  const from = Math.max(left, leftPx);
  if (hasLine) {
    context.fillStyle = colours.strongLine;
    context.globalAlpha = 0.5;
    context.fillRect(from, ROW_PX + 1, Math.max(1, right - from - 1), 2);
    context.globalAlpha = 1;
  }
  if (nextNamed === null) return;
  const until = nextNamed ? Math.min(scene.widthPx, scene.x(nextNamed.startNs) - 8) : scene.widthPx;
  drawName(from, until - from);
}

/** Lines through the lanes at the beginning of each step; dashes are dear, so many lines are whole and pale. */
export function drawStepLines(context, scene) {
  const { steps } = scene.trace;
  const typicalPx = steps.typicalNs / scene.nsPerPx;
  if (typicalPx < NARROWEST_LINE_PX) return;
  const [first, last] = steps.between(scene.fromNs - scene.nsPerColumn, scene.toNs);
  const hasDashes = typicalPx >= NARROWEST_DASHED_PX;
  context.fillStyle = scene.colours.strongLine;
  for (let at = first; at < last; at++) {
    const x = scene.snapped(scene.x(steps.sorted[at].startNs));
    if (hasDashes) for (let y = ROW_PX; y < scene.bottomPx; y += DASH_PX) context.fillRect(x, y, 1, DASH_PX / 2);
    else {
      context.globalAlpha = 0.5;
      context.fillRect(x, ROW_PX, 1, scene.bottomPx - ROW_PX);
      context.globalAlpha = 1;
    }
  }
}

/** One of several steps has a name: a number alone, behind the first one's word. */
function drawStepNumber(context, scene, at, x, roomPx, words, isFirst) {
  const number = String(scene.trace.steps.sorted[at].step);
  const name = [isFirst ? `step ${number}` : number, number].find((each) => words.get(each, scene.colours.text).widthPx <= roomPx);
  if (name) words.stamp(context, name, scene.colours.text, x + 2, ROW_PX / 2 + 1);
}

function drawStepText(context, scene, at, x, roomPx, [words, plain]) {
  const { colours } = scene;
  const window = scene.trace.steps.sorted[at];
  const name = roomPx > 60 ? `step ${window.step}` : String(window.step);
  const { widthPx } = words.get(name, colours.text);
  if (widthPx > roomPx) return;
  words.stamp(context, name, colours.text, x + 2, ROW_PX / 2 + 1);
  const bubble = window.figures?.bubble_share;
  const duration = durationNs(stepDurationNs(scene.trace.steps, at));
  const long = bubble === undefined || bubble === null ? duration : `${duration} · bubble ${percent(bubble)}`;
  const text = [long, duration].find((each) => widthPx + 10 + plain.get(each, colours.muted).widthPx <= roomPx);
  if (text) plain.stamp(context, text, colours.muted, x + 2 + widthPx + 8, ROW_PX / 2 + 1);
}
