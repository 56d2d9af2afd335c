/** The row of figures: the latest step while the run goes on, medians when it has ended, each with its trend. */

import { element, setText } from "../core/dom.js";
import { count, durationNs, figures, percent } from "../core/format.js";
import { Trend } from "./trend.js";

const MOST_BARS = 32;
const MEDIAN_OF = 512;
const TREND_OF = 48;
/** Ranks within this are alike: whose turn it is to be last is chance. */
const ALIKE = 1.02;
/** A rank this much above the median is worth a warning. */
const SLOW_RANK = 1.1;

export function median(values) {
  const known = values.filter(Number.isFinite).sort((one, other) => one - other);
  return known.length ? known[known.length >> 1] : NaN;
}

/** From the end of the step before to this one's: steps of different ranks overlap, so their own durations add up to more. */
export const stepNs = (row) => row.period_ns ?? row.duration_ns ?? NaN;

/** "286 ms" as ["286", "ms"], so that the number can be set larger than its unit. */
const parts = (text) => {
  const at = text.lastIndexOf(" ");
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
};

export class Now {
  constructor(root) {
    this.cards = new Map();
    for (const card of root.querySelectorAll("[data-figure]")) {
      const part = (name) => card.querySelector(`[data-part="${name}"]`);
      const trend = part("trend") && new Trend(part("trend"));
      this.cards.set(card.dataset.figure, { when: part("when"), value: part("value"), unit: part("unit"), note: part("note"), bars: part("bars"), trend });
    }
    this.rows = new Map();
    this.latest = null;
  }

  /** Steps that a dead rank left unfinished have no figures. */
  addRows(rows) {
    for (const row of rows) {
      if (row.complete === false) continue;
      this.rows.set(row.step, row);
      if (!this.latest || row.step >= this.latest.step) this.latest = row;
    }
  }

  /** `run` as the server describes it, `stats` of the connection. */
  show(run, stats, held) {
    this.#spans(run, stats, held);
    const row = this.latest;
    const recent = [...this.rows.values()].slice(-MEDIAN_OF);
    const medianNs = (run.figures.step_seconds ?? NaN) * 1e9;
    const ended = run.has_ended;
    this.#step(run, row, Number.isFinite(medianNs) ? medianNs : median(recent.map(stepNs)), ended);
    this.#bubble(run, row, ended);
    this.#throughput(run, row, medianNs, ended);
    this.#exposed(run, recent, row, ended);
    this.#loss(recent, row);
    this.#slowest(row);
    const trended = recent.slice(-TREND_OF);
    this.#trend("step", trended.map(stepNs), (run.figures.step_seconds_theory ?? NaN) * 1e9);
    this.#trend("bubble", trended.map((each) => each.bubble_share ?? NaN), hasTheory(run) ? run.theory.bubble_share : NaN);
    this.#trend("throughput", trended.map((each) => (each.samples ?? run.spec.batch) / stepNs(each)));
    this.#trend("exposed", trended.map((each) => each.exposed_share ?? NaN));
    this.#trend("loss", trended.map((each) => each.loss ?? NaN));
  }

