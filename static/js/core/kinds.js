/** What a rank can be doing: the numbers of trainer/trace/kinds.py, with their words and letters. */

export const LANE = Object.freeze({ COMPUTE: 0, COLLECTIVE: 1, POINT_TO_POINT: 2, HOST: 3 });
export const LANES = 4;
export const LANE_WORDS = ["compute", "collectives", "point to point", "host"];

export const KIND = Object.freeze({
  FORWARD: 1, BACKWARD: 2, BACKWARD_INPUT: 3, BACKWARD_WEIGHT: 4, OPTIMIZER: 5, WAIT: 6, SEND: 7, RECEIVE: 8,
  ALL_REDUCE: 9, ALL_GATHER: 10, REDUCE_SCATTER: 11, ALL_TO_ALL: 12, BROADCAST: 13, REDUCE: 14, GATHER: 15,
  SCATTER: 16, BARRIER: 17, DATA: 18, STEP: 19,
});

/** Tables by kind are this long: room for a few kinds more than there are. */
export const KINDS = 32;

/** [number, word, letter in a span, CSS variable of its colour]; kinds that share a colour are told apart by their words. */
const TABLE = [
  [KIND.FORWARD, "forward", "F", "--kind-forward"],
  [KIND.BACKWARD, "backward", "B", "--kind-backward"],
  [KIND.BACKWARD_INPUT, "backward, inputs", "B", "--kind-backward-input"],
  [KIND.BACKWARD_WEIGHT, "backward, weights", "W", "--kind-backward-weight"],
  [KIND.OPTIMIZER, "optimizer", "opt", "--kind-optimizer"],
  [KIND.WAIT, "wait", "", "--kind-wait"],
  [KIND.SEND, "send", "", "--kind-send"],
  [KIND.RECEIVE, "receive", "", "--kind-receive"],
  [KIND.ALL_REDUCE, "all-reduce", "", "--kind-all-reduce"],
  [KIND.ALL_GATHER, "all-gather", "", "--kind-all-gather"],
  [KIND.REDUCE_SCATTER, "reduce-scatter", "", "--kind-reduce-scatter"],
  [KIND.ALL_TO_ALL, "all-to-all", "", "--kind-all-to-all"],
  [KIND.BROADCAST, "broadcast", "", "--kind-broadcast"],
  [KIND.REDUCE, "reduce", "", "--kind-reduce-scatter"],
  [KIND.GATHER, "gather", "", "--kind-all-gather"],
  [KIND.SCATTER, "scatter", "", "--kind-broadcast"],
  [KIND.BARRIER, "barrier", "", "--kind-barrier"],
  [KIND.DATA, "loading data", "", "--kind-data"],
  [KIND.STEP, "step", "", "--kind-step"],
];

export const ALL_KINDS = TABLE.map(([kind]) => kind);

const byKind = (column, fallback) => {
  const table = new Array(KINDS).fill(fallback);
  for (const row of TABLE) table[row[0]] = row[column];
  return table;
};

export const KIND_WORD = byKind(1, "unknown kind");
export const KIND_LETTER = byKind(2, "");
export const KIND_VARIABLE = byKind(3, "--muted");

/** The work a device exists for: between a step's first and last of these, an idle compute lane is a bubble. */
export const MODEL_WORK = [KIND.FORWARD, KIND.BACKWARD, KIND.BACKWARD_INPUT, KIND.BACKWARD_WEIGHT];

const flags = (kinds) => {
  const table = new Uint8Array(KINDS);
  for (const kind of kinds) table[kind] = 1;
  return table;
};

export const IS_MODEL_WORK = flags(MODEL_WORK);
export const IS_COLLECTIVE = flags(ALL_KINDS.filter((kind) => kind >= KIND.ALL_REDUCE && kind <= KIND.BARRIER));

/** "F3 s4": the stage, which tells apart the chunks of a rank that holds several. */
export const markedLabelOf = (kind, microBatch, stage) => (stage >= 0 && IS_MODEL_WORK[kind] ? `${labelOf(kind, microBatch)} s${stage}` : labelOf(kind, microBatch));

/** "F3", "B0", "opt": what is written inside a span, empty where nothing is. */
export function labelOf(kind, microBatch) {
  const letter = KIND_LETTER[kind];
  return microBatch >= 0 && IS_MODEL_WORK[kind] ? letter + microBatch : letter;
}
