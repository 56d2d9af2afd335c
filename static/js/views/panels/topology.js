/** Where ranks are, what flows over which links, and who talks to whom. */

import { element, setText } from "../../core/dom.js";
import { bytes, count, durationNs, percent } from "../../core/format.js";
import { heldSteps } from "../../timeline/collectives.js";
import { trafficOfStep } from "../../timeline/traffic.js";
import { stepNs } from "../now.js";
import { heat, squares } from "./heat.js";
import { choice, definitionList, part, table } from "./kit.js";
import { LINES, distance, topologyMap } from "./topology_map.js";

const ZOOMS = [["10", "small"], ["24", "middle"], ["36", "large"], ["64", "largest"]];
const SIZES = [[16, "64"], [64, "36"], [Infinity, "10"]]; // up to so many ranks, the size to begin with
const MOST_CELLS = 128; // of the matrix, each way

export function mount(body, { run, timeline, ask }) {
  const { trace } = timeline;
  const { ranks } = run();
  const warnings = element("ul", { class: "topology-warnings", hidden: true });
  const group = choice("Lay over", []);
  const shape = choice("as", [["ring", "ring"], ["tree", "tree"]]);
  const zoom = choice("Size", ZOOMS);
  zoom.select.value = SIZES.find(([most]) => ranks <= most)[1];
  const said = element("p", { class: "heat-said small muted", role: "status" });
  const map = topologyMap(sayRank);
  const legend = element("p", { class: "panel-legend small" }, ...Object.values(LINES).map(({ colour, dash, words }) => element("span", {}, lineSample(colour, dash), words)));
  const links = element("div");
  const matrix = heat("Traffic from rank to rank", { colour: "--kind-send", cellPx: squares });
  const matrixPart = element("div", {}, part("Traffic, from row to column", ranks > MOST_CELLS
    ? `A cell is ${Math.ceil(ranks / MOST_CELLS)} by ${Math.ceil(ranks / MOST_CELLS)} ranks.` : "A row a sender, a column a receiver; the stronger its colour, the more bytes.", matrix.box));
  const words = element("div");
  body.replaceChildren(warnings, element("div", { class: "panel-tools" }, group.box, shape.box, zoom.box, legend), map.box, said,
    element("div", { class: "network-columns wide-first" }, links, matrixPart), words);
  let known = null;
  let lines = null;
  let traffic = new Map();
  let window = null;

  async function update() {
    if (!known) {
      known = await ask();
      warnings.append(...known.warnings.map((sentence) => element("li", {}, sentence)));
      warnings.hidden = !known.warnings.length;
      group.offer([["", "nothing"], ...known.groups.map((name) => [name, name])]);
      group.select.value = known.groups[0] ?? "";
      words.replaceChildren(definitionList(known.definitions));
      await layOver();
    }
    [window = null] = heldSteps(trace, 1);
    traffic = window ? trafficOfStep(trace, window) : new Map();
    links.replaceChildren(linksPart(known, traffic, window, ranks));
    matrix.show(binned(traffic, ranks));
    show();
  }

  async function layOver() {
    const name = group.select.value;
    lines = name ? await ask({ group: name }) : null;
    shape.select.disabled = !name;
  }

  function show() {
    if (!known) return;
    const laid = lines && { groups: lines.groups, pairs: lines.pairs[shape.select.value] };
    map.show({ ...known, sent: sentBy(traffic, ranks), lines: laid, cell: Number(zoom.select.value) });
    sayRank(map.chosen);
  }

  function sayRank(rank) {
    const address = Object.entries(run().grid[rank]).filter(([axis]) => run().spec.grid[axis] > 1).map(([axis, at]) => `${axis} ${at}`).join(", ");
    let [out, into] = [0, 0];
    for (const [pair, size] of traffic) {
      if (Math.floor(pair / ranks) === rank) out += size;
      if (pair % ranks === rank) into += size;
    }
    const flows = window ? ` In step ${window.step} it sent ${bytes(out)} and received ${bytes(into)}.` : "";
    setText(said, `Rank ${rank}${address && `, ${address}`}: server ${known.servers[rank]}, rack ${known.racks[rank]}.${flows}`);
  }

  group.select.addEventListener("change", async () => {
    await layOver();
    show();
  });
  shape.select.addEventListener("change", show);
  zoom.select.addEventListener("change", show);
  return { update };
}

function lineSample(colour, dash) {
  const style = `border-top-color: var(${colour}); border-top-style: ${dash.length ? (dash[0] > 3 ? "dashed" : "dotted") : "solid"}`;
  return element("b", { class: "line-sample", style });
}

function sentBy(traffic, ranks) {
  const sent = new Float64Array(ranks);
  for (const [pair, size] of traffic) sent[Math.floor(pair / ranks)] += size;
  return sent;
}

function linksPart(known, traffic, window, ranks) {
  const flow = { server: 0, rack: 0, cluster: 0 };
  let whole = 0;
  for (const [pair, size] of traffic) {
    flow[distance(known, Math.floor(pair / ranks), pair % ranks)] += size;
    whole += size;
  }
  const seconds = window ? stepNs(window.figures) / 1e9 : NaN;
  const rows = known.links.map(({ distance: key, words, class: word, bytes_per_second: speed, latency_seconds: latency }) => [
    words, ...(known.is_emulated ? [word, `${bytes(speed)}/s`, durationNs(latency * 1e9), `${bytes(speed / known.slow_down / known.size_factor)}/s`] : []),
    bytes(flow[key]), whole ? percent(flow[key] / whole) : "–", Number.isFinite(seconds) ? `${bytes(flow[key] / seconds)}/s` : "–",
  ]);
  const tells = known.is_emulated
    ? `Links are emulated: ${count(known.slow_down)} times slower than their class, and a byte counts as ${count(known.size_factor)}. "As seen" is what a rank's bytes get.`
    : "Links are this machine's own. Servers and racks are where modelled links would find the ranks.";
  const heads = ["Between ranks", ...(known.is_emulated ? ["Class", "By its maker", "Latency", "As seen"] : []), "Traffic now", "Of all", "Flow"];
  return part(window ? `Links, in step ${window.step}` : "Links", tells, table("Links by class, with what flows over them", heads, rows));
}

/** The matrix for the heat map, ranks put together where there are too many for a cell each. */
export function binned(traffic, ranks) {
  const each = Math.ceil(ranks / MOST_CELLS);
  const cells = Math.ceil(ranks / each);
  const sums = new Float64Array(cells * cells);
  for (const [pair, size] of traffic) sums[Math.floor(Math.floor(pair / ranks) / each) * cells + Math.floor((pair % ranks) / each)] += size;
  const name = (at) => (each === 1 ? `${at}` : `${at * each}–${Math.min(ranks, (at + 1) * each) - 1}`);
  const value = (row, column) => sums[row * cells + column];
  return {
    rows: cells, columns: cells, rowName: name, columnName: name, value,
    words: (row, column) => `From ${each > 1 ? "ranks" : "rank"} ${name(row)} to ${name(column)}: ${bytes(value(row, column))}.`,
  };
}
