/**
 * A step's ideal from the server's simulator. A paced run is held to its modelled durations; of a run at its real pace
 * the simulator is given the medians that were measured in the step.
 */

import { KIND, LANE } from "../core/kinds.js";
import { Refused, readJson } from "../core/reading.js";
import { idealOf } from "../timeline/ideal.js";
import { median } from "./now.js";

const LETTERS = { F: KIND.FORWARD, B: KIND.BACKWARD, I: KIND.BACKWARD_INPUT, W: KIND.BACKWARD_WEIGHT };

/** The median duration in ms of each action in a step, by letter. */
function measuredMs(trace, window) {
  const found = Object.fromEntries(Object.keys(LETTERS).map((letter) => [letter, []]));
  for (const lanes of trace.ranks) {
    const lane = lanes[LANE.COMPUTE];
    for (let place = lane.firstEndingAfter(window.startNs); place < lane.end && lane.startOf(place) < window.endNs; place = lane.next(place)) {
      const letter = Object.keys(LETTERS).find((each) => LETTERS[each] === lane.kindOf(place));
      if (letter) found[letter].push((lane.endOf(place) - lane.startOf(place)) / 1e6);
    }
  }
  return Object.entries(found).filter(([, values]) => values.length).map(([letter, values]) => [letter, median(values).toFixed(6)]);
}

/** `fetchIdeal(window)`: a promise of the ideal (timeline/ideal.js), or of words that say why there is none. */
export function idealFetcher(readBase, isPaced, trace) {
  return async (window) => {
    const given = isPaced ? [] : measuredMs(trace, window);
    const query = new URLSearchParams(given).toString();
    try {
      return idealOf(await readJson(`${readBase}ideal.json${query ? `?${query}` : ""}`), window);
    } catch (error) {
      return error instanceof Refused ? error.words : "The server does not answer, so there is no ideal to show.";
    }
  };
}
