/**
 * Steps on the run's clock. A step's window goes from the first to the last model work of any rank
 * in it; in it, an idle compute lane is a bubble. Windows grow with the spans that come in; figures
 * (bubble share, loss) are added as the recorder sends them.
 */
export class StepWindows {
  constructor() {
    this.byStep = new Map();
    this.sorted = [];
    this.last = null;
    /** The earliest time at which a window changed since whoever draws them last looked, who sets it back to Infinity. */
    this.changedFromNs = Infinity;
  }

  get count() {
    return this.sorted.length;
  }

  /** From one step to the next, over all there are. */
  get typicalNs() {
    const { sorted } = this;
    return sorted.length ? (sorted[sorted.length - 1].endNs - sorted[0].startNs) / sorted.length : Infinity;
  }

  /** Hot path: one span of model work. */
  note(step, startNs, endNs) {
    const window = this.last !== null && this.last.step === step ? this.last : this.#window(step);
    if (window.startNs === Infinity) this.#insert(window);
    if (startNs < window.startNs) {
      this.changedFromNs = Math.min(this.changedFromNs, startNs);
      window.startNs = startNs;
    }
    if (endNs > window.endNs) {
      this.changedFromNs = Math.min(this.changedFromNs, Number.isFinite(window.endNs) ? window.endNs : startNs);
      window.endNs = endNs;
    }
    this.last = window;
  }

  /** A row of figures for a step; they may come before its spans, or without them. */
  addFigures(row) {
    this.#window(row.step).figures = row;
    if (Number.isFinite(row.work_start_ns) && Number.isFinite(row.work_end_ns)) this.note(row.step, row.work_start_ns, row.work_end_ns);
  }

  #window(step) {
    let window = this.byStep.get(step);
    if (!window) {
      window = { step, startNs: Infinity, endNs: -Infinity, figures: null };
      this.byStep.set(step, window);
    }
    return window;
  }

  #insert(window) {
    let at = this.sorted.length;
    while (at > 0 && this.sorted[at - 1].step > window.step) at--;
    this.sorted.splice(at, 0, window);
  }

  /** The first and one past the last index in `sorted` of the windows that touch the range. */
  between(fromNs, toNs) {
    const first = this.#partition((window) => window.endNs <= fromNs);
    return [first, Math.max(first, this.#partition((window) => window.startNs < toNs))];
  }

  /** The window that holds `timeNs`, or null. */
  at(timeNs) {
    const window = this.sorted[this.#partition((each) => each.endNs <= timeNs)];
    return window && window.startNs <= timeNs ? window : null;
  }

  /** The window that holds `timeNs`, else the last one before it, else the first; null without any. */
  nearest(timeNs) {
    return this.sorted[Math.max(0, this.#partition((each) => each.startNs <= timeNs) - 1)] ?? null;
  }

  /** How many windows, in order, satisfy a test that holds for the first ones and for none after. */
  #partition(test) {
    let low = 0;
    let high = this.sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (test(this.sorted[middle])) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
