/** The loss, and what drives it, as charts one beside the other. */

import { element } from "../../core/dom.js";
import { chart } from "../chart.js";
import { definitionList } from "./kit.js";

const CHARTS = ["loss", "learning-rate", "grad-norm", "tokens"];

export function mount(body, { readBase, plotly, ask }) {
  const boxes = CHARTS.map((name) => element("div", {
    class: "chart", "data-chart": `${readBase}charts/${name}.json`, "data-plotly": plotly, "data-empty": `The ${name.replace("-", " ")} over the steps`, "data-height": "220",
  }));
  const words = element("div");
  body.replaceChildren(element("div", { class: "learning-charts" }, ...boxes), words);
  const charts = boxes.map(chart);
  let isExplained = false;

  return {
    async update() {
      if (!isExplained) {
        words.replaceChildren(definitionList((await ask()).definitions));
        isExplained = true;
      }
      for (const each of charts) each.refresh(); // not waited for: one that is out of sight is drawn when it is seen
    },
  };
}
