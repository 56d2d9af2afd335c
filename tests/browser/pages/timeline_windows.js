// A reader over windows that the tests' server answers, and what of the run the page then holds.

import { readBytes } from "/static/js/core/reading.js";
import { Reader } from "/static/js/timeline/reader.js";

/** `sealed`: as dashboard/live/opening.py says; without it all comes by `append`. */
export function openReader(timeline, { sealed = null, mostSpans = 1e9, mostBytes = 96e6 } = {}) {
  const givenUp = [];
  const read = (from, to, pixels, signal) => {
    signal.addEventListener("abort", () => givenUp.push(from));
    return readBytes(`/window/?from=${Math.floor(from)}&to=${Math.ceil(to)}&pixels=${pixels}`, signal);
  };
  const reader = Object.assign(new Reader(timeline, { read, mostSpans, mostBytes }), { givenUp });
  if (sealed) reader.begin(sealed);
  return reader;
}

/** Done when all that the view wants is here, what lies beside it too. */
export async function settled(reader) {
  const { requests } = reader;
  const untilMs = performance.now() + 20_000;
  while (requests.wishes.length || requests.running.size) {
    if (performance.now() > untilMs) throw new Error(`not read: ${requests.wishes.map(({ key }) => key)}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

/** Opacity of columns [first, first + count) of a lane, 0 to 255. */
export function drawn(timeline, rank, lane, first, count, nsPerColumn) {
  const { trace, colours } = timeline;
  const pixels = new Uint32Array(count);
  trace.cover.draw(trace.lane(rank, lane), pixels, 0, first, first, first + count, nsPerColumn, colours.rgb, colours.edge);
  return [...pixels].map((pixel) => pixel >>> 24);
}

/** [start, duration, kind] of all spans of a lane that are in memory, in its order. */
export function held(timeline, rank, lane) {
  return timeline.trace.lane(rank, lane).chunks.flatMap((chunk) => (
    Array.from({ length: chunk.spans }, (_, row) => [chunk.start_ns[row], chunk.duration_ns[row], chunk.kind[row]])));
}
