/**
 * The head of a running run, smoothly. Frames come in bursts ten times a second; time passes evenly.
 * So the head runs at the pace of the clock, a little ahead of the newest span, and stands still when
 * nothing comes any more.
 */

const CORRECTION_A_SECOND = 1.5;
const JUMP_NS = 1.5e9;
/** So far ahead of the newest span the head runs, for what is under way already; and no further when nothing comes. */
const LEAD_NS = 100e6;
const LONGEST_LEAD_NS = 250e6;

export class Head {
  constructor() {
    this.atNs = NaN;
    this.newestNs = -Infinity;
    this.lastMs = NaN;
  }

  /** The newest span ends at `newestNs`. */
  note(newestNs) {
    this.newestNs = Math.max(this.newestNs, newestNs);
  }

  /** Where the head is at `nowMs` of the page's clock. */
  advance(nowMs) {
    const passedMs = Number.isFinite(this.lastMs) ? Math.min(200, Math.max(0, nowMs - this.lastMs)) : 0;
    this.lastMs = nowMs;
    const errorNs = this.newestNs + LEAD_NS - this.atNs;
    if (!Number.isFinite(this.atNs) || Math.abs(errorNs) > JUMP_NS) {
      this.atNs = this.newestNs + LEAD_NS;
      return this.atNs;
    }
    const movedNs = passedMs * 1e6 + errorNs * Math.min(1, (CORRECTION_A_SECOND * passedMs) / 1000);
    this.atNs = Math.min(this.atNs + Math.max(0, movedNs), this.newestNs + LONGEST_LEAD_NS);
    return this.atNs;
  }
}

/** While it follows, the view moves at most this often, and less where the machine cannot keep up: its cores are the ranks' too. */
const FRAME_MS = 30;
const SLOW_FRAME_MS = 90;
const SLOW_GAP_MS = 24;

export class Pace {
  constructor() {
    this.lastMs = NaN;
    this.movedMs = -Infinity;
    this.gapMs = 16;
  }

  /** Whether the view should move in the frame at `nowMs`; asked in every frame. */
  isDue(nowMs) {
    const gapMs = nowMs - this.lastMs;
    this.lastMs = nowMs;
    if (gapMs > 0 && gapMs < 500) this.gapMs += (gapMs - this.gapMs) * 0.1;
    if (nowMs - this.movedMs < (this.gapMs > SLOW_GAP_MS ? SLOW_FRAME_MS : FRAME_MS)) return false;
    this.movedMs = nowMs;
    return true;
  }
}
