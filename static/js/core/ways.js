/** Pipelines that micro-batches enter at both ends: half of them go down the ranks, half up, through a second copy of every stage. */

/** `stages` are those of each place in the pipeline. */
export function goesBothWays(stages) {
  const held = stages.flat();
  return new Set(held).size < held.length;
}

/** Where they go both ways, which way those in a stage go at a place: "↓" to later ranks, "↑" to earlier ones. */
export const wayOf = (place, stage) => (stage === place ? "↓" : "↑");
