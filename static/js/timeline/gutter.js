/** Left of the lanes: the rank, its place in the grid, and how busy its compute lane is in the range in sight. */

import { KIND, LANE } from "../core/kinds.js";
import { RULER_PX } from "./layout.js";

export const WIDE_GUTTER_PX = 122;
export const NARROW_GUTTER_PX = 64;

const AXIS_WORD = { dp: "copy", pp: "stage", cp: "part", tp: "slice", ep: "experts" };

/**
 * "stages 0, 7 · copy 1": the axes of the grid that have more than one rank, and "pp0 dp1 tp1" where words for all have
 * no room. `stages` are those of each place in the pipeline.
 */
export function addressWords(address, sizes, stages = []) {
  const axes = ["pp", "dp", "cp", "tp", "ep"].filter((axis) => (sizes[axis] ?? 1) > 1);
  const most = axes.includes("ep") ? 1 : 2; // its word is the longest
  if (axes.length > most) return axes.map((axis) => `${axis}${address[axis]}`).join(" ");
  const words = { ...address, pp: stages[address.pp]?.join(", ") ?? address.pp };
  return axes.map((axis) => `${AXIS_WORD[axis]}${String(words[axis]).includes(",") ? "s" : ""} ${words[axis]}`).join(" · ");
}

/** The share of the visible part of the run, per rank, in which the compute lane was at work. */
export function busyShares(trace, fromNs, toNs) {
  const from = Math.max(fromNs, trace.firstStartNs);
  const to = Math.min(toNs, trace.lastEndNs);
  return trace.ranks.map((lanes) => {
    if (to <= from) return NaN;
    const totalNs = new Float64Array(32);
    lanes[LANE.COMPUTE].addTotals(from, to, totalNs, new Float64Array(32));
    totalNs[KIND.WAIT] = 0;
    return Math.min(1, totalNs.reduce((sum, ns) => sum + ns, 0) / (to - from));
  });
}

export function drawGutter(context, scene, addresses, shares, hoveredRank) {
  const { colours, leftPx, layout } = scene;
  context.fillStyle = colours.card;
  context.fillRect(0, 0, leftPx, scene.heightPx);
  context.textBaseline = "middle";
  for (let rank = scene.firstRank; rank < scene.lastRank; rank++) {
    drawRank(context, scene, scene.y(rank), rank, addresses[rank] ?? "", shares[rank], rank === hoveredRank);
  }
  context.fillStyle = colours.card;
  context.fillRect(0, 0, leftPx, RULER_PX);
  if (leftPx < WIDE_GUTTER_PX) return;
  context.font = "11px Inter, ui-sans-serif, system-ui, sans-serif";
  context.fillStyle = colours.muted;
  context.textAlign = "right";
  if (layout.rankPx > 20) context.fillText("busy in sight", leftPx - 12, RULER_PX - 13);
  context.textAlign = "left";
}

function drawRank(context, scene, top, rank, address, share, isHovered) {
  const { colours, leftPx, layout } = scene;
  const compute = layout.lanes[0].heightPx;
  const isWide = leftPx >= WIDE_GUTTER_PX;
  const hasTwoLines = compute >= 30;
  const left = isWide ? 14 : 8;
  const line = hasTwoLines ? top + compute / 2 - 8 : top + Math.max(compute, 14) / 2;
  context.font = "600 12px Inter, ui-sans-serif, system-ui, sans-serif";
  context.fillStyle = isHovered ? colours.accent : colours.text;
  context.fillText(isWide ? `rank ${rank}` : `r${rank}`, left, line);
  context.font = "12px Inter, ui-sans-serif, system-ui, sans-serif";
  context.fillStyle = colours.muted;
  if (hasTwoLines && isWide) context.fillText(address, left, line + 16);
  if (Number.isFinite(share)) {
    context.textAlign = "right";
    context.fillText(`${Math.round(share * 100)} %`, leftPx - (isWide ? 12 : 6), line);
    context.textAlign = "left";
    drawBar(context, colours, left, top + compute + 5, leftPx - left - (isWide ? 12 : 6), share, layout.rankPx > 60);
  }
}

function drawBar(context, colours, x, y, width, share, hasRoom) {
  if (!hasRoom) return;
  context.fillStyle = colours.line;
  context.beginPath();
  context.roundRect(x, y, width, 3, 1.5);
  context.fill();
  context.fillStyle = colours.accent;
  context.beginPath();
  context.roundRect(x, y, Math.max(1, width * share), 3, 1.5);
  context.fill();
}
