/** The schedule as a grid of slots: ideal and measured, what ranks hold, and what another order would take. */

import { element } from "../../core/dom.js";
import { durationNs, figures, percent } from "../../core/format.js";
import { IS_MODEL_WORK, KIND, LANE } from "../../core/kinds.js";
import { goesBothWays, wayOf } from "../../core/ways.js";
import { part, svg, table } from "./kit.js";

const WIDTH = 1000;
const LANE_PX = 24;
const BAR_PX = 20;
const NARROWEST_LABEL = 18;
const KINDS = { F: "forward", B: "backward", I: "backward-input", W: "backward-weight" };
const LETTERS = { [KIND.FORWARD]: "F", [KIND.BACKWARD]: "B", [KIND.BACKWARD_INPUT]: "I", [KIND.BACKWARD_WEIGHT]: "W" };

export function mount(body, { run, timeline, launchForm, ask }) {
  const drawings = element("div", { class: "panel-drawings" });
  const rest = element("div", { class: "panel-columns" });
  const inSlots = element("input", { type: "checkbox" });
  const step = element("select", { "aria-label": "Step that is drawn as measured" });
  body.replaceChildren(
    element("div", { class: "panel-tools" }, element("label", {}, "Measured step", step), element("label", {}, inSlots, "Ideal in slots, as textbooks count")),
    drawings, rest,
  );
  let data = null;
  inSlots.addEventListener("change", draw);
  step.addEventListener("change", draw);

  async function update() {
    if (!data) {
      data = await ask();
      rest.replaceChildren(held(data, run()), alternatives(data, run(), launchForm));
    }
    offerSteps(step, timeline.trace.steps);
    draw();
  }

  function draw() {
    if (!data) return;
    const ideal = inSlots.checked ? data.slots : data.ideal;
    const measured = measuredStep(timeline.trace, run(), Number(step.value));
    drawings.replaceChildren(ideal ? idealPart(ideal, data, inSlots.checked) : part("Ideal", "There are more actions in a step than can be drawn here."),
      measuredPart(measured, data));
  }

  return { update };
}

function offerSteps(select, steps) {
  const complete = steps.sorted.filter((window) => window.figures?.complete ?? false).slice(-50);
  const wanted = complete.map((window) => String(window.step)).reverse();
  if (wanted.length === select.options.length && wanted[0] === select.options[0]?.value) return;
  const isNewest = select.selectedIndex <= 0;
  const kept = select.value;
  select.replaceChildren(...wanted.map((number) => element("option", { value: number }, number)));
  if (!isNewest && wanted.includes(kept)) select.value = kept;
}

function idealPart({ lanes, length, bubble_share: bubble, active_share: active }, { stages }, isInSlots) {
  const title = isInSlots
    ? `Ideal: ${length} slots, ${percent(active.reduce((sum, share) => sum + share, 0) / active.length)} of the ranks active on average`
    : `Ideal: ${durationNs(length * 1e6)}, ${percent(bubble)} bubble of the whole`;
  const tells = isInSlots
    ? "Every action takes one slot, and a rank has room for a forward and a backward side by side. Above each slot: which share of the ranks is active."
    : "Every action takes its modelled time, messages take none.";
  return part(title, tells, drawing(lanes, length, stages, title, active));
}

function measuredPart(measured, { stages }) {
  if (!measured) return part("Measured", "The first complete step appears here.");
  const { lanes, lengthNs, bubble, step, waiting } = measured;
  const title = `Measured, step ${step}: ${durationNs(lengthNs)}, ${percent(bubble)} bubble of the whole`;
  return part(title, `From its first forward to its last backward; the step time has what follows as well. Of this, ${percent(waiting)} is recorded waiting for a sender. One rank of each place in the pipeline is drawn.`, drawing(lanes, lengthNs, stages, title));
}

/** What the ranks of one pipeline did in a step: lanes as in the server's ideal, times in ns from the first work. */
function measuredStep(trace, run, number) {
  const window = trace.steps.byStep.get(number);
  if (!window || !Number.isFinite(window.startNs)) return null;
  const ranks = run.grid.map((address, rank) => [address, rank]).filter(([address]) => Object.entries(address).every(([axis, at]) => axis === "pp" || at === 0));
  let [busyNs, waitNs] = [0, 0];
  const lanes = ranks.map(([, rank]) => {
    const lane = trace.lane(rank, LANE.COMPUTE);
    const found = [];
    for (let place = lane?.firstEndingAfter(window.startNs); lane && place < lane.end && lane.startOf(place) < window.endNs; place = lane.next(place)) {
      const span = lane.spanAt(place);
      if (span.step !== number) continue;
      const [fromNs, toNs] = [span.startNs - window.startNs, span.startNs + span.durationNs - window.startNs];
      if (span.kind === KIND.WAIT) waitNs += span.durationNs;
      if (!IS_MODEL_WORK[span.kind]) continue;
      busyNs += span.durationNs;
      found.push([LETTERS[span.kind], span.stage, span.microBatch, fromNs, toNs]);
    }
    return found;
  });
  const lengthNs = window.endNs - window.startNs;
  const wholeNs = lengthNs * ranks.length;
  return { step: number, lanes, lengthNs, bubble: window.figures?.bubble_share ?? 1 - busyNs / wholeNs, waiting: waitNs / wholeNs };
}

