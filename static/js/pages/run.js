/** The run page: what comes from the server goes to the timeline and the figures; what the visitor does goes to the timeline. */

import { isView } from "../core/address.js";
import { setText, throttled } from "../core/dom.js";
import { count, durationNs } from "../core/format.js";
import { connect } from "../core/live.js";
import { chart } from "../views/chart.js";
import { CommentMarks } from "../views/comment-marks.js";
import { Comments } from "../views/comments.js";
import { Details } from "../views/details.js";
import { bindDialogs } from "../views/dialogs.js";
import { bindGuide } from "../views/guide.js";
import { bindMenus } from "../views/menus.js";
import { Now, median, stepNs } from "../views/now.js";
import { Panels } from "../views/panels.js";
import { bindPicture } from "../views/picture-files.js";
import { Presence } from "../views/presence.js";
import { bindShareDialog } from "../views/share.js";
import { InShort } from "../views/short.js";
import { makeStage } from "../views/stage.js";
import { StateView, emptyWords } from "../views/state.js";
import { Surface } from "../views/surface.js";
import { Totals } from "../views/totals.js";

/** Charts are dear to draw and change by a point a step. */
const CHARTS_MS = 2500;
const SEEN_MS = 100;
const UNSEEN_MS = 1000;

const root = document.querySelector(".run");
const part = (name) => root.querySelector(`[data-part="${name}"]`);
let run = JSON.parse(document.getElementById("run-data").textContent);
const { spec } = run;

const { readBase, launchForm, plotly, person } = root.dataset;
const opening = root.dataset.opening ? JSON.parse(root.dataset.opening) : null; // none in a page saved to a file
const { timeline, place, reader, showFollowing, after } = makeStage(part, run, {
  readBase, opening, hash: location.hash || root.dataset.view,
  moreKeys: [{ keys: ["r"], shown: ["R"], words: "remark on the chosen range, span or rank", press: () => panels.open("comments").then((view) => view?.begin()) }],
});
const stateView = new StateView(root, part);
const now = new Now(root);
const comments = new Comments({ readBase, runId: run.id, isOn: document.getElementById("tab-comments") !== null, person });
const panels = new Panels(part("panels"), { run: () => run, timeline, readBase, launchForm, plotly, comments, place });
const inShort = new InShort(part("short"), { run: () => run, readBase, launchForm }, () => {
  panels.open("explain");
  part("panels").scrollIntoView({ block: "start" });
  document.getElementById("tab-explain").focus({ preventScroll: true });
});
const charts = [...root.querySelectorAll("[data-chart]")].map(chart);
new Details({
  details: part("details"), why: part("why"), arrivals: part("arrivals"), hint: part("hint"), whyTitle: part("why-title"),
}, timeline);
new Totals({ totals: part("totals"), title: part("totals-title") }, timeline);
new CommentMarks(part("notes"), timeline, comments, (id) => panels.open("comments").then((view) => view?.show(id)));
const presence = part("people") && new Presence(part, timeline, place, {
  send: (message) => link.send(message), isAllHere: () => surface.complete,
}); // a page saved to a file is alone
bindDialogs();
bindShareDialog(place);
bindMenus();
bindPicture(part, timeline, () => run);
bindGuide(root, panels);

let link = null;
const NO_STATS = { frames: 0, spans: 0, duplicates: 0, missing_frames: 0, missing_spans: 0, dropped_spans: 0, bytes: 0 };
const surface = new Surface(timeline, () => run, () => link?.stats ?? NO_STATS, reader);
window.lockstep = surface;

/** The latest steps say how long the next ones will take. */
const recentStepSeconds = () => median([...now.rows.values()].slice(-9).map((row) => stepNs(row) / 1e9));

// Figures that nobody sees are kept up to date all the same, but seldom: what is below them has the time.
let areFiguresSeen = true;
new IntersectionObserver((entries) => {
  areFiguresSeen = entries.at(-1).isIntersecting;
  if (areFiguresSeen) showFigures();
}).observe(root.querySelector(".run-now"));

const showFigures = throttled(() => (areFiguresSeen ? SEEN_MS : UNSEEN_MS), () => {
  const steps = now.latest ? Math.max(run.steps_done, now.latest.step + 1) : run.steps_done;
  stateView.show({ ...run, steps_done: Math.min(run.steps, steps) }, recentStepSeconds());
  now.show(run, surface.stats, timeline.trace.total);
  const [title, words] = emptyWords(run);
  part("empty").hidden = !timeline.trace.isEmpty;
  setText(part("empty-title"), title);
  setText(part("empty-words"), words);
});

const showRange = throttled(60, () => {
  const { view, trace } = timeline;
  if (trace.isEmpty) return;
  const start = Math.min(0, trace.firstStartNs);
  const inSight = Math.min(view.toNs, trace.lastEndNs) - Math.max(view.fromNs, start);
  setText(part("range-time"), `${durationNs(Math.max(0, inSight))} of ${durationNs(trace.lastEndNs - start)}`);
  setText(part("range-spans"), `${count(trace.total)} spans`);
});

const refreshCharts = throttled(CHARTS_MS, () => {
  for (const each of charts) each.refresh();
});

timeline.addEventListener("view", showRange);

// Somebody's link to another moment, pasted over this page's address; what the page writes there itself tells nobody. The
// address is the event's: the page may have written over it by now what was seen before.
addEventListener("hashchange", ({ newURL }) => {
  const { hash } = new URL(newURL);
  if (isView(hash)) place.go(hash, surface.complete);
});

// What comes from the server

function onState(state) {
  const wasEnded = run.has_ended;
  run = state;
  if (run.has_ended && !wasEnded) {
    const { rank } = run.failure ?? {};
    if (Number.isInteger(rank)) panels.open("log").then((log) => log.showRank(rank));
  }
  comments.changed(run.comments_revision);
  showFigures();
}

function onFrames(frames, events, complete) {
  surface.note(frames);
  timeline.append(frames);
  for (const event of events) if (event.type === "steps") addRows(event.rows);
  if (complete) end();
  place.show(complete);
  showFigures();
  showRange();
}

function addRows(rows) {
  now.addRows(rows);
  for (const row of rows) timeline.trace.steps.addFigures(row);
  refreshCharts();
  panels.changed();
  inShort.changed();
  timeline.draw();
}

function end() {
  if (surface.complete) return;
  surface.complete = true;
  timeline.end();
  showFollowing();
  refreshCharts();
  panels.changed();
  inShort.end();
}

showFigures();
comments.changed(run.comments_revision);
link = connect({
  url: root.dataset.socket, after, onState, onFrames,
  onConnection: (connection) => stateView.showConnection(connection),
  onMessage: (message) => presence?.hear(message),
});
