// What the timeline's bench measures, one function each, all in `window.bench`. The functions draw through the
// product's own modules; what a canvas was told to draw is made pixels by reading one back, and that is counted.

import { Colours } from "/static/js/core/colours.js";
import { decodeBatch } from "/static/js/core/frame.js";
import { LANE } from "/static/js/core/kinds.js";
import { Scheduler } from "/static/js/core/scheduler.js";
import { hit } from "/static/js/timeline/hit.js";
import { ROWS_BUDGET_MS } from "/static/js/timeline/paint.js";
import { Timeline } from "/static/js/timeline/timeline.js";
import { measurePlotly } from "./plotly.js";
import { MEAN_NS, dice, frames, makeRanks } from "./spans.js";
import { frameGaps, median, nextFrame, quantile } from "./timing.js";

const SEED = 5;
const REDRAWS = 241; // four seconds of panning, as for Plotly: by then both are compiled
const CACHED_PANS = 60;
const HITS = 200_000;
const APPENDS = 400;
const APPENDS_A_FRAME = 2;
const FRAMES_SECONDS = 6;
const BATCH_MS = 100;
/** Of the time that a batch covers: ranks are never behind for long. */
const BUSY_SHARE = 0.8;

const part = (name) => document.querySelector(`[data-part="${name}"]`);
let timeline = null;
let ranks = [];

function open(rankCount) {
  const parts = Object.fromEntries(["frame", "scroller", "stage", "base", "overlay", "map", "legend"].map((name) => [name, part(name)]));
  timeline = new Timeline(parts, { ranks: rankCount, colours: new Colours(), scheduler: new Scheduler() });
  timeline.arrange({ isBare: true }); // compute lanes alone: all of 64 are in sight at once
}

/** A fresh timeline with `count` spans of so many ranks, all of it in sight. */
async function fill(rankCount, count) {
  open(rankCount);
  ranks = makeRanks(rankCount, SEED);
  for (const frame of frames(ranks, count)) timeline.append([frame]);
  timeline.view.fit();
  timeline.follow(false);
  await nextFrame();
  return timeline.trace.spans;
}

/** One whole frame, as the product paints it, to the last pixel. */
function paint() {
  const began = performance.now();
  timeline.painter.paint(timeline.scene(), { addresses: timeline.addresses, shares: timeline.shares, hoveredRank: -1 });
  timeline.painter.context.getImageData(0, 0, 1, 1);
  return performance.now() - began;
}

/** Median ms of a pan of the whole view that can keep nothing of the frame before. */
function redraw() {
  timeline.painter.budgetMs = Infinity;
  const taken = [];
  for (let at = 0; at < REDRAWS; at++) {
    timeline.view.panPx(at % 2 ? -37 : 37);
    timeline.painter.rows.forget();
    taken.push(paint());
  }
  return median(taken);
}

/** Median ms of a pan by a few pixels. */
function cachedPan() {
  timeline.painter.budgetMs = Infinity;
  timeline.view.zoomAt(500, 0.4);
  paint();
  const taken = [];
  for (let at = 0; at < CACHED_PANS; at++) {
    timeline.view.panPx(3 + (at % 5));
    taken.push(paint());
  }
  return median(taken);
}

/** p95 of the gaps between animation frames while the view pans, zooms in and zooms out. */
async function framesP95() {
  timeline.painter.budgetMs = ROWS_BUDGET_MS;
  timeline.view.fit();
  const gaps = await frameGaps(FRAMES_SECONDS, (frame) => {
    const phase = Math.floor(frame / 60) % 4;
    if (phase === 1) timeline.zoomAt(600, 0.96);
    else if (phase === 3) timeline.zoomAt(600, 1 / 0.96);
    else timeline.panPx(phase ? -9 : 9);
  });
  return quantile(gaps, 0.95);
}

/**
 * p95 of the gaps between animation frames while the view follows a run that goes on as fast as the clock: every rank's
 * spans of the last 100 ms come at once, as a batch does. Ranks wait for each other, as a step makes them.
 */
async function followP95(rankCount, spansPerSecond, seconds) {
  open(rankCount);
  const perRank = spansPerSecond / rankCount;
  const live = makeRanks(rankCount, SEED, (BUSY_SHARE * 1e9) / perRank / MEAN_NS);
  const beganMs = performance.now();
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - beganMs) / 1000) * perRank);
    if (due > live[0].made) timeline.append(live.map((rank) => nextOf(rank, due, perRank)));
  }, BATCH_MS);
  const gaps = await frameGaps(seconds, () => {});
  clearInterval(timer);
  return { p95: quantile(gaps, 0.95), spans: timeline.trace.spans, isFollowing: timeline.isFollowing };
}

function nextOf(rank, due, perRank) {
  rank.waitUntil((rank.made / perRank) * 1e9);
  return rank.frame(due - rank.made);
}

/** Median and longest ms of an append of 1,000 spans to a timeline that is on the screen and follows. */
async function append() {
  timeline.follow(true);
  const taken = [];
  for (let at = 0; at < APPENDS; at++) {
    const frame = ranks[at % ranks.length].frame(1000);
    const began = performance.now();
    timeline.append([frame]);
    taken.push(performance.now() - began);
    if (at % APPENDS_A_FRAME === 0) await nextFrame();
  }
  return { median: median(taken), longest: Math.max(...taken) };
}

/** µs to find what lies at a time of a lane. */
function hitTest() {
  const { trace } = timeline;
  const next = dice(SEED);
  const times = Float64Array.from({ length: HITS }, () => next() * trace.lastEndNs);
  let found = 0;
  const began = performance.now();
  for (let at = 0; at < HITS; at++) if (hit(trace, at % trace.ranks.length, LANE.COMPUTE, times[at], 0)) found++;
  return { us: ((performance.now() - began) * 1000) / HITS, found };
}

/** ms from the navigation to the frame that shows a whole run, which comes as the server's own bytes. */
async function firstFrame(rankCount, url) {
  const opened = performance.now();
  open(rankCount);
  const answer = await fetch(url);
  const bytes = await answer.arrayBuffer();
  const here = performance.now();
  timeline.append(decodeBatch(bytes).frames);
  timeline.end();
  timeline.view.fit();
  const appended = performance.now();
  await new Promise((done) => timeline.addEventListener("painted", done, { once: true }));
  timeline.painter.context.getImageData(0, 0, 1, 1);
  return { ms: performance.now(), parts: [opened, here, appended], spans: timeline.trace.spans };
}

async function plotly(rankCount, drawn, appended) {
  const made = makeRanks(rankCount, SEED);
  return measurePlotly([...frames(made, drawn)], [...frames(made, appended)]);
}

window.bench = { timeline: () => timeline, fill, redraw, cachedPan, framesP95, followP95, append, hitTest, firstFrame, plotly };
