// Spans for the timeline's tests: the same for the same seed.

export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A decoded frame as core/frame.js makes them, of rows {start, duration, kind, lane, step, microBatch, stage, peer, sequence, group}. */
export function frameOf(rank, rows) {
  const column = (Type, value) => Type.from(rows, value);
  const strings = ["", ...new Set(rows.map((row) => row.group).filter(Boolean))];
  return {
    rank, strings, marks: { length: 0 },
    spans: {
      length: rows.length,
      start_ns: column(Float64Array, (row) => row.start), duration_ns: column(Float64Array, (row) => row.duration),
      bytes: column(Float64Array, (row) => row.bytes ?? -1), step: column(Int32Array, (row) => row.step ?? -1),
      sequence: column(Int32Array, (row) => row.sequence ?? -1), peer: column(Int32Array, (row) => row.peer ?? -1),
      micro_batch: column(Int16Array, (row) => row.microBatch ?? -1), stage: column(Int16Array, (row) => row.stage ?? -1),
      name: column(Uint16Array, () => 0), group: column(Uint16Array, (row) => strings.indexOf(row.group ?? "")),
      kind: column(Uint8Array, (row) => row.kind), lane: column(Uint8Array, (row) => row.lane ?? 0),
    },
  };
}

/** Spans of one lane that follow each other with gaps of all sizes. */
export function manyRows(count, seed, { longestNs = 2e5, lane = 0, kinds = [1, 2, 4, 5], step = 0, startNs = 0 } = {}) {
  const next = dice(seed);
  const rows = [];
  let at = startNs;
  for (let i = 0; i < count; i++) {
    const duration = Math.round(longestNs * next() ** 3) + 50;
    rows.push({ start: at, duration, kind: kinds[Math.floor(next() * kinds.length)], lane, step, microBatch: i % 8 });
    at += duration + (next() < 0.5 ? 0 : Math.round(longestNs * next() ** 4));
  }
  return rows;
}
