/** What the range chosen (or the range in sight) adds up to, by kind over all ranks, and by rank. */

import { element, setText } from "../core/dom.js";
import { count, durationNs, percent } from "../core/format.js";
import { ALL_KINDS, IS_COLLECTIVE, KIND, KIND_VARIABLE, KIND_WORD } from "../core/kinds.js";

const COMPUTE = ALL_KINDS.filter((kind) => kind < KIND.WAIT);
const WAITING = [KIND.WAIT];
const COLLECTIVES = ALL_KINDS.filter((kind) => IS_COLLECTIVE[kind]);
const MESSAGES = [KIND.SEND, KIND.RECEIVE]; // also those that a collective of ours is made of: apart, so that no time counts twice
const COLUMNS = [["busy", COMPUTE], ["waiting", WAITING], ["collectives", COLLECTIVES], ["messages", MESSAGES]];
const LINES = ["Compute lanes: busy", "Waiting for data", "In collectives", "In messages between ranks"];
/** More ranks than this and the table by rank is built for a chosen range alone, not with every move of the view. */
const MOST_LIVE_ROWS = 16;

const sumOf = (kinds, totalNs) => kinds.reduce((sum, kind) => sum + totalNs[kind], 0);

export class Totals {
  constructor({ totals, title }, timeline) {
    Object.assign(this, { box: totals, title, timeline });
    for (const event of ["totals", "range"]) timeline.addEventListener(event, () => this.show());
    const shares = element("div");
    this.lines = LINES.map((words) => {
      const value = element("b", {}, "–");
      const bar = element("div", { class: "tl-total-bar" });
      shares.append(element("div", { class: "tl-total" }, element("p", {}, words, value), bar));
      return { value, bar };
    });
    this.kinds = element("div", { class: "tl-kinds" });
    this.body = element("tbody");
    const head = element("tr", {}, ...["rank", ...COLUMNS.map(([name]) => name), "spans"].map((name) => element("th", { scope: "col" }, name)));
    this.table = element("table", { class: "tl-ranks" }, element("caption", { class: "visually-hidden" }, "By rank"), element("thead", {}, head), this.body);
    shares.append(this.kinds);
    this.box.append(shares, element("div", { class: "tl-ranks-box", tabindex: "0", role: "region", "aria-label": "Totals by rank" }, this.table));
  }

  show() {
    const { trace, range } = this.timeline;
    const [wantedFrom, wantedTo] = this.timeline.rangeOrView();
    const fromNs = Math.max(wantedFrom, trace.firstStartNs);
    const toNs = Math.min(wantedTo, trace.lastEndNs);
    const isExact = trace.holds(fromNs, toNs);
    setText(this.title, `${range ? `Chosen range, ${durationNs(range.toNs - range.fromNs)}` : "Range in sight"}, all ranks${isExact ? "" : " · about"}`);
    this.title.title = isExact ? "" : "Too many spans to be read: a cell's time counts as its busiest kind's. The sum is right within 2 %; waiting and numbers of spans are not known.";
    if (!(toNs > fromNs)) return;
    const { totalNs, counts } = trace.totals(fromNs, toNs);
    const wholeNs = (toNs - fromNs) * trace.ranks.length;
    COLUMNS.forEach(([, kinds], at) => this.#line(this.lines[at], kinds, totalNs, isExact || kinds !== WAITING ? wholeNs : NaN));
    this.kinds.replaceChildren(...COLUMNS.flatMap(([, kinds]) => kinds).filter((kind) => counts[kind] > 0 || totalNs[kind] > 0).map((kind) => element(
      "span", { title: isExact ? `${count(counts[kind])} spans` : "where it is the busiest kind" }, element("i", { style: `background:var(${KIND_VARIABLE[kind]})` }),
      `${KIND_WORD[kind]} ${durationNs(totalNs[kind])}`,
    )));
    const hasRows = range || trace.ranks.length <= MOST_LIVE_ROWS;
    this.table.hidden = !hasRows;
    if (hasRows) this.#ranks(trace, fromNs, toNs, isExact);
  }

  #line({ value, bar }, kinds, totalNs, wholeNs) {
    const shown = kinds.filter((kind) => totalNs[kind] > 0);
    setText(value, percent(sumOf(shown, totalNs) / wholeNs));
    bar.replaceChildren(...shown.map((kind) => element("i", { style: `width:${(totalNs[kind] / wholeNs) * 100}%;background:var(${KIND_VARIABLE[kind]})` })));
  }

  #ranks(trace, fromNs, toNs, isExact) {
    while (this.body.rows.length > trace.ranks.length) this.body.deleteRow(-1);
    for (let rank = 0; rank < trace.ranks.length; rank++) {
      const { totalNs, counts } = trace.totals(fromNs, toNs, rank);
      const times = COLUMNS.map(([, kinds]) => durationNs(isExact || kinds !== WAITING ? sumOf(kinds, totalNs) : NaN));
      const values = [...times, count(isExact ? counts.reduce((sum, each) => sum + each, 0) : NaN)];
      const row = this.body.rows[rank] ?? this.#newRow(rank, values.length);
      values.forEach((value, at) => setText(row.cells[at + 1], value));
    }
  }

  #newRow(rank, columns) {
    const row = element("tr", {}, element("th", { scope: "row" }, String(rank)), ...Array.from({ length: columns }, () => element("td")));
    this.body.append(row);
    return row;
  }
}
