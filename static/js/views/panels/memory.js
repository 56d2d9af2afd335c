/** The memory of one rank, which the visitor chooses, over its latest steps. */

import { element } from "../../core/dom.js";
import { chart } from "../chart.js";
import { definitionList } from "./kit.js";

const KINDS = [
  ["weights", "kind-backward-weight"], ["optimizer", "kind-optimizer"], ["buffers", "kind-receive"],
  ["gradients", "kind-backward"], ["activations", "kind-forward"],
];

export function mount(body, { run, readBase, plotly, ask }) {
  const options = Array.from({ length: run().ranks }, (_, rank) => element("option", { value: String(rank) }, String(rank)));
  const rank = element("select", {}, ...options);
  const drawing = element("div", { class: "chart", "data-empty": "What the rank has in memory, from the first step on", "data-plotly": plotly, "data-height": "280" });
  const legend = element("p", { class: "panel-legend small" }, ...KINDS.map(([words, kind]) => element("span", {}, element("i", { class: kind }), words)));
  const words = element("div");
  body.replaceChildren(element("div", { class: "panel-tools" }, element("label", {}, "Rank", rank), legend), drawing, words);
  const choose = () => {
    drawing.dataset.chart = `${readBase}charts/memory.json?rank=${rank.value}`;
  };
  choose();
  const drawn = chart(drawing);
  rank.addEventListener("change", () => {
    choose();
    drawn.refresh();
  });
  let isExplained = false;

  return {
    async update() {
      if (!isExplained) {
        const { definitions, is_predicted: isPredicted } = await ask();
        isExplained = true;
        legend.append(element("span", {}, isPredicted ? "- - predicted at most" : "no formulas for this job yet, so nothing is predicted"));
        words.append(definitionList(definitions));
      }
      await drawn.refresh();
    },
  };
}
