/**
 * A step's ideal under the measured one: when each action would run if the schedule went by the clock, as the server's
 * simulator says, from the moment at which the step's work began.
 */

import { durationNs } from "../core/format.js";
import { KIND, LANE, labelOf } from "../core/kinds.js";
import { RULER_PX } from "./layout.js";
import { chip } from "./shapes.js";

const KIND_OF = { F: KIND.FORWARD, B: KIND.BACKWARD, I: KIND.BACKWARD_INPUT, W: KIND.BACKWARD_WEIGHT };
const STRIP_SHARE = 0.34;
const LOWEST_STRIP_PX = 4;
const LABELLED_STRIP_PX = 12;
const NARROWEST_LABEL_PX = 20;

/**
 * `{step, startNs, endNs, measuredNs, bars}` from the server's answer for a step's window; bars by place in the pipeline,
 * each `{kind, stage, microBatch, startNs, endNs}`.
 */
export function idealOf({ bars, makespan_ms: makespanMs }, window) {
  const byPlace = new Map();
  for (const [place, action, stage, microBatch, startMs, endMs] of bars) {
    if (!byPlace.has(place)) byPlace.set(place, []);
    byPlace.get(place).push({ kind: KIND_OF[action], stage, microBatch, startNs: window.startNs + startMs * 1e6, endNs: window.startNs + endMs * 1e6 });
  }
  return { step: window.step, startNs: window.startNs, endNs: window.startNs + makespanMs * 1e6, measuredNs: window.endNs - window.startNs, bars: byPlace };
}

/** "ideal 660 ms, measured 675 ms: 15 ms longer". */
export function differenceWords({ startNs, endNs, measuredNs }) {
  const apartNs = measuredNs - (endNs - startNs);
  return `ideal ${durationNs(endNs - startNs)}, measured ${durationNs(measuredNs)}: ${durationNs(Math.abs(apartNs))} ${apartNs < 0 ? "shorter" : "longer"}`;
}

export function drawIdeal(context, scene, ideal) {
  const { colours } = scene;
  const left = Math.max(scene.snapped(scene.x(ideal.startNs)), scene.leftPx);
  const right = Math.min(scene.snapped(scene.x(Math.max(ideal.endNs, ideal.startNs + ideal.measuredNs))), scene.widthPx);
  if (right <= left) return;
  context.save();
  context.beginPath();
  context.rect(scene.leftPx, RULER_PX, scene.widthPx - scene.leftPx, scene.heightPx);
  context.clip();
  for (const slot of scene.slots) drawStrip(context, scene, slot, ideal, left, right);
  const end = scene.snapped(scene.x(ideal.endNs));
  context.strokeStyle = colours.ok;
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(end, RULER_PX);
  context.lineTo(end, scene.bottomPx);
  context.stroke();
  context.restore();
  chip(context, scene, differenceWords(ideal), (left + right) / 2, RULER_PX - 22, { ground: colours.ok, colour: colours.card });
}

/** So high the ideal's strip is at the foot of a compute lane; 0 where it has no room. */
function stripPx(heightPx) {
  const height = Math.max(LOWEST_STRIP_PX, Math.round(heightPx * STRIP_SHARE));
  return height > heightPx / 2 ? 0 : height;
}

/** What is left of a compute lane's height for the measured spans from `startNs` on. */
export function measuredPx(ideal, heightPx, startNs) {
  const isUnder = ideal && startNs < Math.max(ideal.endNs, ideal.startNs + ideal.measuredNs) && startNs >= ideal.startNs;
  return isUnder ? heightPx - stripPx(heightPx) : heightPx;
}

function drawStrip(context, scene, slot, ideal, left, right) {
  const { heightPx } = slot.lanes[LANE.COMPUTE];
  const height = stripPx(heightPx);
  if (slot.isFolded || !height) return;
  const top = scene.y(slot.rank) + heightPx - height;
  context.fillStyle = scene.colours.card;
  context.fillRect(left, top - 1, right - left, height + 1);
  for (const bar of ideal.bars.get(scene.trace.grid[slot.rank]?.pp ?? 0) ?? []) {
    const from = scene.snapped(scene.x(bar.startNs));
    const to = scene.snapped(scene.x(bar.endNs));
    if (to < scene.leftPx || from > scene.widthPx) continue;
    context.globalAlpha = 0.5;
    context.fillStyle = scene.colours.kind[bar.kind];
    context.fillRect(from, top, Math.max(1, to - from - 1), height);
    context.globalAlpha = 1;
    if (height < LABELLED_STRIP_PX || to - from < NARROWEST_LABEL_PX) continue;
    context.font = "600 10px Inter, ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillStyle = scene.colours.text;
    context.fillText(labelOf(bar.kind, bar.microBatch) + scene.trace.wayOf(slot.rank, bar.stage), (from + to) / 2, top + height / 2 + 0.5);
    context.textAlign = "left";
  }
}
