/** The timeline with all that works on it: tools, table, keys, the buttons to follow and fit, and the place that is asked for. */

import { Colours } from "../core/colours.js";
import { readBytes, readJson } from "../core/reading.js";
import { Scheduler } from "../core/scheduler.js";
import { Interaction } from "../timeline/interact.js";
import { Reader } from "../timeline/reader.js";
import { WholeSearch } from "../timeline/whole_search.js";
import { Timeline } from "../timeline/timeline.js";
import { bindFollowing } from "./following.js";
import { idealFetcher } from "./ideal.js";
import { bindTimelineKeys } from "./keys.js";
import { Place } from "./place.js";
import { bindReading } from "./reading.js";
import { SpanTable } from "./table.js";
import { Tools } from "./tools.js";

const PARTS = ["frame", "scroller", "stage", "base", "overlay", "map", "legend"];

/** The server reads windows of whole nanoseconds. */
const windowReader = (readBase) => (fromNs, toNs, pixels, signal) => readBytes(
  `${readBase}window/?${new URLSearchParams({ from: Math.floor(fromNs), to: Math.ceil(toNs), pixels })}`, signal,
);

const searcher = (readBase) => {
  const address = (fields) => `${readBase}search/?${new URLSearchParams(fields)}`;
  return {
    count: (text, after, signal) => readJson(address({ q: text, after }), signal),
    matches: (text, segment, signal) => readBytes(address({ q: text, segment }), signal),
  };
};

/**
 * `part(name)` finds an element of the page; `hash`: what it opens at; `moreKeys`: the page's own; `opening`: what the
 * server says of how much to hold (dashboard/live/opening.py), null in a page that has no server. Returns
 * `{timeline, place, reader, showFollowing, after}`: `showFollowing` shows that the run has ended, `after` is the cursor to
 * begin with.
 */
export function makeStage(part, { ranks, grid, stages, places, spec, has_ended: hasEnded }, { readBase, opening, hash, moreKeys = [] }) {
  const parts = Object.fromEntries(PARTS.map((name) => [name, part(name)]));
  const timeline = new Timeline(parts, { ranks, grid, gridSizes: spec.grid, stages, places, hasEnded, colours: new Colours(), scheduler: new Scheduler() });
  const interaction = new Interaction(timeline, part("announcer"));
  const table = new SpanTable(part("table"), part("table-toggle"), timeline);
  const fetchIdeal = idealFetcher(readBase, spec.pace.kind !== "real", timeline.trace);
  const tools = new Tools(part, timeline, part("announcer"), { fetchIdeal, toggleTable: () => table.flip() });
  bindTimelineKeys(timeline, interaction, tools, document.getElementById("keys-dialog"), moreKeys);
  const reader = opening && new Reader(timeline, { read: windowReader(readBase), mostSpans: opening.most_spans });
  if (reader) bindReading(part, timeline, reader);
  const place = new Place(timeline, tools, hash, reader);
  if (opening) bindWholeSearch(timeline, place, readBase);
  if (opening?.sealed) reader.begin(opening.sealed);
  return { timeline, place, reader, showFollowing: bindFollowing(timeline, part), after: opening?.sealed?.after ?? null };
}

/** Of a run that is longer than the page holds the server searches all. */
function bindWholeSearch(timeline, place, readBase) {
  const whole = new WholeSearch(searcher(readBase), () => {
    timeline.dispatchEvent(new Event("search"));
    timeline.draw();
  });
  whole.goTo = (match) => place.seek(match);
  timeline.search.whole = whole;
  timeline.addEventListener("select", () => whole.chosen(timeline.selected));
}
