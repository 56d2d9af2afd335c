/** In words: what a step's time goes into, what costs most, and what to try, with a way to the form so filled in. */

import { element, setText } from "../../core/dom.js";
import { bytes, durationNs, percent, plural, unbroken } from "../../core/format.js";
import { signed, stepBar } from "../step_bar.js";
import { part, table } from "./kit.js";

export function mount(body, { run, launchForm, ask }) {
  const words = element("p", { class: "explain-words", role: "status", "data-part": "explain-words" });
  const rest = element("div", { class: "explain" });
  body.replaceChildren(words, rest);
  let shown = "";
  let isLast = false; // asked after the run had ended

  async function update() {
    if (isLast) return;
    const hasEnded = run().has_ended;
    const found = await ask();
    isLast = hasEnded;
    setText(words, unbroken(found.words));
    const text = JSON.stringify(found);
    if (text === shown || body.contains(document.activeElement?.closest(".remedy a"))) return; // not from under a person's finger
    shown = text;
    rest.replaceChildren(...[
      found.step_ms && wholePart(found),
      (found.step_ms || found.causes.length > 0) && causesPart(found, run(), launchForm),
    ].filter(Boolean));
  }

  return { update };
}

function wholePart({ pieces, step_ms: stepMs, steps, is_paced: isPaced }) {
  const title = `A step's ${durationNs(stepMs * 1e6)}, by cause`;
  const rows = pieces.map(({ title: cause, ms, share, says }) => [cause, signed(ms), percent(share), says]);
  const emulated = isPaced ? " Actions take emulated time, which is theirs by the pace." : "";
  const tells = `${steps > 1 ? `Medians of the latest ${plural(steps, "complete step")}, the run's first left out` : "One complete step"}. Each cause is what the simulated step takes longer with it; the last two are what the measured step took beyond the simulated one. Together they are the step time.${emulated}`;
  return part(title, tells, barWithLegend(pieces, title), table(title, ["Cause", "Of a step", "Share", "What it is"], rows));
}

function barWithLegend(pieces, title) {
  const legend = pieces.filter((piece) => piece.ms > 0).map(({ key, title: cause, share }) => element("li", {}, element("span", { class: `explain-swatch piece-${key}` }), `${cause} ${percent(share)}`));
  return element("div", { class: "explain-whole" }, stepBar(pieces, title), element("ul", { class: "explain-legend" }, ...legend));
}

function causesPart({ causes }, { id }, launchForm) {
  const items = causes.map((cause) => element(
    "li", { class: "cause" },
    element("div", { class: "cause-head" }, element("b", {}, cause.title), element("span", { class: "cause-cost" }, costOf(cause))),
    element("p", { class: "muted" }, unbroken(cause.says)),
    cause.remedies.length > 0 && element("ul", { class: "remedies" }, ...cause.remedies.map((one) => remedy(one, id, launchForm))),
    cause.remedies.length === 0 && element("p", { class: "small muted" }, cause.ms === null ? "No change of the job that the formulas know would make it a hundredth smaller." : "No change of the job that the simulator knows would gain a hundredth of a step here."),
  ));
  const tells = "The dearest cause first. What a change would gain is the simulator's, for this job and this pace, each change by itself.";
  return part("What to try", tells, items.length ? element("ol", { class: "causes" }, ...items) : element("p", {}, "Nothing: the step is nearly all work."));
}

const costOf = ({ ms, bytes: held, share }) => (ms === null ? `${bytes(held)}, ${percent(share)} of the card` : `${signed(ms)} of each step, ${percent(share)}`);

function remedy({ title, says, sets, ...gains }, id, launchForm) {
  const query = new URLSearchParams(sets);
  const opens = launchForm && Object.keys(sets).length > 0;
  const [gain, beside] = gainOf(gains);
  return element(
    "li", { class: "remedy" },
    element("div", {}, element("b", {}, title), element("p", { class: "muted small" }, unbroken(says))),
    element("span", { class: "remedy-gain" }, element("b", {}, `−${gain}`), element("span", { class: "muted small" }, beside)),
    opens ? element("a", { class: "button", href: `${launchForm}?from=${id}&${query}`, "aria-label": `Open in the form: ${title}` }, "Open in the form") : element("span", {}),
  );
}

/** What a change saves, and what stands below it: of time its share of a step, of memory what a step takes longer for it. */
function gainOf({ gain_ms: gainMs, gain_bytes: gainBytes, costs_ms: costsMs, share }) {
  if (gainBytes === undefined) return [durationNs(gainMs * 1e6), `${percent(share)} less a step`];
  const longer = costsMs === null ? "" : `, a step ${signed(Math.abs(costsMs))} ${costsMs < 0 ? "shorter" : "longer"}`;
  return [bytes(gainBytes), `${percent(share)} less${longer}`];
}
