/**
 * The spans that a query finds, lane by lane, in the order of their starts. A search looks at all spans once, within a
 * budget a frame, and then at those that come in. Of a run of which the page holds parts these are what is in sight; the
 * whole of it is the server's to search (whole_search.js).
 */

import { LANES } from "../core/kinds.js";
import { CHUNK_SPANS } from "./chunk.js";
import { parseQuery } from "./query.js";

const BUDGET_MS = 4;

/** How many of the sorted `values` are below `limit`. */
export function below(values, limit) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Matches are walked in the order of their starts, and those of one moment by rank and lane. */
const orderOf = ({ rank, lane }) => rank * LANES + lane;
/** Times are nanoseconds: nothing shorter lies between two of them. */
const after = (timeNs) => timeNs + 0.5;

export class Search {
  /** `onChange()` is called when there are more matches, or others. */
  constructor(trace, scheduler, onChange) {
    Object.assign(this, { trace, scheduler, onChange, text: "" });
    this.whole = null; // where there is a server to ask
    this.#forget();
    this.query = parseQuery("", trace);
    scheduler.register("search", () => this.#scan());
  }

  #forget() {
    this.count = 0;
    this.found = new Map(); // by lane: {lane, starts, ends, chunk, row, late}
    this.isDone = true;
  }

  get isOn() {
    return this.query.test !== null;
  }

  /** Who knows all matches: this one, or the server where the page holds parts of the run. */
  get teller() {
    return this.whole === null || this.trace.isWhole ? this : this.whole;
  }

  set(text) {
    this.text = text;
    this.query = parseQuery(text, this.trace);
    this.#forget();
    this.whole?.set("");
    this.note();
    this.onChange();
  }

  /** Spans came in. */
  note() {
    if (!this.isOn) return;
    if (this.teller === this.whole && !this.whole.isOn) this.whole.set(this.text);
    this.whole?.note();
    this.isDone = false;
    this.scheduler.ask("search");
  }

  /** True while spans are left to look at. */
  #scan() {
    if (!this.isOn) return false;
    const began = performance.now();
    const before = this.count;
    let isLeft = false;
    for (const lanes of this.trace.ranks) {
      for (const lane of lanes) {
        if (!this.query.holds(lane)) continue;
        if (performance.now() - began > BUDGET_MS) isLeft = true;
        else isLeft = this.#scanLane(lane, began) || isLeft;
        if (isLeft) break;
      }
      if (isLeft) break;
    }
    const wasDone = this.isDone;
    this.isDone = !isLeft;
    if (this.count !== before || wasDone !== this.isDone) this.onChange();
    return isLeft;
  }

  #scanLane(lane, began) {
    let state = this.found.get(lane);
    if (!state || state.late !== lane.lateSpans) {
      this.count -= state?.starts.length ?? 0;
      state = { lane, starts: [], ends: [], chunk: 0, row: 0, late: lane.lateSpans };
      this.found.set(lane, state);
    }
    const { test } = this.query;
    for (; state.chunk < lane.chunks.length; state.chunk++, state.row = 0) {
      const chunk = lane.chunks[state.chunk];
      for (; state.row < chunk.spans; state.row++) {
        if (!test(chunk, state.row)) continue;
        state.starts.push(chunk.start_ns[state.row]);
        state.ends.push(chunk.start_ns[state.row] + chunk.duration_ns[state.row]);
        this.count++;
      }
      if (chunk.spans < CHUNK_SPANS && state.chunk === lane.chunks.length - 1) return false;
      if (performance.now() - began > BUDGET_MS) {
        state.chunk++;
        state.row = 0;
        return state.chunk < lane.chunks.length;
      }
    }
    return false;
  }

  /** The match after (or before) a span in time, or from a time on; null if there is none. */
  next(direction, from) {
    let best = null;
    for (const { lane, starts } of this.found.values()) {
      const isLater = orderOf(lane) > orderOf(from);
      const isFrom = orderOf(lane) === orderOf(from);
      const passed = below(starts, isLater || (isFrom && direction < 0) ? from.startNs : after(from.startNs));
      const at = direction > 0 ? passed : passed - 1;
      const startNs = starts[at];
      if (startNs === undefined || (best && direction * (startNs - best.startNs || orderOf(lane) - orderOf(best.lane)) >= 0)) continue;
      best = { lane, startNs };
    }
    return best && best.lane.spanStartingAt(best.startNs);
  }

  /** How many matches come before a span in the order in which they are walked; -1 if it is none. */
  placeOf(span) {
    const own = this.found.get(this.trace.lane(span.rank, span.lane))?.starts ?? [];
    if (own[below(own, span.startNs)] !== span.startNs) return -1;
    let before = 0;
    for (const { lane, starts } of this.found.values()) before += below(starts, orderOf(lane) < orderOf(span) ? after(span.startNs) : span.startNs);
    return before;
  }

  /** Calls `draw(fromNs, toNs)` for a lane's matches in a range; those nearer than `apartNs` are one. */
  each(lane, fromNs, toNs, apartNs, draw) {
    if (this.teller !== this) {
      for (const [from, to] of this.trace.cover.held.missing(fromNs, toNs)) this.whole.lit.each(lane.number, from, to, draw);
    }
    const state = this.found.get(lane);
    if (!state) return;
    const { starts, ends } = state;
    for (let at = below(ends, fromNs); at < starts.length && starts[at] < toNs;) {
      const more = Math.max(at + 1, below(starts, starts[at] + apartNs));
      draw(starts[at], Math.max(ends[at], ends[more - 1]));
      at = more;
    }
  }
}
