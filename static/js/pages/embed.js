/** A shared run inside a frame of another page: heading and timeline. */

import { Colours } from "../core/colours.js";
import { connect } from "../core/live.js";
import { Scheduler } from "../core/scheduler.js";
import { Interaction } from "../timeline/interact.js";
import { Timeline } from "../timeline/timeline.js";
import { bindDialogs } from "../views/dialogs.js";
import { bindFollowing } from "../views/following.js";
import { bindTimelineKeys } from "../views/keys.js";
import { idealFetcher } from "../views/ideal.js";
import { Place } from "../views/place.js";
import { StateView, emptyWords } from "../views/state.js";
import { SpanTable } from "../views/table.js";
import { Tools } from "../views/tools.js";

const root = document.querySelector(".run");
const part = (name) => root.querySelector(`[data-part="${name}"]`);
let run = JSON.parse(document.getElementById("run-data").textContent);
const parts = Object.fromEntries(["frame", "scroller", "stage", "base", "overlay", "map", "legend"].map((name) => [name, part(name)]));
const { ranks, grid, stages, spec } = run;
const timeline = new Timeline(parts, { ranks, grid, gridSizes: spec.grid, stages, colours: new Colours(), scheduler: new Scheduler() });
const interaction = new Interaction(timeline, part("announcer"));
const stateView = new StateView(root, part);
const table = new SpanTable(part("table"), part("table-toggle"), timeline);
const fetchIdeal = idealFetcher(root.dataset.readBase, spec.pace.kind !== "real", timeline.trace);
const tools = new Tools(part, timeline, part("announcer"), { fetchIdeal, toggleTable: () => table.flip() });
const place = new Place(timeline, tools, root.dataset.view);
const showFollowing = bindFollowing(timeline, part);
bindDialogs();
bindTimelineKeys(timeline, interaction, tools, document.getElementById("keys-dialog"));

function show() {
  stateView.show(run, NaN);
  const [title, words] = emptyWords(run);
  part("empty").hidden = timeline.trace.spans > 0;
  part("empty-title").textContent = title;
  part("empty-words").textContent = words;
}

function onFrames(frames, events, complete) {
  timeline.append(frames);
  for (const event of events) {
    if (event.type === "steps") for (const row of event.rows) timeline.trace.steps.addFigures(row);
  }
  if (complete && timeline.isGrowing) {
    timeline.end();
    showFollowing();
  }
  place.show(complete);
  show();
}

show();
connect({
  url: root.dataset.socket, onFrames,
  onState: (state) => {
    run = state;
    show();
  },
  onConnection: (connection) => stateView.showConnection(connection),
});
