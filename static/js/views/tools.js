/** The row of tools above the timeline: search, grouping, order, and what is laid over the lanes. Keys do the same. */

import { element, setText, throttled } from "../core/dom.js";
import { count } from "../core/format.js";
import { criticalPath } from "../timeline/path.js";
import { Walk } from "../timeline/walk.js";

const TYPING_MS = 120;

/** "3 of 1,204": the chosen span's place among the matches, and what is known of their number. */
function foundWords({ query, isOn, teller }, selected) {
  if (query.error) return query.error;
  if (!isOn) return "";
  if (teller.error) return teller.refusal || `The server does not answer${teller.isDone ? "" : "; trying again"}`;
  const missing = teller.unread ? `, ${count(teller.unread)} ${teller.unread === 1 ? "part" : "parts"} of the run not readable` : "";
  const extent = teller.isDone ? (teller.isGrowing ? " so far" : "") : teller.share ? ` … ${Math.round(100 * teller.share)} %` : " …";
  if (!teller.count) return (teller.isDone ? `none${extent}` : `searching${extent}`) + missing;
  const place = selected ? teller.placeOf(selected) : -1;
  return `${place < 0 ? "" : `${count(place + 1)} of `}${count(teller.count)}${extent}${missing}`;
}

export class Tools {
  /** `part(name)` finds an element; `fetchIdeal(step)` promises a step's ideal, or words why there is none. */
  constructor(part, timeline, announcer, { fetchIdeal, toggleTable }) {
    Object.assign(this, { part, timeline, announcer, fetchIdeal, toggleTable });
    this.walk = new Walk(timeline);
    this.idealAsked = 0;
    for (const { axis, name } of timeline.arrangement.axes) part("group").append(element("option", { value: axis }, `Lanes by ${name}`));
    part("group").closest("label").hidden = timeline.arrangement.axes.length === 0;
    this.#listen();
    this.#show();
  }

  #listen() {
    const { part, timeline } = this;
    const search = part("search");
    const type = throttled(TYPING_MS, () => timeline.search.set(search.value));
    search.addEventListener("input", type);
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.walk.stepMatch(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") this.#leaveSearch();
    });
    part("group").addEventListener("change", () => timeline.arrange({ by: part("group").value }));
    for (const [name, act] of Object.entries({
      "match-before": () => this.walk.stepMatch(-1), "match-next": () => this.walk.stepMatch(1), sorted: () => this.toggleSorted(),
      bare: () => this.toggleBare(), path: () => this.togglePath(), ideal: () => this.toggleIdeal(), "table-toggle": () => this.toggleTable(),
    })) part(name).addEventListener("click", act);
    for (const event of ["arrange", "search", "path", "ideal", "select"]) timeline.addEventListener(event, () => this.#show());
  }

  #show() {
    const { part, timeline } = this;
    const { arrangement, search } = timeline;
    part("group").value = arrangement.by;
    for (const [name, isOn] of [["sorted", arrangement.isSorted], ["bare", arrangement.isBare], ["path", timeline.path], ["ideal", timeline.ideal]]) {
      part(name).setAttribute("aria-pressed", String(Boolean(isOn)));
    }
    const words = foundWords(search, timeline.selected);
    setText(part("found"), words);
    const isBad = Boolean(search.query.error || search.teller.error);
    part("found").title = words; // a narrow page cuts it off
    part("found").dataset.tone = isBad ? "bad" : "";
    part("search").style.setProperty("--found-letters", isBad ? 0 : Math.max(6, words.length));
    part("search").setAttribute("aria-invalid", String(Boolean(search.query.error)));
    for (const name of ["match-before", "match-next"]) part(name).disabled = search.teller.count === 0;
  }

  focusSearch() {
    this.part("search").focus();
    this.part("search").select();
  }

  #leaveSearch() {
    this.part("search").value = "";
    this.timeline.search.set("");
    this.timeline.parts.scroller.focus();
  }

  /** What an address asks for, and nothing else: what is so already is left alone, since sorting and searching are dear. */
  set({ by, folded, isSorted, isBare, search }) {
    const { arrangement } = this.timeline;
    const known = arrangement.axes.some(({ axis }) => axis === by) ? by : "";
    if (known !== arrangement.by || isSorted !== arrangement.isSorted || isBare !== arrangement.isBare) {
      this.timeline.arrange({ by: known, isSorted, isBare });
    }
    const isFolded = known ? folded : [];
    if (String(isFolded) !== String([...arrangement.folded])) this.timeline.arrange({ folded: new Set(isFolded) });
    if (search === this.timeline.search.text) return;
    this.part("search").value = search;
    this.timeline.search.set(search);
  }

  markSelected() {
    const { selected } = this.timeline;
    if (selected) this.timeline.setChosenRange({ fromNs: selected.startNs, toNs: selected.endNs });
  }

  nextGrouping() {
    const choices = ["", ...this.timeline.arrangement.axes.map(({ axis }) => axis)];
    const at = choices.indexOf(this.timeline.arrangement.by);
    this.timeline.arrange({ by: choices[(at + 1) % choices.length] });
    this.#say(this.part("group").selectedOptions[0].textContent);
  }

  toggleFolds() {
    const { arrangement } = this.timeline;
    const isAll = arrangement.keys.every((key) => arrangement.folded.has(key));
    this.timeline.arrange({ folded: new Set(isAll ? [] : arrangement.keys) });
  }

  toggleSorted() {
    this.timeline.arrange({ isSorted: !this.timeline.arrangement.isSorted });
  }

  toggleBare() {
    this.timeline.arrange({ isBare: !this.timeline.arrangement.isBare });
  }

  /** The step that is meant: the chosen span's, else the one in the middle of the view, else the nearest before it. */
  #step() {
    const { selected, trace, view } = this.timeline;
    if (selected?.step >= 0) return trace.steps.byStep.get(selected.step) ?? null;
    return trace.steps.nearest((view.fromNs + view.toNs) / 2);
  }

  togglePath() {
    const { timeline } = this;
    const window = this.#step();
    if (timeline.path?.step === window?.step) return timeline.setPath(null);
    timeline.setPath(window && criticalPath(timeline.trace, window.step));
    this.#say(timeline.path ? `Longest chain of step ${timeline.path.step}` : window ? "Not all of the step is read: zoom in to it" : "No step in sight");
  }

  async toggleIdeal() {
    const { timeline } = this;
    const window = this.#step();
    const asked = ++this.idealAsked;
    if (!window || timeline.ideal?.step === window.step) return timeline.setIdeal(null);
    const ideal = await this.fetchIdeal(window);
    if (asked !== this.idealAsked) return;
    if (typeof ideal !== "string") timeline.setIdeal(ideal);
    this.#say(typeof ideal === "string" ? ideal : `Ideal of step ${window.step}`);
  }

  #say(words) {
    setText(this.announcer, words);
  }
}
