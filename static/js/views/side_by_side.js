/**
 * One step of several runs, one below the other on one scale of time, from each step's first work on; one cursor through all of
 * them says what every rank does at that moment.
 */

import { Colours } from "../core/colours.js";
import { element, setText } from "../core/dom.js";
import { durationNs, percent, plural } from "../core/format.js";
import { ALL_KINDS, KIND_VARIABLE, KIND_WORD, LANE, labelOf } from "../core/kinds.js";

const MOST_LANES_PX = 260;
const TALLEST_RANK_PX = 34;
const LOWEST_RANK_PX = 4;
const GUTTER_PX = 58;
const THIN_SHARE = 0.22; // of a rank's height, for collectives and transfers
const LOWEST_LABEL_PX = 14;
const CURSOR_STEP_PX = 8;
const MOST_RANKS_IN_WORDS = 16;

export class SideBySide {
  /** `root` has the parts step, before, next, words, strips, cursor, legend, and the address in data-url. */
  constructor(root) {
    this.root = root;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.colours = new Colours();
    this.found = null;
    this.cursorNs = null;
    this.colours.watch(() => this.draw());
    this.part("before").addEventListener("click", () => this.load(this.found.step - 1));
    this.part("next").addEventListener("click", () => this.load(this.found.step + 1));
    this.part("step").addEventListener("change", ({ target }) => this.load(Number(target.value)));
    const strips = this.part("strips");
    strips.addEventListener("pointermove", (event) => this.#point(event));
    strips.addEventListener("pointerleave", () => this.#setCursor(null));
    strips.addEventListener("keydown", (event) => this.#press(event));
    new ResizeObserver(() => this.draw()).observe(strips);
  }

  /** Without a step: the last that all runs have. */
  async load(step) {
    const asked = step === undefined ? "" : `&step=${step}`;
    const response = await fetch(`${this.root.dataset.url}${asked}`, { headers: { Accept: "application/json" } });
    const found = await response.json();
    if (!response.ok) return setText(this.part("words"), found.error);
    this.found = found;
    this.cursorNs = null;
    this.#show();
  }

  #show() {
    const { found } = this;
    const hasStep = found.step !== null;
    for (const [name, isOff] of [["before", !hasStep || found.step <= found.first], ["next", !hasStep || found.step >= found.last]]) {
      this.part(name).disabled = isOff;
    }
    this.part("step").disabled = !hasStep;
    if (!hasStep) return setText(this.part("words"), "The runs have no step in common yet.");
    Object.assign(this.part("step"), { value: found.step, min: found.first, max: found.last });
    const leftOut = found.runs.reduce((sum, run) => sum + run.left_out, 0);
    setText(this.part("words"), `of ${found.first} to ${found.last}${leftOut ? ` · ${plural(leftOut, "shortest span")} left out` : ""}`);
    this.part("strips").replaceChildren(...found.runs.map((run) => this.#strip(run)));
    const kinds = ALL_KINDS.filter((kind) => found.runs.some((run) => run.spans.kind.includes(kind)));
    this.part("legend").replaceChildren(...kinds.map((kind) => element("li", {}, element("i", { style: `background:var(${KIND_VARIABLE[kind]})` }), KIND_WORD[kind])));
    this.draw();
    this.#setCursor(null);
  }

  #strip(run) {
    const words = [durationNs(run.length_ns), run.bubble_share !== null && `bubble ${percent(run.bubble_share)}`, run.is_paced && "paced"];
    return element("figure", {}, element("figcaption", {}, element("b", {}, run.name), element("span", {}, words.filter(Boolean).join(" · "))),
      element("canvas", { role: "img", "aria-label": `${run.name}: step ${this.found.step} of ${plural(run.ranks, "rank")}, ${words.filter(Boolean).join(", ")}` }),
      element("p", { class: "side-at" }));
  }

  draw() {
    if (!this.found?.runs.length) return;
    const longestNs = Math.max(...this.found.runs.map((run) => run.length_ns));
    this.found.runs.forEach((run, at) => {
      const canvas = this.#canvas(at);
      const ratio = window.devicePixelRatio || 1;
      const widthPx = canvas.parentElement.clientWidth;
      const rankPx = Math.max(LOWEST_RANK_PX, Math.min(TALLEST_RANK_PX, Math.floor(MOST_LANES_PX / run.ranks)));
      const heightPx = rankPx * run.ranks;
      canvas.width = Math.round(widthPx * ratio);
      canvas.height = Math.round(heightPx * ratio);
      canvas.style.height = `${heightPx}px`;
      const context = canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.#drawRun(context, run, { widthPx, heightPx, rankPx, nsPerPx: longestNs / Math.max(1, widthPx - GUTTER_PX) });
    });
    this.longestNs = longestNs;
  }

  #drawRun(context, run, { widthPx, heightPx, rankPx, nsPerPx }) {
    const { colours } = this;
    const gapPx = rankPx > 10 ? 2 : rankPx > 5 ? 1 : 0;
    const thinPx = rankPx >= 14 ? Math.round(rankPx * THIN_SHARE) : 0;
    const tallPx = rankPx - gapPx - thinPx;
    const endPx = GUTTER_PX + run.length_ns / nsPerPx;
    context.fillStyle = colours.card;
    context.fillRect(0, 0, widthPx, heightPx);
    context.font = "11px Inter, ui-sans-serif, system-ui, sans-serif";
    context.textBaseline = "middle";
    const every = Math.ceil(13 / rankPx);
    for (let rank = 0; rank < run.ranks; rank++) {
      context.fillStyle = colours.lane;
      context.fillRect(GUTTER_PX, rank * rankPx, endPx - GUTTER_PX, tallPx);
      context.fillStyle = colours.muted;
      if (rank % every === 0) context.fillText(`rank ${rank}`, 2, rank * rankPx + Math.max(rankPx, 12) / 2);
    }
    const { spans } = run;
    for (let at = 0; at < spans.rank.length; at++) {
      const isCompute = spans.lane[at] === LANE.COMPUTE;
      if (!isCompute && !thinPx) continue;
      const left = GUTTER_PX + spans.start_ns[at] / nsPerPx;
      const width = Math.max(0.7, spans.duration_ns[at] / nsPerPx);
      const top = spans.rank[at] * rankPx + (isCompute ? 0 : tallPx);
      context.fillStyle = colours.kind[spans.kind[at]];
      context.fillRect(left, top, width, isCompute ? tallPx : thinPx - 1);
      if (isCompute && tallPx >= LOWEST_LABEL_PX) this.#label(context, labelOf(spans.kind[at], spans.micro_batch[at]), spans.kind[at], left, width, top + tallPx / 2);
    }
    context.fillStyle = colours.muted;
    context.fillRect(endPx - 1, 0, 1, heightPx);
    if (this.cursorNs === null) return;
    context.fillStyle = colours.text;
    context.fillRect(GUTTER_PX + this.cursorNs / nsPerPx, 0, 1, heightPx);
  }

  #label(context, words, kind, left, width, middle) {
    const wordsPx = words ? context.measureText(words).width : Infinity;
    if (wordsPx + 4 > width) return;
    context.fillStyle = this.colours.onKind[kind];
    context.fillText(words, left + (width - wordsPx) / 2, middle + 0.5);
  }

  #canvas(at) {
    return this.part("strips").children[at].querySelector("canvas");
  }

