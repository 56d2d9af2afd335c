/** The timeline's keys, and the dialog that lists them with what the mouse does. */

import { element } from "../core/dom.js";
import { bindKeys } from "../core/keys.js";
import { Walk } from "../timeline/walk.js";

const MOUSE = [
  [["drag"], "pan"],
  [["shift", "drag"], "choose a range; also by a drag on the ruler"],
  [["ctrl", "wheel"], "zoom where the pointer is"],
  [["shift", "wheel"], "pan"],
  [["click"], "choose a span; on a group's heading, fold it"],
  [["double click"], "zoom to a span or a bubble"],
  [["two fingers"], "pan and zoom"],
];

/** `more`: bindings of the page beside the timeline's own. */
export function bindTimelineKeys(timeline, interaction, actions, dialog, more = []) {
  const walk = new Walk(timeline);
  const held = (key, words) => ({
    keys: [key], shown: [key.toUpperCase()], words, press: () => interaction.hold(key, true), release: () => interaction.hold(key, false),
  });
  const surface = timeline.parts.scroller;
  const bindings = [
    held("w", "zoom in"), held("s", "zoom out"), held("a", "pan left"), held("d", "pan right"),
    { keys: ["f"], shown: ["F"], words: "focus the chosen span or range", press: () => timeline.focus() },
    { keys: ["0"], shown: ["0"], words: "fit the whole run", press: () => timeline.fit() },
    { keys: ["l"], shown: ["L"], words: "follow the head of the run, or stop following", press: () => timeline.follow(!timeline.isFollowing) },
    { keys: ["["], shown: ["["], words: "what the chosen span waited for", press: () => walk.stepDependency(-1) },
    { keys: ["]"], shown: ["]"], words: "what waited for the chosen span", press: () => walk.stepDependency(1) },
    { keys: ["m"], shown: ["M"], words: "choose the time of the chosen span as a range", press: () => actions.markSelected() },
    { keys: ["/"], shown: ["/"], words: "search", press: () => actions.focusSearch() },
    { keys: ["n"], shown: ["N"], words: "next match of the search; with shift the one before", press: (event) => walk.stepMatch(event.shiftKey ? -1 : 1) },
    { keys: ["c"], shown: ["C"], words: "longest chain of the step: what made it as long as it was", press: () => actions.togglePath() },
    { keys: ["i"], shown: ["I"], words: "the step's ideal, laid under it", press: () => actions.toggleIdeal() },
    { keys: ["g"], shown: ["G"], words: "group lanes by the next axis of the grid, by server or by rack", press: () => actions.nextGrouping() },
    { keys: ["z"], shown: ["Z"], words: "fold all groups, or unfold them", press: () => actions.toggleFolds() },
    { keys: ["o"], shown: ["O"], words: "the latest rank first, or by number", press: () => actions.toggleSorted() },
    { keys: ["x"], shown: ["X"], words: "compute lanes alone, or all lanes", press: () => actions.toggleBare() },
    { keys: ["t"], shown: ["T"], words: "the spans in sight as a table", press: () => actions.toggleTable() },
    { keys: ["ArrowLeft"], only: surface, press: () => walk.step(-1) },
    { keys: ["ArrowRight"], only: surface, press: () => walk.step(1) },
    { keys: ["ArrowUp"], only: surface, press: () => walk.stepLane(-1) },
    { keys: ["ArrowDown"], only: surface, press: () => walk.stepLane(1) },
    { keys: ["Escape"], shown: ["esc"], words: "choose nothing", press: () => { timeline.setChosenRange(null); timeline.select(null); } },
    ...more,
    { keys: ["?"], shown: ["?"], words: "this list", press: () => dialog.showModal() },
  ];
  list(dialog.querySelector('[data-part="keys"]'), bindings);
  return bindKeys(bindings);
}

function list(target, bindings) {
  const rows = [
    ...bindings.filter((binding) => binding.shown).map((binding) => [binding.shown, binding.words]),
    [["←", "→", "↑", "↓"], "on the timeline: to the next span, and to the next lane"],
    ...MOUSE,
  ];
  target.replaceChildren(...rows.flatMap(([keys, words]) => [
    element("dt", {}, ...keys.flatMap((key, at) => (at ? [" ", element("kbd", {}, key)] : [element("kbd", {}, key)]))), element("dd", {}, words),
  ]));
}
