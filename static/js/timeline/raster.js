/**
 * One lane into one row of pixels. A column's colour is the kind that fills most of it, its opacity
 * how much of it is busy. Columns are absolute multiples of the time per pixel: a span lies in the
 * same columns wherever the view is, so a pan moves what is drawn and changes nothing.
 *
 * A group of the pyramid is taken only when it lies inside one column. Coverage is therefore exact,
 * and what a column looks like does not depend on where the drawing began, with one exception: spans
 * cut at the first column. So drawing begins two columns early.
 */

import { CHUNK_SPANS, LEVELS, LEVEL_AT } from "./chunk.js";
import { KIND, KINDS } from "../core/kinds.js";

const EARLY_COLUMNS = 2;

/** A span this wide gets a darker last column, which parts it from the next. */
const EDGE_FROM_PX = 4;

/** So much of a column is all of it: sums of floats fall short of it by a little. */
const FULL = 1 - 1e-9;

/** What is there is seen: the opacity of the least busy column, of 255. */
const LEAST_OPACITY = 60;

/** Of a column that is busy for this share of its time. */
export const opacityOf = (share) => (share >= FULL ? 255 : (LEAST_OPACITY + (255 - LEAST_OPACITY) * share) | 0);

/** The column that is being gathered: busy time by kind; all zero between columns. */
const busyNs = new Float64Array(KINDS);

/**
 * Draws columns [lowest, highest) of `lane` into `target` (pixels as 0xAABBGGRR), where `rowAt` holds
 * `firstColumn`. Column c covers [c, c + 1) × nsPerColumn. The pixels must be clear.
 *
 * Hot path: a million spans in 64 lanes have to fit a frame. So a column's sums live in
 * locals that no closure shares, and times are compared with the column's end instead of being divided.
 */
export function rasterLane(lane, target, rowAt, firstColumn, lowest, highest, nsPerColumn, rgb, edge) {
  const { chunks, kinds: laneKinds } = lane;
  const place = lane.firstEndingAfter((lowest - EARLY_COLUMNS) * nsPerColumn);
  let at = Math.floor(place / CHUNK_SPANS);
  let row = place % CHUNK_SPANS;
  if (at < chunks.length && row >= chunks[at].spans) {
    at++;
    row = 0;
  }
  if (at >= chunks.length) return;
  let { start_ns: starts, duration_ns: durations, kind: kinds, spans, endNs, busyNs: groupBusyNs, dominantNs, dominant } = chunks[at];
  const columnsPerNs = 1 / nsPerColumn;
  const untilNs = highest * nsPerColumn;
  const from = lowest - firstColumn; // columns from here on are counted from firstColumn, as whole numbers of 32 bits
  const to = highest - firstColumn;
  if (starts[row] >= untilNs) return;
  let column = Math.max(from - EARLY_COLUMNS, Math.floor(starts[row] * columnsPerNs) - firstColumn) | 0;
  let reachingNs = 0; // the end of the span that reaches into the column from the left
  let reaching = 0; // its kind
  let beganNs = 0; // its start
  for (;;) {
    const fromNs = (firstColumn + column) * nsPerColumn;
    const toNs = (firstColumn + column + 1) * nsPerColumn;
    let totalNs = reachingNs > fromNs ? Math.min(reachingNs, toNs) - fromNs : 0;
    busyNs[reaching] = totalNs;
    let start = Infinity;
    let isOver = reachingNs > toNs;
    for (;;) {
      if (row >= spans) {
        if (++at >= chunks.length) {
          start = Infinity;
          break;
        }
        row = 0;
        ({ start_ns: starts, duration_ns: durations, kind: kinds, spans, endNs, busyNs: groupBusyNs, dominantNs, dominant } = chunks[at]);
      }
      start = starts[row];
      if (start >= toNs) break;
      let of = 0;
      let shareNs = 0;
      let index = row >> 2;
      if ((row & 3) === 0 && row + 4 <= spans && endNs[index] <= toNs && start >= fromNs) {
        let taken = 4;
        for (let level = 1, bits = 4; level < LEVELS && (row & ((1 << bits) - 1)) === 0 && row + (1 << bits) <= spans; level++, bits += 2) {
          const higher = LEVEL_AT[level] + (row >> bits);
          if (endNs[higher] > toNs) break;
          index = higher;
          taken = 1 << bits;
        }
        of = dominant[index];
        shareNs = dominantNs[index];
        totalNs += groupBusyNs[index] - shareNs;
        row += taken;
      } else {
        of = kinds[row];
        const endsNs = start + durations[row++];
        if (of === KIND.WAIT || endsNs <= fromNs) continue;
        shareNs = endsNs - start;
        if (start < fromNs) shareNs = endsNs - fromNs;
        if (endsNs > toNs) {
          shareNs -= endsNs - toNs;
          reachingNs = endsNs;
          reaching = of;
          beganNs = start;
          isOver = true;
        }
      }
      totalNs += shareNs;
      busyNs[of] += shareNs;
    }
    let best = 0;
    let bestNs = 0;
    for (let each = 0; each < laneKinds.length; each++) {
      const ns = busyNs[laneKinds[each]];
      busyNs[laneKinds[each]] = 0;
      if (ns > bestNs) {
        bestNs = ns;
        best = laneKinds[each];
      }
    }
    if (totalNs > 0 && column >= from && column < to) {
      target[rowAt + column] = (opacityOf(totalNs * columnsPerNs) << 24) | rgb[best];
    }
    if (isOver) {
      const ends = Math.floor(reachingNs * columnsPerNs) - firstColumn;
      const last = Math.max(column + 1, ends > to ? to : ends) | 0;
      const colour = 0xff000000 | rgb[reaching];
      for (let each = Math.max(column + 1, from); each < last; each++) target[rowAt + each] = colour;
      if (reachingNs - beganNs > EDGE_FROM_PX * nsPerColumn && ends > from && ends <= to) {
        target[rowAt + ends - 1] = 0xff000000 | edge[reaching];
      }
      column = last;
    } else {
      if (start >= untilNs) return;
      column = Math.max(column + 1, Math.floor(start * columnsPerNs) - firstColumn) | 0;
      reachingNs = 0;
    }
    if (column >= to) return;
  }
}
