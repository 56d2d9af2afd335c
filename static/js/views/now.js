/** The row of figures: the latest step while the run goes on, medians when it has ended. */

import { element, setText } from "../core/dom.js";
import { count, durationNs, figures, percent } from "../core/format.js";

const MOST_BARS = 32;
const MEDIAN_OF = 512;

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
      this.cards.set(card.dataset.figure, { when: part("when"), value: part("value"), unit: part("unit"), note: part("note"), bars: part("bars") });
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
    const durationMedianNs = (run.figures.step_seconds ?? NaN) * 1e9;
    const ended = run.has_ended;
    this.#step(run, row, durationMedianNs, ended);
    this.#bubble(run, row, ended);
    const samples = row?.samples ?? run.spec.batch;
    const shownNs = ended || !row ? durationMedianNs : stepNs(row);
    this.#set("throughput", this.#when(row, ended), Number.isFinite(shownNs) ? `${figures(samples / (shownNs / 1e9))} samples/s` : "–",
      `${count(run.spec.batch)} samples a step`);
    this.#loss(recent, row);
    this.#idle(run, row);
  }

  #when(row, ended) {
    if (!row) return "";
    return ended ? "median" : `step ${row.step}`;
  }

  #step(run, row, medianNs, ended) {
    const shown = ended || !row ? medianNs : stepNs(row);
    const slow = !ended && row && shown > medianNs * 1.25;
    const modelled = run.spec.pace.kind === "paced" ? " · modelled" : "";
    const note = slow ? `${(shown / medianNs).toFixed(2)} × the median ${durationNs(medianNs)}` : ended ? this.#slowest() : `median ${durationNs(medianNs)}`;
    this.#set("step", this.#when(row, ended), durationNs(shown), row ? note + modelled : "", slow ? "bad" : "");
  }

  #slowest() {
    const slowest = [...this.rows.values()].reduce((most, row) => (stepNs(row) > stepNs(most) ? row : most), this.latest);
    return slowest ? `slowest ${durationNs(stepNs(slowest))}` : "";
  }

  #bubble(run, row, ended) {
    const share = ended ? run.figures.bubble_share ?? NaN : row?.bubble_share ?? NaN;
    const ideal = ended ? run.figures.bubble_share_ideal : row?.ideal_share;
    const theory = run.theory?.bubble_share;
    const hasTheory = Number.isFinite(theory) && run.spec.grid.pp > 1;
    const words = hasTheory ? `theory ${percent(theory)}: ${run.theory.formula.split(" = ")[0]}` : "no pipeline, so no theory";
    this.#set("bubble", this.#when(row, ended), percent(share), words, hasTheory && share > theory + 0.05 ? "bad" : "");
    const { note, unit } = this.cards.get("bubble");
    note.title = hasTheory ? `theory ${run.theory.formula}` : words;
    if (Number.isFinite(ideal)) setText(unit, `% · ${percent(ideal)} of ideal`);
  }

  #loss(recent, row) {
    const known = recent.filter((each) => Number.isFinite(each.loss));
    const last = known.at(-1);
    const earlier = known.at(-11) ?? known[0];
    const fell = last && earlier && earlier !== last ? last.loss - earlier.loss : NaN;
    this.#set("loss", row ? `step ${last?.step ?? row.step}` : "", last ? last.loss.toPrecision(4) : "–",
      Number.isFinite(fell) ? `${fell <= 0 ? "−" : "+"}${Math.abs(fell).toPrecision(2)} in ${last.step - earlier.step} steps` : "", fell < 0 ? "ok" : "");
  }

  #idle(run, row) {
    const { bars } = this.cards.get("idle");
    const windowNs = row ? (row.work_end_ns ?? row.end_ns) - (row.work_start_ns ?? row.start_ns) : NaN;
    if (!row?.busy_ns?.length || !(windowNs > 0)) return;
    const idle = row.busy_ns.map((busyNs) => Math.min(1, Math.max(0, 1 - busyNs / windowNs)));
    const most = idle.indexOf(Math.max(...idle));
    const least = idle.indexOf(Math.min(...idle));
    this.#set("idle", `step ${row.step}`, `rank ${most}`, idle.length > 1
      ? `idle ${percent(idle[most])}, rank ${least} ${percent(idle[least])}` : `${percent(idle[most])} idle`, "", true);
    if (idle.length > MOST_BARS) return;
    bars.classList.toggle("is-many", idle.length > 8);
    while (bars.childElementCount < idle.length) bars.append(element("i"));
    idle.forEach((share, rank) => bars.children[rank].style.setProperty("--share", share.toFixed(3)));
  }

  #spans(run, stats, held) {
    const uncertainty = run.figures?.clock_uncertainty_ns;
    const lost = [];
    if (stats.missing_spans) lost.push(`${count(stats.missing_spans)} missing`);
    if (stats.dropped_spans) lost.push(`${count(stats.dropped_spans)} dropped`);
    const clock = Number.isFinite(uncertainty) ? ` · clock ± ${durationNs(uncertainty)}` : "";
    this.#set("trace", "", count(held), (lost.join(", ") || "none lost") + clock, lost.length ? "bad" : "");
  }

  #set(name, when, value, note, tone = "", isWhole = false) {
    const card = this.cards.get(name);
    const [number, unit] = isWhole ? [value, ""] : parts(value);
    setText(card.when, when);
    setText(card.value, number);
    setText(card.unit, unit);
    setText(card.note, note || "\u00a0");
    card.note.dataset.tone = tone;
  }
}
