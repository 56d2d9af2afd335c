/** Left of the lanes: the rank, its place in the grid, and how busy its compute lane is in the range in sight. */

import { LANE } from "../core/kinds.js";
import { HEADER_PX, RULER_PX } from "./layout.js";
import { TEXT_PX } from "./ruler.js";

export const WIDE_GUTTER_PX = 122;
export const NARROW_GUTTER_PX = 64;

const FONT = "Inter, ui-sans-serif, system-ui, sans-serif";
const AXIS_WORD = { dp: "copy", pp: "stage", cp: "part", tp: "slice", ep: "experts" };
/** A slot lower than this has no room for words. */
const LOWEST_TEXT_PX = 12;

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

/** Per rank the time in a range in which the compute lane was at work, ns. */
export function busyNs(trace, fromNs, toNs) {
  return trace.ranks.map((lanes) => trace.cover.busyNs(lanes[LANE.COMPUTE], fromNs, toNs));
}

/** The share of the visible part of the run, per rank, in which the compute lane was at work. */
export function busyShares(trace, fromNs, toNs) {
  const from = Math.max(fromNs, trace.firstStartNs);
  const to = Math.min(toNs, trace.lastEndNs);
  return to > from ? busyNs(trace, from, to).map((ns) => Math.min(1, ns / (to - from))) : trace.ranks.map(() => NaN);
}

export function drawGutter(context, scene, { addresses, shares, hoveredRank }) {
  const { colours, leftPx, layout } = scene;
  context.fillStyle = colours.card;
  context.fillRect(0, 0, leftPx, scene.heightPx);
  context.textBaseline = "middle";
  for (const slot of scene.slots) {
    if (slot.isFolded || slot.heightPx < LOWEST_TEXT_PX) continue;
    drawRank(context, scene, slot, addresses[slot.rank] ?? "", shares[slot.rank], slot.rank === hoveredRank);
  }
  if (layout.rankPx < LOWEST_TEXT_PX) drawSparse(context, scene, hoveredRank);
  for (const header of layout.headers) drawHeader(context, scene, header, shares);
  context.fillStyle = colours.card;
  context.fillRect(0, 0, leftPx, RULER_PX);
  if (leftPx < WIDE_GUTTER_PX) return;
  context.font = `11px ${FONT}`;
  context.fillStyle = colours.muted;
  context.textAlign = "right";
  context.fillText("busy in sight", leftPx - 12, TEXT_PX);
  context.textAlign = "left";
}

/** "▾ stage 1", and of a folded group how many ranks it has and how busy they are. */
function drawHeader(context, scene, { topPx, label, ranks, isFolded }, shares) {
  const { colours, leftPx } = scene;
  const middle = RULER_PX + topPx - scene.scrollPx + HEADER_PX / 2;
  if (middle < RULER_PX - HEADER_PX || middle > scene.heightPx + HEADER_PX) return;
  context.fillStyle = colours.muted;
  context.beginPath();
  const x = leftPx < WIDE_GUTTER_PX ? 6 : 14;
  if (isFolded) context.moveTo(x, middle - 4), context.lineTo(x + 5, middle), context.lineTo(x, middle + 4);
  else context.moveTo(x - 1, middle - 2), context.lineTo(x + 7, middle - 2), context.lineTo(x + 3, middle + 3);
  context.fill();
  context.font = `600 12px ${FONT}`;
  context.fillStyle = colours.text;
  context.fillText(label, x + 12, middle, leftPx - x - 16);
  if (!isFolded) return;
  const known = ranks.map((rank) => shares[rank]).filter(Number.isFinite);
  const mean = known.reduce((sum, share) => sum + share, 0) / known.length;
  context.font = `11px ${FONT}`;
  context.fillStyle = colours.muted;
  const words = leftPx < WIDE_GUTTER_PX ? `${ranks.length}` : `${ranks.length} rank${ranks.length === 1 ? "" : "s"}${known.length ? ` · ${Math.round(mean * 100)} %` : ""}`;
  context.fillText(words, x, middle + HEADER_PX / 2 + 8);
}

/** Where a rank is lower than a line, every eighth one is named. */
function drawSparse(context, scene, hoveredRank) {
  const { colours, leftPx } = scene;
  context.font = `10.5px ${FONT}`;
  for (const slot of scene.slots) {
    if (slot.isFolded || (slot.rank % 8 && slot.rank !== hoveredRank)) continue;
    context.fillStyle = slot.rank === hoveredRank ? colours.accent : colours.muted;
    context.fillText(leftPx < WIDE_GUTTER_PX ? `r${slot.rank}` : `rank ${slot.rank}`, leftPx < WIDE_GUTTER_PX ? 8 : 14, scene.y(slot.rank) + slot.heightPx / 2);
  }
}

function drawRank(context, scene, slot, address, share, isHovered) {
  const { colours, leftPx, layout } = scene;
  const top = scene.y(slot.rank);
  const compute = slot.lanes[0].heightPx;
  const isWide = leftPx >= WIDE_GUTTER_PX;
  const hasTwoLines = compute >= 30;
  const left = isWide ? 14 : 8;
  const line = hasTwoLines ? top + compute / 2 - 8 : top + Math.max(compute, 14) / 2;
  context.font = `600 12px ${FONT}`;
  context.fillStyle = isHovered ? colours.accent : colours.text;
  context.fillText(isWide ? `rank ${slot.rank}` : `r${slot.rank}`, left, line);
  context.font = `12px ${FONT}`;
  context.fillStyle = colours.muted;
  if (hasTwoLines && isWide) context.fillText(address, left, line + 16);
  if (Number.isFinite(share)) {
    context.textAlign = "right";
    context.fillText(`${Math.round(share * 100)} %`, leftPx - (isWide ? 12 : 6), line);
    context.textAlign = "left";
    drawBar(context, colours, left, top + compute + 5, leftPx - left - (isWide ? 12 : 6), share, layout.rankPx > 60 && layout.hasThinLanes);
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
