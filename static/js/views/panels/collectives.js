/** Collectives by group and operation: how much, how fast, and who was waited for; below, one of them step by step. */

import { element } from "../../core/dom.js";
import { bytes, count, durationNs, figures, percent, plural } from "../../core/format.js";
import { KIND_WORD } from "../../core/kinds.js";
import { latestCollectives } from "../../timeline/collectives.js";
import { median } from "../now.js";
import { choice, definitionList, part, table } from "./kit.js";
import { player } from "./player.js";

const MOST_ARRIVALS = 16;

export function mount(body, { timeline, run, ask }) {
  const { trace } = timeline;
  const overview = element("div");
  const one = choice("Operation", []);
  const which = choice("Which", []);
  const arrivals = element("div");
  const words = element("div");
  const steps = player({ trace, ask });
  const order = part("Order of arrival", "", element("div", { class: "panel-tools" }, one.box, which.box), arrivals);
  body.replaceChildren(overview, element("div", { class: "network-columns" }, steps.box, order), words);
  let known = null; // what the server says of the groups seen so far
  let kinds = [];

  async function update() {
    const latest = latestCollectives(trace);
    kinds = byOperation(latest.collectives);
    const names = [...new Set(kinds.map(({ group }) => group))];
    if (!known || names.some((name) => !(name in known.groups))) known = await ask({ groups: names.join(",") });
    if (!words.childElementCount) words.replaceChildren(definitionList(known.definitions));
    overview.replaceChildren(kinds.length ? overviewOf(kinds, latest.steps, known) : element("p", { class: "muted" }, noneWords(run())));
    order.hidden = !kinds.length;
    one.offer(kinds.map((kind, at) => [`${at}`, titleOf(kind)]));
    offerWhich();
    steps.know(known);
    show();
  }

  function offerWhich() {
    const { collectives = [] } = kinds[one.select.value] ?? {};
    which.offer(collectives.slice(0, 40).map((each) => [keyOf(each), `step ${each.step}, number ${each.sequence}, ranks from ${Math.min(...each.members.map(({ rank }) => rank))}`]));
  }

  function show() {
    const chosen = kinds[one.select.value]?.collectives.find((each) => keyOf(each) === which.select.value);
    arrivals.replaceChildren(chosen ? arrivalsOf(chosen) : "");
    if (chosen) steps.follow(chosen);
  }

  one.select.addEventListener("change", () => {
    offerWhich();
    show();
  });
  which.select.addEventListener("change", show);
  return { update };
}

const keyOf = ({ step, sequence, members }) => `${step}.${sequence}.${Math.min(...members.map(({ rank }) => rank))}`;
const titleOf = ({ group, kind, algorithm, bytes: size }) => `${KIND_WORD[kind]} over ${group || "all"}, ${algorithm}, ${bytes(size)}`;

/** Alike in group, operation, algorithm and size; what takes the most time first. */
export function byOperation(collectives) {
  const found = new Map();
  for (const each of collectives) {
    const key = [each.group, each.kind, each.algorithm, each.bytes].join("|");
    if (!found.has(key)) found.set(key, { ...each, collectives: [] });
    found.get(key).collectives.push(each);
  }
  const timeNs = (kind) => kind.collectives.reduce((sum, each) => sum + each.transferNs + each.waitNs, 0);
  return [...found.values()].map((kind) => ({
    ...kind, transferNs: median(kind.collectives.map((each) => each.transferNs)), waitNs: median(kind.collectives.map((each) => each.waitNs)), timeNs: timeNs(kind),
  })).sort((a, b) => b.timeNs - a.timeNs);
}

const noneWords = ({ has_ended: hasEnded }) => (hasEnded
  ? "No complete step of this run has a collective. Below is how one goes."
  : "The first complete step with a collective appears here. Below is how one goes.");

/** How many there are in a step: a whole number where all steps have as many. */
const perStep = (value) => (Number.isInteger(value) ? count(value) : figures(value));

function overviewOf(kinds, steps, { groups, is_emulated: isEmulated, slow_down: slowDown }) {
  const rows = kinds.map((kind) => {
    const { ranks, ceiling, bus_share: busShares } = groups[kind.group] ?? { bus_share: {} };
    const speed = kind.bytes > 0 ? kind.bytes / (kind.transferNs / 1e9) : NaN;
    const busy = speed * (busShares[kind.operation] ?? NaN);
    return [
      `${KIND_WORD[kind.kind]} over ${kind.group || "all"}`, `${ranks ?? kind.members.length}`, kind.algorithm, perStep(kind.collectives.length / steps), bytes(kind.bytes),
      rate(speed), rate(busy), ceiling ? `${rate(ceiling.bytes_per_second)} (${percent(busy / ceiling.bytes_per_second, 0)} used)` : "not modelled",
      durationNs(kind.transferNs), element("span", { class: "split-cell" }, splitBar(kind), durationNs(kind.waitNs)),
    ];
  });
  const emulated = isEmulated ? ` Links are emulated, ${count(slowDown)} times slower than their class: so are these times and rates.` : "";
  return part(`The latest ${plural(steps, "complete step")}`, `Medians over what these steps hold; the costliest first. The bar is transfer against waiting.${emulated}`,
    table("Collectives by group and operation", ["Operation", "Ranks", "Algorithm", "A step", "Size", "algbw", "busbw", "Ceiling", "In transfer", "Waiting for the last"], rows));
}

const rate = (bytesPerSecond) => (Number.isFinite(bytesPerSecond) ? `${bytes(bytesPerSecond)}/s` : "–");

/** Transfer against waiting, as a bar beside the numbers that say the same. */
function splitBar({ transferNs, waitNs }) {
  const share = (100 * transferNs) / (transferNs + waitNs);
  return element("span", { class: "split-bar", "aria-hidden": "true" }, element("i", { style: `width:${share}%` }));
}

function arrivalsOf({ members, transferNs }) {
  const firstNs = members[0].startNs;
  const spreadNs = members.at(-1).startNs - firstNs || 1;
  const rows = members.slice(0, MOST_ARRIVALS).map(({ rank, startNs, durationNs: lasted }) => [
    `rank ${rank}`,
    element("span", { class: "split-cell" }, element("span", { class: "late-bar", "aria-hidden": "true" }, element("i", { style: `width:${((startNs - firstNs) / spreadNs) * 100}%` })), durationNs(startNs - firstNs)),
    durationNs(lasted - transferNs),
  ]);
  const rest = members.length > MOST_ARRIVALS ? element("p", { class: "muted small" }, `and ${members.length - MOST_ARRIVALS} more`) : "";
  return element("div", {}, table("Order of arrival", ["In order", "After the first", "Waited"], rows), rest);
}
