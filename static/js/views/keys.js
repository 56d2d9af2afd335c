/** The timeline's keys, and the dialog that lists them with what the mouse does. */

import { element } from "../core/dom.js";
import { bindKeys } from "../core/keys.js";

const MOUSE = [
  [["drag"], "pan"],
  [["shift", "drag"], "choose a range; also by a drag on the ruler"],
  [["ctrl", "wheel"], "zoom where the pointer is"],
  [["shift", "wheel"], "pan"],
  [["click"], "choose a span"],
  [["double click"], "zoom to a span or a bubble"],
  [["two fingers"], "pan and zoom"],
];

/** `more`: bindings of the page beside the timeline's own. */
export function bindTimelineKeys(timeline, interaction, dialog, more = []) {
  const held = (key, words) => ({
    keys: [key], shown: [key.toUpperCase()], words, press: () => interaction.hold(key, true), release: () => interaction.hold(key, false),
  });
  const surface = timeline.parts.scroller;
  const bindings = [
    held("w", "zoom in"), held("s", "zoom out"), held("a", "pan left"), held("d", "pan right"),
    { keys: ["f"], shown: ["F"], words: "focus the chosen span or range", press: () => timeline.focus() },
    { keys: ["0"], shown: ["0"], words: "fit the whole run", press: () => timeline.fit() },
    { keys: ["l"], shown: ["L"], words: "follow the head of the run, or stop following", press: () => timeline.follow(!timeline.isFollowing) },
    { keys: ["["], shown: ["["], words: "what the chosen span waited for", press: () => interaction.stepDependency(-1) },
    { keys: ["]"], shown: ["]"], words: "what waited for the chosen span", press: () => interaction.stepDependency(1) },
    { keys: ["ArrowLeft"], only: surface, press: () => interaction.step(-1) },
    { keys: ["ArrowRight"], only: surface, press: () => interaction.step(1) },
    { keys: ["ArrowUp"], only: surface, press: () => interaction.stepLane(-1) },
    { keys: ["ArrowDown"], only: surface, press: () => interaction.stepLane(1) },
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
