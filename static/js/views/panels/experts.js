/** How evenly experts are loaded: a map of load over the steps for each layer, with what was dropped and the balance. */

import { element } from "../../core/dom.js";
import { count, figures, percent } from "../../core/format.js";
import { heat } from "./heat.js";
import { definitionList, part, table } from "./kit.js";

export function mount(body, { ask, run }) {
  const summary = element("div");
  const maps = element("div", { class: "expert-maps" });
  const words = element("div");
  body.replaceChildren(summary, maps, words);
  const byLayer = new Map();

  function mapOf(layer) {
    if (!byLayer.has(layer)) {
      const made = heat(`Load of layer ${layer}'s experts over the steps`, { colour: "--kind-forward" });
      byLayer.set(layer, made);
      maps.append(part(`Layer ${layer}`, "A row an expert, a column a step; the stronger its colour, the more tokens.", made.box));
    }
    return byLayer.get(layer);
  }

  return {
    async update() {
      const data = await ask();
      if (!words.childElementCount) words.replaceChildren(definitionList(data.definitions));
      summary.replaceChildren(data.steps.length ? balance(data, run().spec.model) : element("p", { class: "muted" }, "The first step appears here."));
      for (const layer of data.layers) mapOf(layer.layer).show(shown(data, layer));
    },
  };
}

function shown({ experts, steps }, { load, dropped }) {
  return {
    rows: experts, columns: steps.length, rowName: (expert) => `expert ${expert}`, columnName: (at) => `${steps[at]}`,
    value: (expert, at) => load[at][expert] ?? NaN,
    words: (expert, at) => `Expert ${expert} in step ${steps[at]}: ${count(load[at][expert] ?? NaN)} tokens, ${count(dropped[at][expert] ?? NaN)} dropped.`,
  };
}

function balance({ steps, layers }, model) {
  const last = steps.length - 1;
  const rows = layers.map(({ layer, load, dropped, penalty }) => {
    const { fullest, droppedShare } = balanceOf(load[last], dropped[last]);
    return [`${layer}`, count(sum(load[last])), count(sum(dropped[last])), percent(droppedShare), `${figures(fullest)} ×`, figures(penalty[last] ?? NaN)];
  });
  return part(`Step ${steps[last]}`, `${model.experts} experts a layer, ${model.top_k} for each token, room for ${figures(model.capacity_factor)} times the even share.`,
    table("Balance of the latest step by layer", ["Layer", "Tokens worked on", "Dropped tokens", "Dropped", "Fullest expert", "Balancing penalty"], rows));
}

const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);

/** Of one layer in one step: what the fullest expert has against the average, and the share that found no room. */
export function balanceOf(load, dropped) {
  const [worked, lost] = [sum(load), sum(dropped)];
  return { fullest: (Math.max(...load) * load.length) / worked, droppedShare: lost / (worked + lost) };
}