function drawing(lanes, length, stages, title, active = null) {
  const top = active ? 16 : 0;
  const height = top + lanes.length * LANE_PX;
  const scale = WIDTH / length;
  const made = svg("svg", { class: "sketch panel-sketch", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
  active?.forEach((share, slot) => made.append(svg("text", { class: "panel-slot", x: (slot + 0.5) * scale, y: 11 }, percent(share, 0))));
  lanes.forEach((actions, at) => {
    const y = top + at * LANE_PX;
    made.append(svg("rect", { class: "sketch-lane", x: 0, y, width: WIDTH, height: BAR_PX, rx: 2 }));
    const tellOf = goesBothWays(stages) ? ([, stage]) => wayOf(at, stage) : ([, stage]) => (stages[at].length > 1 ? ` s${stage}` : "");
    for (const bar of stacked(actions)) drawBar(made, bar, y, scale, tellOf(bar.action));
  });
  return element("div", { class: "panel-lanes", tabindex: "0", role: "region", "aria-label": title }, element("div", { class: "panel-lane-names", style: `padding-top:${top}px` },
    ...stages.map((held) => element("span", {}, `stage ${held.join(", ")}`))), made);
}

/** Actions that a rank does side by side share its lane: the forward above, the backward below. */
function stacked(actions) {
  const together = new Set();
  actions.forEach((one, at) => {
    if (at && one[3] < actions[at - 1][4] - 1e-9) together.add(at).add(at - 1);
  });
  return actions.map((action, at) => ({ action, part: together.has(at) ? (action[0] === "F" ? 0 : 1) : null }));
}

/** `tells`, behind the micro-batch's number, of a rank's stages which, or which way the micro-batch goes. */
function drawBar(made, { action: [letter, stage, microBatch, from, to], part: half }, laneY, scale, tells) {
  const height = half === null ? BAR_PX : BAR_PX / 2 - 0.5;
  const y = laneY + (half === 1 ? BAR_PX / 2 + 0.5 : 0);
  const width = Math.max((to - from) * scale - 1, 0.6);
  const words = `${letter === "I" ? "B" : letter}${microBatch}`;
  const bar = svg("rect", { class: `kind-${KINDS[letter]}`, x: from * scale, y, width, height, rx: 2 });
  bar.append(svg("title", {}, `${KINDS[letter].replace("-", ", ")} of micro-batch ${microBatch}, stage ${stage}`));
  made.append(bar);
  if (width < NARROWEST_LABEL || half !== null) return;
  const hasRoom = width > (tells.length > 1 ? 2 : 1.5) * NARROWEST_LABEL;
  made.append(svg("text", { x: from * scale + width / 2, y: y + BAR_PX - 6 }, hasRoom ? words + tells : words));
}

function held({ held: places }, { spec }) {
  const rows = places.map(({ peak, bound }, place) => [`${place}`, `${peak}`, bound === null ? "none stated" : `${bound}`]);
  return part("Activations held", `At most so many micro-batches' activations lie on a rank at once, of ${spec.schedule.micro_batches} in the step.`,
    table("Activations held by place in the pipeline", ["Place", "By simulation", "Bound of the schedule"], rows));
}

function alternatives({ alternatives: others }, { spec, id }, launchForm) {
  if (others.length < 2) return part("Another order", "This job has too many actions to weigh other orders here.");
  const [own] = others;
  const rows = others.map((one) => [
    `${one.words}${one.chunks > 1 ? `, ${one.chunks} stages a rank` : ""}${one.ways > 1 ? ", every stage on two ranks" : ""}${one.cut_evenly === own.cut_evenly ? "" : ", cut evenly"}`, `${one.micro_batches}`, percent(one.bubble_share),
    durationNs(one.step_ms * 1e6), one === own ? "this job" : change(one.step_ms, own.step_ms), figures(one.held),
    one === own || !launchForm ? "" : element("a", { href: `${launchForm}?from=${id}&${new URLSearchParams(one.sets)}` }, "Open in the form"),
  ]);
  const { pace } = spec;
  const lasts = pace.kind === "device" ? `what ${pace.device.toUpperCase()}, ${figures(pace.slow_down)} times slower, would take`
    : `this job's forward of ${figures(pace.forward_ms)} ms and backward of ${figures(pace.backward_ms)} ms`;
  const tells = `By simulation, with ${lasts} and messages that take no time. `
    + "A step's samples stay the same: more micro-batches are smaller ones. Held: activations, in micro-batches and whole stages of this job.";
  return part("What another order would take", tells,
    table("Other schedules and numbers of micro-batches", ["Schedule", "Micro-batches", "Bubble", "A step", "Against this job", "Held", ""], rows, (at) => at === 0));
}

function change(ms, ownMs) {
  const share = ms / ownMs - 1;
  return Math.abs(share) < 5e-4 ? "the same" : `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`;
}
