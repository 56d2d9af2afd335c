/**
 * The run cut into tiles, as maps are: a tile of level `bits` is 1,024 cells of 2^bits ns, number n begins at n × its
 * length. What a view needs is a few tiles of one level, whatever the run's length; neighbours share them.
 */

const TILE_CELLS = 1024;
/** The server's zoom levels are no finer (trainer/trace/zoom.py). */
const LEAST_BITS = 10;
/** The whole run is kept in so many cells or fewer, at every time. */
const OVERVIEW_CELLS = 2048;

const bitsAtLeast = (ns) => Math.max(LEAST_BITS, Math.ceil(Math.log2(Math.max(1, ns))));

/** Cells no narrower than a column: each is seen, and no more come than are shown. */
export const levelOf = (nsPerColumn) => bitsAtLeast(nsPerColumn);
export const overviewLevel = (lengthNs) => bitsAtLeast(lengthNs / OVERVIEW_CELLS);

/** Of a run's spans, so many may lie in a tile that is read for one of them. */
const FEW_SPANS = 8000;

/** A level whose tiles hold few enough spans that the server answers with these, if they lie evenly. */
export function levelOfSpans({ firstStartNs, lastEndNs, total }) {
  return Math.max(LEAST_BITS, Math.floor(Math.log2((((lastEndNs - firstStartNs) / Math.max(1, total)) * FEW_SPANS) / TILE_CELLS)));
}

const lengthOf = (bits) => TILE_CELLS * 2 ** bits;

/** `{key, bits, fromNs, toNs, pixels}` of every tile of a level that touches a range. */
export function tilesOf(bits, fromNs, toNs) {
  const length = lengthOf(bits);
  const found = [];
  for (let number = Math.floor(fromNs / length); number * length < toNs; number++) {
    found.push({ key: `${bits}/${number}`, bits, fromNs: number * length, toNs: (number + 1) * length, pixels: TILE_CELLS });
  }
  return found;
}
