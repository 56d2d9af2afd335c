/** Lateness of every rank over the steps: who is it, and is it always the same one? */

import { element } from "../../core/dom.js";
import { durationNs, percent } from "../../core/format.js";
import { completeSteps } from "../../timeline/collectives.js";
import { median } from "../now.js";
import { heat } from "./heat.js";
import { definitionList, part, table } from "./kit.js";

const MOST_STEPS = 64;
const MOST_LISTED = 12;
const RECURS = 0.5;
const FULL = 0.5; // of the median rank's work beyond it, in the strongest colour

export function mount(body, { run, timeline, ask }) {
  const map = heat("Lateness by rank and step", { colour: "--warn" });
  const work = heat("Time at work by rank and step", { colour: "--kind-backward" });
  const verdict = element("p", { class: "panel-verdict" });
  const ranking = element("div");
  const words = element("div");
  const slow = element("p", { class: "panel-verdict", "data-part": "slow-ranks" });
  const late = element("div", { class: "network-columns" },
    part("Late to collectives", "A row a rank, a column a step; the stronger its colour, the later.", map.box), ranking);
  body.replaceChildren(verdict, slow, part("At work", "A row a rank, a column a step; the stronger its colour, the longer beyond the step's median rank.", work.box), late, words);
  let isExplained = false;

  return {
    async update() {
      if (!isExplained) {
        words.replaceChildren(definitionList((await ask()).definitions));
        isExplained = true;
      }
      const steps = completeSteps(timeline.trace, MOST_STEPS).reverse();
      const found = lateness(steps, run().ranks);
      verdict.textContent = judged(found, steps.length);
      slow.textContent = steps.length ? slowWords(run().figures?.slow_ranks ?? []) : "";
      if (!steps.length) return;
      work.show(atWork(steps, run().ranks));
      late.hidden = !found.some(({ medianNs, share }) => medianNs > 0 || share > 0);
      if (late.hidden) return; // nobody was late, or there are no collectives
      map.show({
        rows: run().ranks, columns: steps.length, rowName: (rank) => `rank ${rank}`, columnName: (at) => `${steps[at].step}`,
        value: (rank, at) => steps[at].figures.late_ns[rank],
        words: (rank, at) => `Rank ${rank} in step ${steps[at].step}: ${durationNs(steps[at].figures.late_ns[rank])} later than the first, over all its collectives.`,
      });
      ranking.replaceChildren(ranked(found));
    },
  };
}

/** Each rank's busy time in a step beyond that of the step's median rank, for the heat map. */
function atWork(steps, ranks) {
  const usual = steps.map(({ figures }) => median(figures.busy_ns));
  const beyond = (rank, at) => steps[at].figures.busy_ns[rank] / usual[at] - 1;
  return {
    rows: ranks, columns: steps.length, full: FULL, rowName: (rank) => `rank ${rank}`, columnName: (at) => `${steps[at].step}`,
    value: (rank, at) => Math.max(0, beyond(rank, at)),
    words: (rank, at) => `Rank ${rank} in step ${steps[at].step}: at work for ${durationNs(steps[at].figures.busy_ns[rank])}, ${(1 + beyond(rank, at)).toFixed(2)} times the median rank.`,
  };
}

/** By rank, the latest first: median lateness and the share of steps in which it was later than every other. */
export function lateness(steps, ranks) {
  const latest = new Array(ranks).fill(0);
  for (const { figures: { late_ns: late } } of steps) {
    const most = Math.max(...late);
    const at = late.indexOf(most);
    if (most > 0 && at === late.lastIndexOf(most)) latest[at]++; // of equals none is later than every other
  }
  return latest
    .map((count, rank) => ({ rank, share: steps.length ? count / steps.length : 0, medianNs: median(steps.map(({ figures }) => figures.late_ns[rank])) }))
    .sort((one, other) => other.share - one.share || other.medianNs - one.medianNs || one.rank - other.rank);
}

/** The ranks that the recorder found to compute for longer than the others, each with how much and since when. */
export function slowWords(found) {
  if (!found.length) return "No rank computes for longer than the others, step after step.";
  const each = found.map(({ rank, from_step: step, factor }) => `rank ${rank} has computed ${factor.toFixed(2)} times as long as the others in every step since step ${step}`);
  const words = each.join("; ");
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}

function judged([worst], steps) {
  if (!steps) return "The first complete step appears here.";
  if (!(worst.share > 0)) return `In none of the latest ${steps} steps did anyone come late to a collective.`;
  return worst.share > RECURS
    ? `It recurs: rank ${worst.rank} is the latest in ${percent(worst.share, 0)} of the latest ${steps} steps, by ${durationNs(worst.medianNs)} in the median.`
    : `It roams: no rank is the latest in more than half of the latest ${steps} steps; rank ${worst.rank} is so most often, in ${percent(worst.share, 0)}.`;
}

function ranked(found) {
  const rows = found.slice(0, MOST_LISTED).map(({ rank, share, medianNs }) => [`${rank}`, durationNs(medianNs), percent(share, 0)]);
  const rest = found.length > MOST_LISTED ? `The latest ${MOST_LISTED} of ${found.length} ranks.` : "";
  return part("By rank", rest, table("Lateness by rank", ["Rank", "Lateness", "Latest in"], rows));
}
