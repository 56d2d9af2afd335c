/** Which ranks stand together, in what order, and under which words. */

import { Layout } from "./layout.js";

/** What ranks can be grouped by: the axes of the grid, and where they are; `words` name one group. */
export const AXES = [
  { axis: "pp", name: "stage", words: (index, stages) => (stages.length > 1 ? `stages ${stages.join(", ")}` : `stage ${stages[0] ?? index}`) },
  { axis: "dp", name: "copy", words: (index) => `copy ${index}` },
  { axis: "cp", name: "part", words: (index) => `part ${index}` },
  { axis: "tp", name: "slice", words: (index) => `slice ${index}` },
  { axis: "ep", name: "expert", words: (index) => `expert ${index}` },
  { axis: "server", name: "server", words: (index) => `server ${index}` },
  { axis: "rack", name: "rack", words: (index) => `rack ${index}` },
];

/** Those along which a run has more than one rank. */
export const axesOf = (gridSizes, places = {}) => AXES.filter(({ axis }) => (gridSizes[axis] ?? new Set(places[axis]).size) > 1);

/**
 * `[{key, label, ranks, isFolded}]`, every rank once. `by` is an axis, or "" for one group without a label; `places`
 * has each rank's server and rack; `folded` holds keys; with `lateness` (ns by rank) the latest ranks of a group come first, else the order is that of the ranks.
 */
export function arrange({ ranks, grid = [], stages = [], places = {}, by = "", folded = new Set(), lateness = null }) {
  const axis = AXES.find((each) => each.axis === by);
  const byKey = new Map();
  for (let rank = 0; rank < ranks; rank++) {
    const index = axis ? grid[rank]?.[by] ?? places[by]?.[rank] ?? 0 : 0;
    const key = axis ? `${by}${index}` : "";
    if (!byKey.has(key)) byKey.set(key, { key, label: axis ? axis.words(index, by === "pp" ? stages[index] ?? [] : []) : "", index, ranks: [] });
    byKey.get(key).ranks.push(rank);
  }
  const groups = [...byKey.values()].sort((one, other) => one.index - other.index);
  for (const group of groups) {
    group.isFolded = folded.has(group.key);
    if (lateness) group.ranks.sort((one, other) => lateness[other] - lateness[one] || one - other);
  }
  return groups;
}

/**
 * By how much each rank worked longer than the median rank in the same time, ns: whoever works longest is whom the others
 * wait for, be it at a collective or along a pipeline.
 */
export function latenessOf(busyNs) {
  const sorted = [...busyNs].sort((one, other) => one - other);
  const median = sorted[sorted.length >> 1] ?? 0;
  return busyNs.map((ns) => ns - median);
}

/** What the visitor chose of all that, and the layout that follows from it. */
export class Arrangement {
  constructor({ ranks, grid, gridSizes, stages, places }) {
    Object.assign(this, { ranks, grid, stages, places, by: "", folded: new Set(), isSorted: false, isBare: false });
    this.axes = axesOf(gridSizes, places);
    this.#layOut(null);
  }

  /** `getBusyNs()` tells each rank's time at work, by which ranks are sorted. */
  change(changes, getBusyNs) {
    if (changes.by !== undefined && changes.by !== this.by) this.folded = new Set();
    Object.assign(this, changes);
    this.#layOut(this.isSorted ? latenessOf(getBusyNs()) : null);
  }

  fold(key) {
    const folded = new Set(this.folded);
    if (!folded.delete(key)) folded.add(key);
    return folded;
  }

  get keys() {
    return this.layout.groups.filter(({ label }) => label).map(({ key }) => key);
  }

  #layOut(lateness) {
    this.layout = new Layout(arrange({ ...this, lateness }), { hasThinLanes: !this.isBare });
  }
}
