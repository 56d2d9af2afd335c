/** Explain in few words beside the timeline: what costs most in a step, and the change that would gain most of it back. */

import { element, setText, throttled } from "../core/dom.js";
import { durationNs, percent, unbroken } from "../core/format.js";
import { readJson } from "../core/reading.js";
import { stepBar } from "./step_bar.js";

const UPDATE_MS = 10_000;
/** The first words of a young run come with its first whole steps: who waits for them is not left to wait longer. */
const FIRST_MS = 2000;

export class InShort {
  /** `context` as the panels have it; `openExplain()` shows the whole. */
  constructor(card, { run, readBase, launchForm }, openExplain) {
    this.context = { run, readBase, launchForm };
    const part = (name) => card.querySelector(`[data-part="${name}"]`);
    this.words = part("short-words");
    this.bar = part("short-bar");
    this.try = part("short-try");
    this.form = part("short-form");
    this.why = part("short-why");
    this.why.addEventListener("click", openExplain);
    this.isSeen = false;
    this.hasSteps = false;
    this.isLast = false; // asked after the run had ended
    this.shown = "";
    this.ask = throttled(() => (this.shown ? UPDATE_MS : FIRST_MS), () => this.#update());
    new IntersectionObserver((entries) => {
      this.isSeen = entries.at(-1).isIntersecting;
      if (this.isSeen) this.ask();
    }).observe(card);
    document.addEventListener("visibilitychange", () => this.ask());
  }

  /** Steps have come. */
  changed() {
    this.hasSteps = true;
    this.ask();
  }

  /** The run has ended: its last word, at once. */
  end() {
    this.#update();
  }

  async #update() {
    if (this.isLast || !this.isSeen || document.hidden) return;
    const hasEnded = this.context.run().has_ended;
    try {
      const found = await readJson(`${this.context.readBase}panels/explain.json`);
      this.isLast = hasEnded;
      this.#show(found);
      if (this.hasSteps && !this.shown && !hasEnded) this.ask();
    } catch (error) {
      console.warn("What costs most stays as it is:", error); // the connection may be lost; the page says so elsewhere
    }
  }

  #show(found) {
    if (!found.step_ms) return;
    const text = JSON.stringify(found);
    if (text === this.shown || this.form.contains(document.activeElement)) return; // not from under a person's finger
    this.shown = text;
    setText(this.words, unbroken(found.words));
    this.bar.replaceChildren(stepBar(found.pieces, `A step's ${durationNs(found.step_ms * 1e6)}, by cause`));
    this.why.hidden = false;
    const best = found.causes[0]?.remedies[0];
    this.try.replaceChildren(...(best ? [remedyWords(best)] : []));
    this.form.replaceChildren(...(best ? this.#toForm(best) : []));
  }

  /** The way to the launch form so filled, for who may launch. */
  #toForm({ title, sets }) {
    const { launchForm, run } = this.context;
    if (!launchForm || !Object.keys(sets).length) return [];
    const href = `${launchForm}?from=${run().id}&${new URLSearchParams(sets)}`;
    return [element("a", { class: "button", href, "aria-label": `Open in the form: ${title}` }, "Open in the form")];
  }
}

function remedyWords({ title, gain_ms: gainMs, share }) {
  const gain = element("span", { class: "short-gain" }, element("b", {}, `−${durationNs(gainMs * 1e6)}`), ` or ${percent(share)} a step`);
  return element("p", {}, element("span", { class: "muted" }, "Try "), element("b", {}, title), gain);
}
