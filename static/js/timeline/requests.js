/**
 * What is asked of the server: the newest wish counts. Requests wait until the view rests for a moment, what is no longer
 * wanted is given up, what lies beside the view waits for what is in it, and what failed is tried again.
 */

const REST_MS = 70;
/** A view that never rests is read all the same. */
const LONGEST_REST_MS = 300;
const MOST_RUNNING = 4;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 10_000;
/** When the server may have what it had not yet. */
const UNSETTLED_MS = 1000;

export class Requests {
  /**
   * `read(wish, signal)` promises an answer; `onAnswer(wish, answer)` takes it in and returns false if it is to be asked
   * again in a while; `onChange()` is called when the status is another.
   */
  constructor({ read, onAnswer, onChange }) {
    Object.assign(this, { read, onAnswer, onChange, wishes: [], running: new Map(), later: new Map(), attempts: 0, status: "", error: null, retryInMs: NaN });
    this.restTimer = this.retryTimer = 0;
    this.restsSinceMs = NaN;
  }

  /** `wishes`: `{key, isUrgent, isSeen, …}`, the most urgent first, and all there are. */
  want(wishes) {
    this.wishes = wishes;
    const keys = new Set(wishes.map(({ key }) => key));
    for (const [key, controller] of this.running) if (!keys.has(key)) controller.abort();
    for (const key of this.later.keys()) if (!keys.has(key)) this.later.delete(key);
    const nowMs = performance.now();
    if (!Number.isFinite(this.restsSinceMs)) this.restsSinceMs = nowMs;
    clearTimeout(this.restTimer);
    if (wishes.length) this.restTimer = setTimeout(() => this.#start(), Math.max(0, Math.min(REST_MS, this.restsSinceMs + LONGEST_REST_MS - nowMs)));
    this.#tell();
  }

  #start() {
    clearTimeout(this.restTimer);
    this.restTimer = 0;
    this.restsSinceMs = NaN;
    if (this.retryTimer) return; // the server does not answer: all wait
    const nowMs = performance.now();
    const waiting = this.wishes.filter(({ key }) => !this.running.has(key) && !(this.later.get(key) > nowMs));
    const hasUrgent = this.wishes.some(({ isUrgent, key }) => isUrgent && !(this.later.get(key) > nowMs));
    for (const wish of waiting) {
      if (this.running.size >= MOST_RUNNING) break;
      if (wish.isUrgent || !hasUrgent) this.#run(wish);
    }
    this.#tell();
  }

  async #run(wish) {
    const controller = new AbortController();
    this.running.set(wish.key, controller);
    try {
      const answer = await this.read(wish, controller.signal);
      if (controller.signal.aborted) return;
      this.attempts = 0;
      this.error = null;
      this.wishes = this.wishes.filter(({ key }) => key !== wish.key);
      if (this.onAnswer(wish, answer) === false) this.#again(wish);
    } catch (error) {
      if (!controller.signal.aborted) this.#failed(error);
    } finally {
      if (this.running.get(wish.key) === controller) this.running.delete(wish.key);
      if (!this.restTimer) this.#start();
    }
  }

  #again(wish) {
    this.wishes.push(wish);
    this.later.set(wish.key, performance.now() + UNSETTLED_MS);
    setTimeout(() => this.restTimer || this.#start(), UNSETTLED_MS + 1);
  }

  #failed(error) {
    this.error = error;
    if (this.retryTimer) return;
    this.retryInMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.attempts++);
    this.retryTimer = setTimeout(() => {
      this.retryTimer = 0;
      this.#start();
    }, this.retryInMs);
  }

  #tell() {
    const isWaiting = this.wishes.some(({ isSeen }) => isSeen);
    const status = isWaiting ? (this.error ? "failed" : "reading") : "";
    if (status === this.status) return;
    this.status = status;
    this.onChange();
  }
}
