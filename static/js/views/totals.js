/** What the range in sight (or the range chosen) adds up to, over all ranks. */

import { element, setText } from "../core/dom.js";
import { durationNs, percent } from "../core/format.js";
import { ALL_KINDS, IS_COLLECTIVE, KIND, KIND_VARIABLE, KIND_WORD } from "../core/kinds.js";

const COMPUTE = ALL_KINDS.filter((kind) => kind < KIND.WAIT);
const TALK = ALL_KINDS.filter((kind) => IS_COLLECTIVE[kind] || kind === KIND.SEND || kind === KIND.RECEIVE);

export class Totals {
  constructor({ totals, title }, timeline) {
    Object.assign(this, { box: totals, title, timeline });
    timeline.addEventListener("totals", () => this.show());
    timeline.addEventListener("range", () => this.show());
    this.lines = ["Compute lanes: busy", "Waiting for data", "In transfers and collectives"].map((words) => {
      const value = element("b", {}, "–");
      const bar = element("div", { class: "tl-total-bar" });
      this.box.append(element("div", { class: "tl-total" }, element("p", {}, words, value), bar));
      return { value, bar };
    });
    this.kinds = element("div", { class: "tl-kinds" });
    this.box.append(this.kinds);
  }

  show() {
    const { trace, view, range } = this.timeline;
    setText(this.title, range ? `Chosen range, ${durationNs(range.toNs - range.fromNs)}, all ranks` : "Range in sight, all ranks");
    const fromNs = Math.max(range?.fromNs ?? view.fromNs, trace.firstStartNs);
    const toNs = Math.min(range?.toNs ?? view.toNs, trace.lastEndNs);
    if (!(toNs > fromNs)) return;
    const { totalNs, counts } = trace.totals(fromNs, toNs);
    const wholeNs = (toNs - fromNs) * trace.ranks.length;
    [COMPUTE, [KIND.WAIT], TALK].forEach((kinds, at) => this.#line(this.lines[at], kinds, totalNs, wholeNs));
    this.kinds.replaceChildren(...[...COMPUTE, KIND.WAIT, ...TALK].filter((kind) => counts[kind] > 0).map((kind) => element(
      "span", { title: `${counts[kind]} spans` }, element("i", { style: `background:var(${KIND_VARIABLE[kind]})` }), `${KIND_WORD[kind]} ${durationNs(totalNs[kind])}`,
    )));
  }

  #line({ value, bar }, kinds, totalNs, wholeNs) {
    const shown = kinds.filter((kind) => totalNs[kind] > 0);
    const sum = shown.reduce((total, kind) => total + totalNs[kind], 0);
    setText(value, percent(sum / wholeNs));
    bar.replaceChildren(...shown.map((kind) => element("i", { style: `width:${(totalNs[kind] / wholeNs) * 100}%;background:var(${KIND_VARIABLE[kind]})` })));
  }
}
