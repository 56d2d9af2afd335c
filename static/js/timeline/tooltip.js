/** The small card beside the pointer. */

import { element } from "../core/dom.js";
import { bytes, durationNs } from "../core/format.js";
import { wordsOf } from "./marks.js";
import { rateOf, titleOf, whereOf, whyIdle, whyOf } from "./words.js";

const AWAY_PX = 14;
const MOST_MARKS = 6;

export class Tooltip {
  constructor(container) {
    this.container = container;
    this.card = element("div", { class: "tl-tip", role: "presentation", hidden: true });
    container.append(this.card);
  }

  hide() {
    this.card.hidden = true;
    this.shown = null;
  }

  /** Shows a hit at a point of the container. */
  show(trace, hit, colours, x, y) {
    const target = hit.span ?? hit.gap ?? hit.marks[0];
    if (this.shown !== target && !isSame(this.shown, target)) {
      this.card.replaceChildren(...linesOf(trace, hit, colours));
      this.shown = target;
    }
    this.card.hidden = false;
    const { clientWidth, clientHeight } = this.container;
    const left = x + AWAY_PX + this.card.offsetWidth > clientWidth ? x - AWAY_PX - this.card.offsetWidth : x + AWAY_PX;
    const top = y + AWAY_PX + this.card.offsetHeight > clientHeight ? y - AWAY_PX - this.card.offsetHeight : y + AWAY_PX;
    this.card.style.transform = `translate(${Math.max(0, Math.round(left))}px, ${Math.max(0, Math.round(top))}px)`;
  }
}

const titleLine = (words, ns, colour) => element("p", {}, element("i", { style: `background:${colour}` }), element("b", {}, words), ` ${durationNs(ns)}`);
const line = (text) => (text ? element("p", { class: "muted" }, text) : null);

const isSame = (one, other) => Boolean(one) && one.startNs !== undefined && one.startNs === other.startNs && one.rank === other.rank && one.lane === other.lane;

function linesOf(trace, hit, colours) {
  if (hit.span) return linesOfSpan(trace, hit.span, colours);
  if (hit.gap) return linesOfGap(trace, hit.gap, colours);
  const shown = hit.marks.slice(0, MOST_MARKS).map((mark) => element("p", {}, wordsOf(mark)));
  const rest = hit.marks.length - shown.length;
  return rest ? [...shown, line(`and ${rest} more`)] : shown;
}

function linesOfSpan(trace, span, colours) {
  const size = span.bytes > 0 ? [bytes(span.bytes), rateOf(span)].filter(Boolean).join(" · ") : "";
  return [titleLine(titleOf(span), span.durationNs, colours.kind[span.kind]), line(whereOf(span)), line(size), line(whyOf(trace, span))].filter(Boolean);
}

function linesOfGap(trace, gap, colours) {
  return [titleLine("bubble", gap.durationNs, colours.hatch), line(`rank ${gap.rank} · step ${gap.step}`), line(whyIdle(trace, gap))].filter(Boolean);
}
