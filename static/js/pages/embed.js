/** A shared run inside a frame of another page: heading and timeline. */

import { connect } from "../core/live.js";
import { bindDialogs } from "../views/dialogs.js";
import { bindMenus } from "../views/menus.js";
import { makeStage } from "../views/stage.js";
import { StateView, emptyWords } from "../views/state.js";

const root = document.querySelector(".run");
const part = (name) => root.querySelector(`[data-part="${name}"]`);
let run = JSON.parse(document.getElementById("run-data").textContent);
const { readBase, view } = root.dataset;
const { timeline, place, showFollowing, after } = makeStage(part, run, { readBase, opening: JSON.parse(root.dataset.opening), hash: view });
const stateView = new StateView(root, part);
bindDialogs();
bindMenus();

function show() {
  stateView.show(run, NaN);
  const [title, words] = emptyWords(run);
  part("empty").hidden = !timeline.trace.isEmpty;
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
  url: root.dataset.socket, after, onFrames,
  onState: (state) => {
    run = state;
    show();
  },
  onConnection: (connection) => stateView.showConnection(connection),
});
