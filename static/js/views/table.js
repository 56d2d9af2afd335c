/** The spans in sight as a table, page by page: what the canvas shows, for those who do not see it, and to read exact figures. */

import { element, setText, throttled } from "../core/dom.js";
import { bytes, count, durationNs, momentNs } from "../core/format.js";
import { KIND, LANE, LANE_WORDS } from "../core/kinds.js";
import { wordsOf } from "../timeline/marks.js";
import { titleOf, whyOf } from "../timeline/words.js";

const PAGE_ROWS = 100;
/** To list spans by start, all in sight are gathered first; beyond this one has to look closer. */
const MOST_SPANS = 50_000;
const REFRESH_MS = 500;
const HEADS = ["Start", "Duration", "Rank", "Lane", "What", "Step", "Stage", "Size", "Why"];

export class SpanTable {
  constructor(box, toggle, timeline) {
    Object.assign(this, { box, toggle, timeline, page: 0 });
    this.caption = element("p", { class: "tl-table-caption", role: "status" });
    this.body = element("tbody");
    this.before = element("button", { type: "button", onclick: () => this.#turn(-1) }, "Earlier");
    this.after = element("button", { type: "button", onclick: () => this.#turn(1) }, "Later");
    this.marks = element("p", { class: "muted tl-table-caption" });
    const heads = element("tr", {}, ...HEADS.map((name) => element("th", { scope: "col" }, name)));
    box.append(
      element("div", { class: "tl-table-head" }, this.caption, this.before, this.after), this.marks,
      element("div", { class: "tl-table-box", tabindex: "0", role: "region", "aria-label": "Spans" },
        element("table", {}, element("caption", { class: "visually-hidden" }, "Spans in sight, by start"), element("thead", {}, heads), this.body)),
    );
    const refresh = throttled(REFRESH_MS, () => {
      if (!box.hidden && !timeline.isFollowing) this.#show();
    });
    for (const event of ["view", "range", "arrange", "read"]) timeline.addEventListener(event, refresh);
  }

  flip() {
    this.box.hidden = !this.box.hidden;
    this.toggle.setAttribute("aria-expanded", String(!this.box.hidden));
    if (this.box.hidden) return;
    this.page = 0;
    this.#show();
    this.box.scrollIntoView({ block: "nearest" });
  }

  #turn(direction) {
    this.page += direction;
    this.#show();
  }

  #show() {
    const { trace } = this.timeline;
    const [fromNs, toNs] = this.timeline.rangeOrView();
    const lanes = this.timeline.layout.slots.flatMap(({ rank }) => trace.ranks[rank].filter(({ lane }) => lane !== LANE.HOST));
    const inSight = lanes.reduce((sum, lane) => sum + lane.countBetween(fromNs, toNs), 0);
    const spans = inSight > MOST_SPANS ? [] : lanes.flatMap((lane) => [...spansOf(lane, fromNs, toNs)]);
    spans.sort((one, other) => one.startNs - other.startNs || one.rank - other.rank);
    this.page = Math.max(0, Math.min(this.page, Math.ceil(spans.length / PAGE_ROWS) - 1));
    const first = this.page * PAGE_ROWS;
    const shown = spans.slice(first, first + PAGE_ROWS);
    const isRead = trace.holds(fromNs, toNs);
    setText(this.caption, !isRead ? "Not all spans in sight are read from the server: there are too many, or they are on their way. Zoom in, or choose a range."
      : inSight > MOST_SPANS ? `${count(inSight)} spans are in sight. A table takes up to ${count(MOST_SPANS)}: zoom in, or choose a range.`
      : shown.length ? `Spans ${count(first + 1)} to ${count(first + shown.length)} of ${count(spans.length)}, by start` : "No spans in sight");
    const marks = trace.marks.filter(({ timeNs }) => timeNs >= fromNs && timeNs <= toNs);
    setText(this.marks, marks.slice(0, PAGE_ROWS).map((mark) => `${momentNs(mark.timeNs)} ${wordsOf(mark)}`).join("; "));
    this.before.disabled = this.page === 0;
    this.after.disabled = first + shown.length >= spans.length;
    this.body.replaceChildren(...shown.map((span) => this.#row(trace, span)));
  }

  #row(trace, span) {
    const start = element("button", { type: "button", class: "link", onclick: () => this.timeline.select(span, { reveal: true }) }, momentNs(span.startNs));
    const cells = [
      start, durationNs(span.durationNs), span.rank, LANE_WORDS[span.lane], titleOf(span), span.step >= 0 ? span.step : "",
      span.stage >= 0 ? `${span.kind === KIND.SEND ? "→ " : ""}${span.stage}` : "", span.bytes > 0 ? bytes(span.bytes) : "", whyOf(trace, span),
    ];
    return element("tr", {}, ...cells.map((cell) => element("td", {}, typeof cell === "number" ? String(cell) : cell)));
  }
}

function* spansOf(lane, fromNs, toNs) {
  if (!lane.spans) return;
  for (let place = lane.firstEndingAfter(fromNs); place < lane.end && lane.startOf(place) < toNs; place = lane.next(place)) yield lane.spanAt(place);
}
