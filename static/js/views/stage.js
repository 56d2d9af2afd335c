/** The timeline with all that works on it: tools, table, keys, the buttons to follow and fit, and the place that is asked for. */

import { Colours } from "../core/colours.js";
import { Scheduler } from "../core/scheduler.js";
import { Interaction } from "../timeline/interact.js";
import { Timeline } from "../timeline/timeline.js";
import { bindFollowing } from "./following.js";
import { idealFetcher } from "./ideal.js";
import { bindTimelineKeys } from "./keys.js";
import { Place } from "./place.js";
import { SpanTable } from "./table.js";
import { Tools } from "./tools.js";

const PARTS = ["frame", "scroller", "stage", "base", "overlay", "map", "legend"];

/**
 * `part(name)` finds an element of the page; `hash`: what it opens at; `moreKeys`: the page's own. Returns
 * `{timeline, place, showFollowing}`; the last one shows that the run has ended.
 */
export function makeStage(part, { ranks, grid, stages, spec }, { readBase, hash, moreKeys = [] }) {
  const parts = Object.fromEntries(PARTS.map((name) => [name, part(name)]));
  const timeline = new Timeline(parts, { ranks, grid, gridSizes: spec.grid, stages, colours: new Colours(), scheduler: new Scheduler() });
  const interaction = new Interaction(timeline, part("announcer"));
  const table = new SpanTable(part("table"), part("table-toggle"), timeline);
  const fetchIdeal = idealFetcher(readBase, spec.pace.kind !== "real", timeline.trace);
  const tools = new Tools(part, timeline, part("announcer"), { fetchIdeal, toggleTable: () => table.flip() });
  bindTimelineKeys(timeline, interaction, tools, document.getElementById("keys-dialog"), moreKeys);
  return { timeline, place: new Place(timeline, tools, hash), showFollowing: bindFollowing(timeline, part) };
}
