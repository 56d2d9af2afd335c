/** The kinds that the run has shown so far, with their colours, and the hatching. */

import { element } from "../core/dom.js";
import { ALL_KINDS, KIND, KIND_VARIABLE, KIND_WORD } from "../core/kinds.js";

const swatch = (kind) => element("i", { style: `background:var(${KIND_VARIABLE[kind]})` });

export class Legend {
  #shown = "";

  constructor(list) {
    this.list = list;
  }

  update(trace) {
    const kinds = ALL_KINDS.filter((kind) => kind !== KIND.STEP && kind !== KIND.DATA && trace.counts[kind] > 0);
    const key = kinds.join();
    if (key === this.#shown && this.list.childElementCount) return;
    this.#shown = key;
    const shown = kinds.length ? kinds : [KIND.FORWARD, KIND.BACKWARD, KIND.OPTIMIZER, KIND.ALL_REDUCE];
    this.list.replaceChildren(
      ...shown.filter((kind) => kind !== KIND.WAIT).map((kind) => element("li", {}, swatch(kind), KIND_WORD[kind])),
      element("li", { title: "The compute lane is idle between a step's first and last forward or backward work" },
        element("i", { class: "tl-hatch" }), "bubble (idle inside a step)"),
      ...(shown.includes(KIND.WAIT) ? [element("li", { title: "The rank asked for data that had not been sent yet" },
        element("i", { class: "tl-hatch tl-waiting" }), "waits for data")] : []),
    );
  }
}
