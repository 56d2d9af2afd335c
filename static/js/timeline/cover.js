/**
 * What the page knows of each stretch of the run: its spans (held.js), or cells of several widths (tile.js), of which
 * the ones nearest to a column are drawn. All lanes share one cover.
 */

import { KIND, KINDS } from "../core/kinds.js";
import { Held } from "./held.js";
import { rasterLane } from "./raster.js";

export class Cover {
  constructor() {
    this.held = new Held();
    this.tiles = [];
    this.changed();
  }

  get isWhole() {
    return this.held.isWhole;
  }

  addTile(tile) {
    this.tiles.push(tile);
    this.changed();
  }

  removeTile(tile) {
    this.tiles = this.tiles.filter((each) => each !== tile);
    this.changed();
  }

  changed() {
    this.known = { lowest: NaN, highest: NaN, nsPerColumn: NaN, pieces: [] };
  }

  /**
   * Columns [lowest, highest) in pieces `{tile, from, to}`: what is in memory span by span has no tile. Pieces of tiles
   * may share a column at their seams, those of spans share none.
   */
  pieces(lowest, highest, nsPerColumn) {
    const { known } = this;
    if (known.lowest === lowest && known.highest === highest && known.nsPerColumn === nsPerColumn) return known.pieces;
    const pieces = [];
    let at = lowest;
    for (const [fromNs, toNs] of this.held.missing(lowest * nsPerColumn, highest * nsPerColumn)) {
      const from = Math.max(lowest, Math.floor(fromNs / nsPerColumn));
      const to = Math.min(highest, Math.ceil(toNs / nsPerColumn));
      if (from > at) pieces.push({ tile: null, from: at, to: from });
      tilesInto(pieces, this.#preferred(fromNs, toNs, nsPerColumn), Math.max(at, from), to, nsPerColumn);
      at = Math.max(at, to);
    }
    if (at < highest) pieces.push({ tile: null, from: at, to: highest });
    this.known = { lowest, highest, nsPerColumn, pieces };
    return pieces;
  }

  /** Tiles in a range, the best first: the narrowest cells that are no narrower than a column, else the widest. */
  #preferred(fromNs, toNs, nsPerColumn) {
    const rank = ({ cellNs }) => (cellNs >= nsPerColumn ? cellNs / nsPerColumn : 1e12 * (nsPerColumn / cellNs));
    return this.tiles.filter((tile) => tile.fromNs < toNs && tile.toNs > fromNs).sort((one, other) => rank(one) - rank(other));
  }

  /** Columns [lowest, highest) of a lane, as rasterLane draws them. */
  draw(lane, target, rowAt, firstColumn, lowest, highest, nsPerColumn, rgb, edge) {
    for (const { tile, from, to } of this.pieces(lowest, highest, nsPerColumn)) {
      if (tile) tile.draw(lane.number, target, rowAt, firstColumn, from, to, nsPerColumn, rgb);
      else rasterLane(lane, target, rowAt, firstColumn, from, to, nsPerColumn, rgb, edge);
    }
  }

  /** A lane's time at work in a range, waiting not counted. */
  busyNs(lane, fromNs, toNs) {
    if (this.held.holds(fromNs, toNs)) return lane.busyNs(fromNs, toNs);
    const totalNs = new Float64Array(KINDS);
    this.addTotals(lane, fromNs, toNs, totalNs, new Float64Array(KINDS));
    totalNs[KIND.WAIT] = 0;
    return totalNs.reduce((sum, ns) => sum + ns, 0);
  }

  /** Adds what a lane did in a range: its spans', where they are in memory, else what cells tell, whose spans are not counted. */
  addTotals(lane, fromNs, toNs, totalNs, counts) {
    const missing = this.held.missing(fromNs, toNs);
    let at = fromNs;
    for (const [from, to] of missing) {
      if (from > at) lane.addTotals(at, from, totalNs, counts);
      const columnNs = Math.max(1, (toNs - fromNs) / 1000);
      for (const [tile, begin, end] of timesOf(this.#preferred(from, to, columnNs), from, to)) tile.addTotals(lane.number, begin, end, totalNs);
      at = to;
    }
    if (at < toNs) lane.addTotals(at, toNs, totalNs, counts);
  }
}

function tilesInto(pieces, tiles, from, to, nsPerColumn, at = 0) {
  if (from >= to || at >= tiles.length) return;
  const begin = Math.max(from, Math.floor(tiles[at].fromNs / nsPerColumn));
  const end = Math.min(to, Math.ceil(tiles[at].toNs / nsPerColumn));
  if (begin >= end) return tilesInto(pieces, tiles, from, to, nsPerColumn, at + 1);
  pieces.push({ tile: tiles[at], from: begin, to: end });
  tilesInto(pieces, tiles, from, Math.min(end, Math.ceil(tiles[at].fromNs / nsPerColumn)), nsPerColumn, at + 1);
  tilesInto(pieces, tiles, Math.max(begin, Math.floor(tiles[at].toNs / nsPerColumn)), to, nsPerColumn, at + 1);
}

/** [tile, from, to] of the best tiles that make up a range of times. */
function timesOf(tiles, from, to, at = 0) {
  if (from >= to || at >= tiles.length) return [];
  const begin = Math.max(from, tiles[at].fromNs);
  const end = Math.min(to, tiles[at].toNs);
  if (begin >= end) return timesOf(tiles, from, to, at + 1);
  return [[tiles[at], begin, end], ...timesOf(tiles, from, begin, at + 1), ...timesOf(tiles, end, to, at + 1)];
}