  #trend(name, values, theory) {
    this.cards.get(name).trend.show(values, theory);
  }

  #when(row, ended) {
    if (!row) return "";
    return ended ? "median" : `step ${row.step}`;
  }

  #step(run, row, medianNs, ended) {
    const shown = ended || !row ? medianNs : stepNs(row);
    const slow = !ended && row && shown > medianNs * 1.25;
    const typical = ended ? this.#longest() : `median ${durationNs(medianNs)}`;
    const modelled = this.#modelled(run, medianNs);
    const note = slow ? `${(shown / medianNs).toFixed(2)} × the median ${durationNs(medianNs)}` : modelled || typical;
    this.#set("step", this.#when(row, ended), durationNs(shown), row ? note : "", slow ? "bad" : "");
    if (modelled) this.cards.get("step").note.title = `${note}; ${slow ? modelled : typical}`;
  }

  /** What the launch page said that a step would take, and by how much the median one takes longer. */
  #modelled(run, medianNs) {
    const planned = run.figures.step_seconds_theory * 1e9;
    const off = medianNs / planned - 1;
    return Number.isFinite(off) ? `modelled ${durationNs(planned)} · ${off < 0 ? "−" : "+"}${percent(Math.abs(off))}` : "";
  }

  #longest() {
    const longest = [...this.rows.values()].reduce((most, row) => (stepNs(row) > stepNs(most) ? row : most), this.latest);
    return longest ? `longest ${durationNs(stepNs(longest))}` : "";
  }

  #throughput(run, row, medianNs, ended) {
    const samples = row?.samples ?? run.spec.batch;
    const typical = run.figures.samples_per_second ?? samples / (medianNs / 1e9);
    const shown = ended || !row ? typical : samples / (stepNs(row) / 1e9);
    this.#set("throughput", this.#when(row, ended), Number.isFinite(shown) ? `${figures(shown)} /s` : "–",
      `${count(run.spec.batch)} samples a step`);
  }

  #bubble(run, row, ended) {
    const share = ended ? run.figures.bubble_share ?? NaN : row?.bubble_share ?? NaN;
    const ideal = ended ? run.figures.bubble_share_ideal : row?.ideal_share;
    const words = hasTheory(run) ? `theory ${percent(run.theory.bubble_share)}: ${run.theory.formula.split(" = ")[0]}` : "no pipeline, so no theory";
    this.#set("bubble", this.#when(row, ended), percent(share), words, hasTheory(run) && share > run.theory.bubble_share + 0.05 ? "bad" : "");
    const ofIdeal = Number.isFinite(ideal) ? `; ${percent(ideal)} of the ideal` : "";
    this.cards.get("bubble").note.title = (hasTheory(run) ? `theory ${run.theory.formula}` : words) + ofIdeal;
  }

  #exposed(run, recent, row, ended) {
    const typical = run.figures.exposed_share ?? median(recent.map((each) => each.exposed_share ?? NaN));
    const shown = ended ? typical : row?.exposed_share ?? NaN;
    const isInside = ["tp", "cp", "ep"].some((axis) => run.spec.grid[axis] > 1);
    const of = isInside ? "outside actions" : "of a step";
    this.#set("exposed", this.#when(row, ended), percent(shown), !ended && Number.isFinite(typical) ? `median ${percent(typical)} ${of}` : isInside ? `of a step, ${of}` : of);
    this.cards.get("exposed").note.title = isInside ? "What slices, parts and experts exchange lies inside forwards and backwards, which wait for it: the view Collectives tells how long it takes." : "";
  }

  #loss(recent, row) {
    const known = recent.filter((each) => Number.isFinite(each.loss));
    const last = known.at(-1);
    const earlier = known.at(-11) ?? known[0];
    const fell = last && earlier && earlier !== last ? last.loss - earlier.loss : NaN;
    this.#set("loss", row ? `step ${last?.step ?? row.step}` : "", last ? last.loss.toPrecision(4) : "–",
      Number.isFinite(fell) ? `${fell <= 0 ? "−" : "+"}${Math.abs(fell).toPrecision(2)} in ${last.step - earlier.step} steps` : "", fell < 0 ? "ok" : "");
  }

  #slowest(row) {
    const busy = row?.busy_ns ?? [];
    if (!busy.length) return;
    const most = busy.indexOf(Math.max(...busy));
    const ratio = busy[most] / median(busy);
    const isAlike = busy.length > 1 && ratio < ALIKE;
    const words = isAlike ? `rank ${most} at ${ratio.toFixed(2)} × the median` : `${ratio.toFixed(2)} × the median rank`;
    this.#set("slowest", `step ${row.step}`, isAlike ? "none" : `rank ${most}`, busy.length > 1 ? words : "the only one", ratio > SLOW_RANK ? "bad" : "", true);
    const { bars } = this.cards.get("slowest");
    if (busy.length > MOST_BARS) return;
    bars.classList.toggle("is-many", busy.length > 8);
    while (bars.childElementCount < busy.length) bars.append(element("i"));
    busy.forEach((ns, rank) => bars.children[rank].style.setProperty("--share", (ns / busy[most]).toFixed(3)));
  }

  #spans(run, stats, held) {
    const uncertainty = run.figures?.clock_uncertainty_ns;
    const lost = [];
    if (stats.missing_spans) lost.push(`${count(stats.missing_spans)} missing`);
    if (stats.dropped_spans) lost.push(`${count(stats.dropped_spans)} dropped`);
    const clock = Number.isFinite(uncertainty) ? ` · clock ± ${durationNs(uncertainty)}` : "";
    this.#set("trace", "", `${count(held)} spans`, (lost.join(", ") || "none lost") + clock, lost.length ? "bad" : "");
  }

  #set(name, when, value, note, tone = "", isWhole = false) {
    const card = this.cards.get(name);
    const [number, unit] = isWhole ? [value, ""] : parts(value);
    setText(card.when, when);
    setText(card.value, number);
    setText(card.unit, unit);
    setText(card.note, note || "\u00a0");
    card.note.title = note; // a narrow card cuts it off
    card.note.dataset.tone = tone;
  }
}

const hasTheory = (run) => Number.isFinite(run.theory?.bubble_share) && run.spec.grid.pp > 1;