  #point(event) {
    const canvas = this.found?.runs.length ? this.#canvas(0) : null;
    if (!canvas) return;
    const { left, width } = canvas.getBoundingClientRect();
    const ns = (event.clientX - left - GUTTER_PX) * (this.longestNs / (width - GUTTER_PX));
    this.#setCursor(ns < 0 || ns > this.longestNs ? null : ns);
  }

  #press(event) {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || !this.found?.runs.length) return;
    event.preventDefault();
    const stepNs = (CURSOR_STEP_PX * this.longestNs) / this.#canvas(0).clientWidth;
    this.#setCursor(Math.max(0, Math.min(this.longestNs, (this.cursorNs ?? 0) + way * stepNs)));
  }

  #setCursor(ns) {
    if (!this.found?.runs.length) return;
    this.cursorNs = ns;
    this.draw();
    setText(this.part("cursor"), ns === null ? "Point at a moment, or use the arrow keys." : `${durationNs(ns)} after the step's first work`);
    this.found.runs.forEach((run, at) => setText(this.part("strips").children[at].querySelector(".side-at"), ns === null ? "" : doing(run, ns)));
  }
}

/** "rank 0 F3 · rank 1 idle · …" */
function doing({ spans, ranks, length_ns: lengthNs }, ns) {
  if (ns > lengthNs) return "over";
  const words = new Array(Math.min(ranks, MOST_RANKS_IN_WORDS)).fill("idle");
  for (let at = 0; at < spans.rank.length; at++) {
    const isThen = spans.start_ns[at] <= ns && ns < spans.start_ns[at] + spans.duration_ns[at];
    if (!isThen || spans.rank[at] >= words.length) continue;
    if (spans.lane[at] !== LANE.COMPUTE && words[spans.rank[at]] !== "idle") continue;
    words[spans.rank[at]] = labelOf(spans.kind[at], spans.micro_batch[at]) || KIND_WORD[spans.kind[at]];
  }
  return words.map((word, rank) => `rank ${rank} ${word}`).join(" · ") + (ranks > words.length ? " · …" : "");
}
