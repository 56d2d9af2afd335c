/** Comments as marks on the timeline: buttons over the canvases, so that they have names, focus and a place in the order of tabs. */

import { element } from "../core/dom.js";
import { RULER_PX } from "../timeline/layout.js";
import { spotWords } from "./spots.js";

const MARK_PX = 20;
/** A rank's mark stands in the gutter, under what is written there. */
const RANK_MARK_TOP_PX = 34;
/** Threads drawn, the newest: more would cover what they are about. */
const MOST_MARKS = 100;

export class CommentMarks {
  constructor(box, timeline, comments, show) {
    Object.assign(this, { box, timeline, comments, show });
    this.marks = [];
    comments.addEventListener("change", () => this.#make());
    timeline.addEventListener("painted", () => this.#place());
    box.addEventListener("pointerdown", (event) => event.stopPropagation()); // else the timeline takes it for a drag
  }

  #make() {
    const threads = this.comments.threads.filter(({ about }) => about.kind !== "run").slice(0, MOST_MARKS);
    this.marks = threads.map((thread) => {
      const { about } = thread;
      const count = 1 + thread.replies.length;
      const name = `${count === 1 ? "A comment" : `${count} comments`} by ${thread.author ?? "somebody"} on ${spotWords(about)}`;
      const button = element("button", {
        type: "button", class: "tl-note", "aria-label": name, title: `${name}: ${thread.text.slice(0, 120)}`, onclick: () => this.#go(thread),
      }, String(count));
      const bar = about.kind === "range" ? element("i", { class: "tl-note-bar", "aria-hidden": "true" }) : null;
      return { about, button, bar };
    });
    this.box.replaceChildren(...this.marks.flatMap(({ button, bar }) => (bar ? [bar, button] : [button])));
    this.#place();
  }

  #go(thread) {
    const { about } = thread;
    if (about.kind === "range") this.timeline.setChosenRange({ fromNs: about.from_ns, toNs: about.to_ns });
    this.show(thread.id);
  }

  #place() {
    if (!this.marks.length) return;
    const scene = this.timeline.scene();
    for (const mark of this.marks) this.#placeOne(mark, scene);
  }

  #placeOne({ about, button, bar }, scene) {
    const isRank = about.kind === "rank";
    const x = isRank ? scene.leftPx - MARK_PX / 2 - 2 : scene.x(about.from_ns);
    const y = about.kind === "range" ? RULER_PX - 9 : scene.y(about.rank) + (isRank ? RANK_MARK_TOP_PX : 0);
    const isSeen = Number.isFinite(y) && (isRank || (x >= scene.leftPx && x <= scene.widthPx)) && y >= MARK_PX / 2 && y < scene.heightPx;
    button.hidden = !isSeen;
    if (isSeen) button.style.transform = `translate(${Math.round(x - MARK_PX / 2)}px, ${Math.round(y - MARK_PX / 2)}px)`;
    if (!bar) return;
    const left = Math.max(x, scene.leftPx);
    const right = Math.min(scene.x(about.to_ns), scene.widthPx);
    bar.hidden = right <= left;
    bar.style.transform = `translate(${Math.round(left)}px, ${RULER_PX - 3}px)`;
    bar.style.width = `${Math.max(2, Math.round(right - left))}px`;
  }
}
