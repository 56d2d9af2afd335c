/** The step player: a collective's plan, moved through forwards and backwards, at its measured times where there are any. */

import { element, setText } from "../../core/dom.js";
import { durationNs } from "../../core/format.js";
import { measuredSteps } from "../../timeline/collectives.js";
import { choice } from "./kit.js";
import { circle, stateTable } from "./player_drawing.js";

const SPEEDS = [["0.125", "⅛ ×"], ["0.25", "¼ ×"], ["0.5", "½ ×"], ["1", "1 ×"], ["2", "2 ×"], ["4", "4 ×"]];
const UNMEASURED_NS = 1e9; // a step, where nothing says how long it took
const FEWEST_RANKS = 2;
const MOST_RANKS = { all_to_all: 8 }; // as the server plays
const MOST_RANKS_ELSE = 16;

export function player({ trace, ask }) {
  const operation = choice("Collective", []);
  const algorithm = choice("Algorithm", []);
  const ranks = choice("Ranks", []);
  const speed = choice("Speed", SPEEDS);
  speed.select.value = "1";
  const button = (words, label, act) => element("button", { type: "button", class: "btn small", "aria-label": label, title: label, onclick: act }, words);
  const play = button("▶", "Play", () => toggle());
  const slider = element("input", { type: "range", min: 0, max: 1, step: 1, value: 0, "aria-label": "Step of the collective" });
  const said = element("p", { class: "player-said small", role: "status" });
  const drawing = element("div", { class: "player-drawing" });
  const box = element("section", { class: "panel-part player", "data-part": "player" },
    element("h3", {}, "Step by step"),
    element("p", { class: "muted small" }, "Each letter in a cell is one rank's contribution to that chunk; what a step brought is framed, what is as it is to be is bold."),
    element("div", { class: "panel-tools" }, operation.box, algorithm.box, ranks.box),
    element("div", { class: "panel-tools player-keys", role: "group", "aria-label": "Step player" },
      button("«", "To the start", () => go(0)), button("‹", "A step back", () => go(Math.ceil(at) - 1)), play,
      button("›", "A step on", () => go(Math.floor(at) + 1)), button("»", "To the end", () => go(Infinity)), slider, speed.box),
    said, drawing);
  let known = null;
  let followed = null; // the measured collective that is played, if its plan is
  let plan = null;
  let endsNs = null;
  let at = 0; // steps done, and the part of the one under way
  let playing = 0;
  let lastMs = 0;
  let asked = "";

  function know(given) {
    if (known) return;
    known = given;
    operation.offer(Object.keys(given.algorithms).map((key) => [key, key.replaceAll("_", "-")]));
    offer();
    load();
  }

  function offer() {
    algorithm.offer(known.algorithms[operation.select.value].map((name) => [name, name]));
    const most = MOST_RANKS[operation.select.value] ?? MOST_RANKS_ELSE;
    ranks.offer(Array.from({ length: most - FEWEST_RANKS + 1 }, (_, more) => [`${more + FEWEST_RANKS}`, `${more + FEWEST_RANKS}`]));
    if (!asked && most >= 4) ranks.select.value = "4";
  }

  /** Play this one, as it was measured if it went by an algorithm that there is a plan of. */
  function follow(collective) {
    const isSame = followed && followed.step === collective.step && followed.sequence === collective.sequence && followed.group === collective.group
      && followed.members[0].rank === collective.members[0].rank;
    if (isSame || playing || !known?.algorithms[collective.operation]) return;
    followed = collective;
    operation.select.value = collective.operation;
    offer();
    if (known.algorithms[collective.operation].includes(collective.algorithm)) algorithm.select.value = collective.algorithm;
    ranks.select.value = `${Math.min(collective.members.length, Number(ranks.select.lastElementChild.value))}`;
    load();
  }

  async function load() {
    const fields = { collective: operation.select.value, algorithm: algorithm.select.value, ranks: ranks.select.value };
    const key = JSON.stringify(fields);
    if (key !== asked) {
      asked = key;
      const answer = await ask(fields);
      if (key !== asked) return;
      plan = answer;
      at = 0;
    }
    if (!plan) return;
    const isMeasured = followed && followed.operation === plan.collective && followed.algorithm === plan.algorithm && followed.members.length === plan.ranks;
    endsNs = isMeasured ? measuredSteps(trace, followed, plan.steps.length) : null;
    slider.max = `${plan.steps.length}`;
    draw();
  }

  const stepNs = (step) => (endsNs ? Math.max(1, endsNs[step] - (endsNs[step - 1] ?? 0)) : UNMEASURED_NS);

  function go(to) {
    if (!plan) return;
    stop();
    at = Math.max(0, Math.min(plan.steps.length, to));
    draw();
  }

  function toggle() {
    if (playing) return stop();
    if (!plan) return;
    if (at >= plan.steps.length) at = 0;
    lastMs = performance.now();
    playing = requestAnimationFrame(advance);
    face("❚❚", "Pause");
  }

  function stop() {
    cancelAnimationFrame(playing);
    playing = 0;
    face("▶", "Play");
  }

  function face(words, label) {
    setText(play, words);
    play.setAttribute("aria-label", label);
    play.title = label;
  }

  function advance(nowMs) {
    if (!box.offsetParent) return stop(); // nothing moves that nobody sees
    let leftNs = Math.max(0, nowMs - lastMs) * 1e6 * Number(speed.select.value);
    lastMs = nowMs;
    while (leftNs > 0 && at < plan.steps.length) {
      const step = Math.floor(at);
      const takesNs = (step + 1 - at) * stepNs(step);
      at = leftNs >= takesNs ? step + 1 : at + leftNs / stepNs(step);
      leftNs -= takesNs;
    }
    draw();
    if (at >= plan.steps.length) stop();
    else playing = requestAnimationFrame(advance);
  }

  function draw() {
    const done = Math.floor(at);
    slider.value = `${done}`;
    const names = plan.ranks === followed?.members.length ? followed.members.map(({ rank }) => rank).sort((a, b) => a - b) : null;
    const moves = plan.steps[done] ?? [];
    drawing.replaceChildren(circle(plan, moves, at - done, names), stateTable(plan, done, names));
    const when = endsNs ? (done ? `, measured ${durationNs(endsNs[done - 1])} after the first rank came` : ", at measured times") : ", not measured: each step is given 1 s";
    setText(said, `After step ${done} of ${plan.steps.length}${when}.`);
    box.dataset.step = `${done}`;
  }

  operation.select.addEventListener("change", () => {
    offer();
    load();
  });
  algorithm.select.addEventListener("change", load);
  ranks.select.addEventListener("change", load);
  slider.addEventListener("input", () => go(Number(slider.value)));
  box.addEventListener("keydown", (event) => {
    if (event.target === slider || event.target.tagName === "BUTTON") event.stopPropagation(); // the timeline has keys of its own
  });
  return { box, know, follow };
}
