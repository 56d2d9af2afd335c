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

/** What is there is seen: the opacity of the least busy column, of 255. */
const LEAST_OPACITY = 60;

/** The column that is being gathered: busy share by kind, valid where `stamp` is the column's own. */
const busy = new Float64Array(KINDS);
const stamp = new Float64Array(KINDS);
let turn = 0;

/**
 * Draws columns [lowest, highest) of `lane` into `target` (pixels as 0xAABBGGRR), where `rowAt` holds
 * `firstColumn`. Column c covers [c, c + 1) × nsPerColumn. The pixels must be clear.
 *
 * Hot path: a million spans in 64 lanes have to fit a frame or two, so a column's sums live in locals
 * and the loop calls nothing but `flush`, which is inlined.
 */
export function rasterLane(lane, target, rowAt, firstColumn, lowest, highest, nsPerColumn, rgb, edge) {
  const columnsPerNs = 1 / nsPerColumn;
  const fromColumn = lowest - EARLY_COLUMNS;
  const offset = rowAt - firstColumn;
  const untilNs = highest * nsPerColumn;
  let column = -Infinity;
  let total = 0;
  let best = 0;
  let bestShare = 0;
  let mark = ++turn;

  const flush = (next) => {
    if (total > 0 && column >= lowest && column < highest) {
      const opacity = total >= 1 ? 255 : (LEAST_OPACITY + (255 - LEAST_OPACITY) * total) | 0;
      const at = offset + column;
      if (target[at] >>> 24 <= opacity) target[at] = ((opacity << 24) | rgb[best]) >>> 0;
    }
    total = 0;
    bestShare = 0;
    mark = ++turn;
    column = next;
  };

  const place = lane.firstEndingAfter(fromColumn * nsPerColumn);
  let row = place % CHUNK_SPANS;
  for (let at = Math.floor(place / CHUNK_SPANS); at < lane.chunks.length; at++, row = 0) {
    const { start_ns: starts, duration_ns: durations, kind: kinds, spans, endNs, busyNs, dominantNs, dominant } = lane.chunks[at];
    while (row < spans) {
      const start = starts[row];
      if (start >= untilNs) {
        flush(column);
        return;
      }
      const begin = start * columnsPerNs;
      const first = Math.floor(begin);
      if (first !== column) flush(first);

      // The largest group that begins here and ends in the same column.
      let taken = 0;
      let group = 0;
      for (let level = 0, bits = 2; level < LEVELS && (row & ((1 << bits) - 1)) === 0 && row + (1 << bits) <= spans; level++, bits += 2) {
        const index = LEVEL_AT[level] + (row >> bits);
        if (Math.floor(endNs[index] * columnsPerNs) !== first) break;
        taken = 1 << bits;
        group = index;
      }
      let kind;
      let share;
      let last = first;
      let end = 0;
      if (taken) {
        row += taken;
        kind = dominant[group];
        share = dominantNs[group] * columnsPerNs;
        total += busyNs[group] * columnsPerNs - share;
      } else {
        kind = kinds[row];
        end = (start + durations[row++]) * columnsPerNs;
        if (kind === KIND.WAIT || end <= fromColumn) continue;
        last = Math.floor(end);
        share = (last === first ? end : first + 1) - begin;
      }
      total += share;
      const sum = stamp[kind] === mark ? busy[kind] + share : share;
      stamp[kind] = mark;
      busy[kind] = sum;
      if (sum > bestShare) {
        bestShare = sum;
        best = kind;
      }
      if (last === first) continue;

      // A span over several columns: the first is gathered above, the whole ones are filled, the last is begun.
      flush(last);
      if (last > first + 1 && last > lowest) {
        const colour = (0xff000000 | rgb[kind]) >>> 0;
        const to = offset + Math.min(last, highest);
        for (let pixel = offset + Math.max(first + 1, lowest); pixel < to; pixel++) target[pixel] = colour;
        if (end - begin > EDGE_FROM_PX && last <= highest) target[offset + last - 1] = (0xff000000 | edge[kind]) >>> 0;
      }
      total = bestShare = busy[kind] = end - last;
      stamp[kind] = mark;
      best = kind;
    }
  }
  flush(column);
}
