/**
 * How the view moves: by the visitor's hand, in a short glide, or with the head of a run that grows. Whoever moves it
 * by hand has it from then on; `follow` gives it back to the head.
 */

import { Head, Pace } from "./follow.js";

/** Part of the view that stays free to the right of the head. */
const HEAD_ROOM = 0.05;
const GLIDE_MS = 180;
const FOLLOWED_STEPS = 2.4;
/** A run that has ended opens on its last steps: wide enough to read, and warm. */
const SHOWN_STEPS = 2;
const LEAST_FOLLOWED_NS = 1.5e9;
const MOST_FOLLOWED_NS = 30e9;

export class Camera {
  /**
   * `onMove()` is called when the range in sight has changed, `onFollow()` when following begins or ends. `hasEnded`: the run
   * is over already, and what comes of it has only to be loaded.
   */
  constructor(trace, view, { hasEnded, onMove, onFollow }) {
    Object.assign(this, { trace, view, hasEnded, onMove, onFollow });
    this.head = new Head();
    this.pace = new Pace();
    this.isGrowing = true;
    this.isFollowing = true;
    this.hasChosenScale = false;
    this.glide = null;
  }

  follow(isOn) {
    if (isOn && !this.isGrowing) return;
    const isNew = isOn !== this.isFollowing;
    this.isFollowing = isOn;
    if (isNew) this.onFollow();
  }

  /** The run grows no more: all of it is here. */
  end() {
    this.isGrowing = false;
    this.follow(false);
    if (!this.hasChosenScale) this.#showLastSteps();
    this.onMove();
  }

  #showLastSteps() {
    const { sorted } = this.trace.steps;
    if (sorted.length <= SHOWN_STEPS) this.view.fit();
    else {
      const fromNs = sorted[sorted.length - SHOWN_STEPS].startNs;
      const marginNs = (this.trace.lastEndNs - fromNs) * 0.02;
      this.view.setRange(fromNs - marginNs, this.trace.lastEndNs + marginNs);
    }
  }

  #take() {
    this.glide = null;
    this.hasChosenScale = true;
    this.follow(false);
  }

  setRange(fromNs, toNs) {
    this.#take();
    this.view.setRange(fromNs, toNs);
    this.onMove();
  }

  panPx(px) {
    this.#take();
    this.view.panPx(px);
    this.onMove();
  }

  /** `x` counts from the left edge of the view; a view that follows keeps its head where it is. */
  zoomAt(x, factor) {
    const wasFollowing = this.isFollowing;
    this.#take();
    this.view.zoomAt(wasFollowing ? this.view.widthPx * (1 - HEAD_ROOM) : Math.max(0, x), factor);
    this.onMove();
    if (wasFollowing) this.follow(true);
  }

  fit() {
    const { beginNs, endNs } = this.view;
    const marginNs = (endNs - beginNs) * 0.01;
    this.glideTo(beginNs - marginNs, endNs + marginNs);
  }

  /** A short move of the eye; at once for those who asked for less motion. */
  glideTo(fromNs, toNs) {
    this.#take();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.setRange(fromNs, toNs);
      return;
    }
    this.glide = { beganMs: performance.now(), from: [this.view.fromNs, this.view.toNs], to: [fromNs, toNs] };
    this.onMove();
  }

  /** Goes on with a glide; true as long as there is one. */
  moveGliding(nowMs) {
    if (!this.glide) return false;
    const { beganMs, from, to } = this.glide;
    const done = Math.min(1, Math.max(0, (nowMs - beganMs) / GLIDE_MS));
    const eased = 1 - (1 - done) ** 3;
    this.view.setRange(from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased);
    if (done === 1) this.glide = null;
    this.onMove();
    return done < 1;
  }

  /** The head goes on, and the view with it where it follows: `{isMoving, hasMovedView}`. */
  moveHead(nowMs) {
    if (!this.isGrowing || this.trace.isEmpty) return { isMoving: false, hasMovedView: false };
    if (!this.pace.isDue(nowMs)) return { isMoving: true, hasMovedView: false };
    const beforeNs = this.head.atNs;
    const headNs = this.head.advance(nowMs);
    if (headNs === beforeNs) return { isMoving: false, hasMovedView: false };
    if (!this.isFollowing) return { isMoving: true, hasMovedView: false };
    this.#chooseScale();
    this.view.fromNs = headNs - this.view.spanNs * (1 - HEAD_ROOM);
    return { isMoving: true, hasMovedView: true };
  }

  /** As long as the visitor chose none, the scale shows a few steps. */
  #chooseScale() {
    const { sorted } = this.trace.steps;
    if (this.hasEnded || this.hasChosenScale || sorted.length < 2) return; // a run that is over shows its last steps
    const stepNs = sorted[sorted.length - 1].startNs - sorted[sorted.length - 2].startNs;
    const wantedNs = Math.min(MOST_FOLLOWED_NS, Math.max(LEAST_FOLLOWED_NS, stepNs * FOLLOWED_STEPS));
    this.view.nsPerPx = wantedNs / this.view.widthPx;
    if (sorted.length > 2) this.hasChosenScale = true;
  }

  /** Where the run has come to, or NaN where it goes on no more. */
  get headNs() {
    return this.isGrowing && !this.trace.isEmpty ? Math.max(this.head.atNs, this.head.newestNs) : NaN;
  }
}
