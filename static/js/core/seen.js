// What has come of each rank: doubles are dropped, halves of doubles too, and gaps are counted.
//
// A rank numbers its frames from 1. From a sealed segment its frames come merged into one, under the
// last one's number; a page that was away in the middle of a segment then holds a part of it already.

const KEPT_SPANS = 80_000; // more than one segment holds, so that whatever a merged frame repeats is still known
const KEPT_FRAMES = 20_000;

const keyOfSpan = ({ spans }, i) => `${spans.lane[i]} ${spans.kind[i]} ${spans.start_ns[i]} ${spans.duration_ns[i]}`;
const keyOfCounter = ({ counters, strings }, i) => `${strings[counters.name[i]]} ${counters.step[i]} ${counters.time_ns[i]}`;
const keyOfMark = ({ marks, strings }, i) => `${strings[marks.kind[i]]} ${strings[marks.text[i]]} ${marks.time_ns[i]}`;

export class Seen {
  bytes = 0;
  #beginsLater;
  #frames = 0;
  #duplicates = 0;
  #ranks = new Map();
  #recent = [];
  #recentSpans = 0;

  /** `beginsLater`: what ranks recorded before the first frame that comes is not missing. */
  constructor({ beginsLater = false } = {}) {
    this.#beginsLater = beginsLater;
  }

  /** The frame, or what is new in it; null when it came before. */
  take(frame, merged = false) {
    const rank = this.#rank(frame);
    if (frame.sequence <= rank.sequence) {
      this.#duplicates++;
      return null;
    }
    const recorded = frame.spansBefore + frame.spans.length;
    const mayOverlap = merged && rank.sequence > 0 && !rank.wasMerged;
    if (!merged) rank.missingFrames += frame.sequence - rank.sequence - 1;
    const fresh = mayOverlap ? this.#freshPart(frame, rank.recorded) : frame;
    rank.sequence = frame.sequence;
    rank.wasMerged = merged;
    rank.recorded = Math.max(rank.recorded, recorded);
    rank.dropped = Math.max(rank.dropped, frame.spansDropped);
    rank.spans += fresh.spans.length;
    this.#frames++;
    this.#keep(fresh);
    return fresh;
  }

  /** `missing_*` is what later frames say there was and what has not come; `dropped_spans` is what ranks gave up. */
  stats() {
    const stats = {
      frames: this.#frames, spans: 0, duplicates: this.#duplicates, missing_frames: 0, missing_spans: 0, dropped_spans: 0,
      bytes: this.bytes,
    };
    for (const { spans, recorded, dropped, missingFrames } of this.#ranks.values()) {
      stats.spans += spans;
      stats.missing_frames += missingFrames;
      stats.missing_spans += Math.max(0, recorded - spans - dropped);
      stats.dropped_spans += dropped;
    }
    return stats;
  }

  #rank({ rank, sequence, spansBefore, spansDropped }) {
    if (!this.#ranks.has(rank)) {
      const before = this.#beginsLater ? { sequence: sequence - 1, spans: spansBefore - spansDropped } : { sequence: 0, spans: 0 };
      this.#ranks.set(rank, { ...before, wasMerged: false, recorded: 0, dropped: 0, missingFrames: 0 });
    }
    return this.#ranks.get(rank);
  }

  #keep(frame) {
    this.#recent.push(frame);
    this.#recentSpans += frame.spans.length;
    while (this.#recentSpans > KEPT_SPANS + frame.spans.length || this.#recent.length > KEPT_FRAMES) {
      this.#recentSpans -= this.#recent.shift().spans.length;
    }
  }

  #freshPart(frame, recorded) {
    const known = this.#recent.filter(({ rank }) => rank === frame.rank);
    return {
      ...frame,
      spansBefore: Math.max(frame.spansBefore, recorded),
      spans: unknown(frame, "spans", known, keyOfSpan),
      counters: unknown(frame, "counters", known, keyOfCounter),
      marks: unknown(frame, "marks", known, keyOfMark),
    };
  }
}

/** The rows of one of the frame's tables that no known frame holds. */
function unknown(frame, tableName, knownFrames, keyOf) {
  const keys = new Set();
  for (const known of knownFrames) {
    for (let i = 0; i < known[tableName].length; i++) keys.add(keyOf(known, i));
  }
  const table = frame[tableName];
  const isNew = Uint8Array.from({ length: table.length }, (_, i) => (keys.has(keyOf(frame, i)) ? 0 : 1));
  const rows = { length: isNew.reduce((sum, one) => sum + one, 0) };
  for (const [name, column] of Object.entries(table)) {
    if (name !== "length") rows[name] = column.filter((_, i) => isNew[i]);
  }
  return rows;
}
