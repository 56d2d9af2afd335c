/** What is written into spans that are wide enough (F0 … B7, "F0 s4" where a rank holds several stages), and into gaps ("idle 38.2 ms"). */

import { KIND, LANE, labelOf, markedLabelOf } from "../core/kinds.js";
import { durationNs } from "../core/format.js";
import { measuredPx } from "./ideal.js";

/** A lane with more spans in sight than this times its width in pixels has none wide enough to matter. */
const MOST_SPANS_A_PIXEL = 0.5;
const LOWEST_LANE_PX = 12;
/** Below this height the small letters are taken for gaps too. */
const LOW_LANE_PX = 20;
const NARROWEST_SPAN_PX = 12;
const NARROWEST_GAP_PX = 54;

/** Labels of the compute lanes, over the ideal where there is one, and how many were written. */
export function drawLabels(context, scene, sprites, smallSprites, ideal) {
  let written = 0;
  for (const { rank, isFolded, lanes: [{ heightPx }] } of scene.slots) {
    if (heightPx < LOWEST_LANE_PX) continue;
    const lane = scene.trace.lane(rank, LANE.COMPUTE);
    if (!lane || lane.countBetween(scene.fromNs, scene.toNs) > scene.view.widthPx * MOST_SPANS_A_PIXEL) continue;
    written += drawLane(context, scene, [sprites, smallSprites], lane, scene.y(rank), (startNs) => (isFolded ? heightPx : measuredPx(ideal, heightPx, startNs)));
  }
  return written;
}

/** `heightAt(timeNs)`: how high the lane is for words. */
function drawLane(context, scene, sizes, lane, top, heightAt) {
  let written = 0;
  const labels = [];
  const gapSprites = heightAt(-Infinity) < LOW_LANE_PX ? sizes[1] : sizes[0];
  let freeFromNs = -Infinity; // the end of the last busy span
  const { nsPerPx, fromNs, toNs } = scene;
  let place = lane.firstEndingAfter(fromNs);
  if (place > 0 && place <= lane.end) freeFromNs = previousBusyEnd(lane, place);
  for (; place < lane.end; place = lane.next(place)) {
    const startNs = lane.startOf(place);
    if (startNs >= toNs) break;
    const kind = lane.kindOf(place);
    const endNs = lane.endOf(place);
    const height = heightAt(startNs);
    if (kind === KIND.WAIT) {
      drawWait(context, scene, startNs, endNs, top, height);
      continue;
    }
    if (startNs - freeFromNs > NARROWEST_GAP_PX * nsPerPx) written += drawGap(context, scene, gapSprites, freeFromNs, startNs, top, heightAt(freeFromNs));
    freeFromNs = Math.max(freeFromNs, endNs);
    if (endNs - startNs < NARROWEST_SPAN_PX * nsPerPx) continue;
    const text = labelOf(kind, lane.microBatchOf(place)) + scene.trace.wayOf(lane.rank, lane.stageOf(place));
    if (!text) continue;
    const texts = scene.hasChunks ? [markedLabelOf(kind, lane.microBatchOf(place), lane.stageOf(place)), text] : [text];
    const [large, small] = sizes.map((sprites) => texts.map((each) => sprites.get(each, scene.colours.onKind[kind])));
    labels.push({ kind, large, small, startNs: Math.max(startNs, fromNs), endNs: Math.min(endNs, toNs), isWhole: startNs >= fromNs && endNs <= toNs, height });
  }
  const cramped = crampedKinds(labels, nsPerPx);
  for (const label of labels) written += drawText(context, scene, label, top, cramped.has(label.kind));
  return written + drawGap(context, scene, gapSprites, freeFromNs, toNs, top, heightAt(freeFromNs));
}

function previousBusyEnd(lane, place) {
  for (let at = lane.previous(place); at >= 0; at = lane.previous(at)) if (lane.kindOf(at) !== KIND.WAIT) return lane.endOf(at);
  return -Infinity;
}

/** A recorded wait is underlined: the rank had asked for data, it did not just have nothing to do. */
function drawWait(context, scene, startNs, endNs, top, height) {
  const left = Math.max(scene.x(startNs), scene.leftPx);
  const right = Math.min(scene.x(endNs), scene.widthPx);
  if (right - left < 2) return;
  context.fillStyle = scene.colours.kind[KIND.WAIT];
  context.fillRect(left, top + height - 3, right - left, 3);
}

/** Idle time between two busy spans, where it lies inside a step; how many gaps were labelled. */
function drawGap(context, scene, sprites, fromNs, toNs, top, height) {
  const { steps } = scene.trace;
  const [first, last] = steps.between(Math.max(fromNs, scene.fromNs), Math.min(toNs, scene.toNs));
  let written = 0;
  for (let at = first; at < last; at++) {
    const window = steps.sorted[at];
    const idleFrom = Math.max(fromNs, window.startNs);
    const idleTo = Math.min(toNs, window.endNs);
    const left = Math.max(scene.x(idleFrom), scene.leftPx);
    const right = Math.min(scene.x(idleTo), scene.widthPx);
    if (right - left < NARROWEST_GAP_PX || !scene.trace.holds(idleFrom, idleTo)) continue;
    const words = durationNs(idleTo - idleFrom);
    const sprite = [`idle ${words}`, words].map((text) => sprites.get(text, scene.colours.bad))
      .find(({ widthPx }) => widthPx + 18 < right - left);
    if (!sprite) continue;
    const x = scene.snapped((left + right - sprite.widthPx) / 2);
    const y = scene.snapped(top + (height - sprite.heightPx) / 2);
    context.fillStyle = scene.colours.card;
    context.beginPath();
    const boxPx = Math.min(sprite.heightPx + 2, height);
    context.roundRect(x - 6, top + (height - boxPx) / 2, sprite.widthPx + 12, boxPx, 5);
    context.fill();
    context.drawImage(sprite.canvas, x, y, sprite.widthPx, sprite.heightPx);
    written++;
  }
  return written;
}

const fitsInto = (width) => ({ widthPx }) => widthPx < width - 1;

/** Kinds of which a span in the lane has room for small letters alone: spans of a pixel more or less would differ in size. */
function crampedKinds(labels, nsPerPx) {
  const kinds = new Set();
  for (const { kind, large, small, startNs, endNs, isWhole } of labels) {
    const fits = fitsInto((endNs - startNs) / nsPerPx);
    if (isWhole && !large.some(fits) && small.some(fits)) kinds.add(kind);
  }
  return kinds;
}

/** The first that fits: with the stage rather than without, large rather than small where large ones fit all of the kind. */
function drawText(context, scene, { large, small, startNs, endNs, height }, top, isCramped) {
  const left = scene.x(startNs);
  const width = (endNs - startNs) / scene.nsPerPx;
  const sprite = (isCramped ? small : large.flatMap((each, at) => [each, small[at]])).find(fitsInto(width));
  if (!sprite) return 0;
  context.drawImage(sprite.canvas, scene.snapped(left + (width - sprite.widthPx) / 2),
    scene.snapped(top + (height - sprite.heightPx) / 2), sprite.widthPx, sprite.heightPx);
  return 1;
}
