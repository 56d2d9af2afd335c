/** What happened to the run (faults, checkpoints, restarts, parameters found equal), as signs at the foot of the ruler. */

import { RULER_PX } from "./layout.js";

const REACH_PX = 7;
/** Signs nearer than this are one. */
const APART_PX = 6;

/** A sign has a shape of its own beside its colour: [colour, path around 0, 0]. */
const SIGNS = {
  fault: ["bad", [[-4, -4], [4, 4], null, [4, -4], [-4, 4]]],
  checkpoint: ["accent", [[0, -5], [5, 0], [0, 5], [-5, 0], [0, -5]]],
  restart: ["warn", [[-4, -5], [5, 0], [-4, 5], [-4, -5]]],
  clock: ["warn", [[-4, -5], [4, -5], [-4, 5], [4, 5], [-4, -5]]],
  parameters: ["ok", [[-5, 0], [-1, 4], [5, -5]]],
};
const OTHER = ["muted", [[-4, -4], [4, -4], [4, 4], [-4, 4], [-4, -4]]];

/** The marks in a range. */
function between(marks, fromNs, toNs) {
  return marks.filter(({ timeNs }) => timeNs >= fromNs && timeNs <= toNs);
}

export function wordsOf({ kind, text, rank, step }) {
  return `${kind}${text ? `: ${text}` : ""} (rank ${rank}${step >= 0 ? `, step ${step}` : ""})`;
}

/** The marks under a point of the canvas. */
export function marksAt(trace, scene, { x, y }) {
  if (y < RULER_PX - 14 || y > RULER_PX + 2 || x < scene.leftPx) return [];
  const atNs = scene.fromNs + (x - scene.leftPx) * scene.nsPerPx;
  return between(trace.marks, atNs - REACH_PX * scene.nsPerPx, atNs + REACH_PX * scene.nsPerPx);
}

export function drawMarks(context, scene) {
  const drawn = new Map(); // by kind: the x of its last sign
  for (const { timeNs, kind } of between(scene.trace.marks, scene.fromNs, scene.toNs)) {
    const x = scene.snapped(scene.x(timeNs));
    if (x - (drawn.get(kind) ?? -Infinity) < APART_PX) continue;
    drawn.set(kind, x);
    const [colour, points] = SIGNS[kind] ?? OTHER;
    context.strokeStyle = scene.colours[colour];
    context.lineWidth = 2;
    context.beginPath();
    let isNew = true;
    for (const point of points) {
      if (point && isNew) context.moveTo(x + point[0], RULER_PX - 7 + point[1]);
      else if (point) context.lineTo(x + point[0], RULER_PX - 7 + point[1]);
      isNew = point === null;
    }
    context.stroke();
  }
}
