/**
 * The timeline: a trace, a view of it, and the canvases that show it. It tells what happens by events:
 * "view" (the range in sight changed), "select" (a span was chosen), "follow", "range" (a range was
 * chosen), "painted" (a frame is drawn).
 */

import { throttled } from "../core/dom.js";
import { Head, Pace } from "./follow.js";
import { NARROW_GUTTER_PX, WIDE_GUTTER_PX, addressWords, busyShares } from "./gutter.js";
import { Layout } from "./layout.js";
import { Legend } from "./legend.js";
import { Minimap } from "./minimap.js";
import { Overlay } from "./overlay.js";
import { Painter } from "./paint.js";
import { Scene } from "./scene.js";
import { previousDependency, sameSpan } from "./dependencies.js";
import { Trace } from "./trace.js";
import { View } from "./view.js";

const NARROW_PAGE_PX = 560;
/** Part of the view that stays free to the right of the head. */
const HEAD_ROOM = 0.05;
const FOLLOWED_MAP_MS = 250;
const GLIDE_MS = 180;
const FOLLOWED_STEPS = 2.4;
/** A run that has ended opens on its last steps: wide enough to read, and warm. */
const SHOWN_STEPS = 2;
const LEAST_FOLLOWED_NS = 1.5e9;
const MOST_FOLLOWED_NS = 30e9;

export class Timeline extends EventTarget {
  /** `parts`: elements scroller, stage, base, overlay, map, legend. */
  constructor(parts, { ranks, grid = [], gridSizes = {}, stages = [], colours, scheduler }) {
    super();
    Object.assign(this, { parts, colours, scheduler });
    this.trace = new Trace(ranks, grid);
    this.addresses = grid.map((address) => addressWords(address, gridSizes, stages));
    this.layout = new Layout(ranks);
    this.view = new View();
    this.painter = new Painter(parts.base);
    this.overlay = new Overlay(parts.overlay);
    this.minimap = new Minimap(parts.map, this);
    this.legend = new Legend(parts.legend);
    this.head = new Head();
    this.shares = [];
    this.selected = null;
    this.dependency = null;
    this.hover = null;
    this.pointer = null;
    this.range = null;
    this.isGrowing = true;
    this.isFollowing = true;
    this.hasChosenScale = false;
    this.glide = null;
    this.pace = new Pace();
    this.scrollPx = 0;
    this.askForMap = throttled(FOLLOWED_MAP_MS, () => scheduler.ask("map"));
    scheduler.register("head", (nowMs) => this.#moveHead(nowMs));
    scheduler.register("timeline", (nowMs) => this.#paint(nowMs));
    scheduler.register("overlay", () => this.#paintOverlay());
    scheduler.register("map", (nowMs) => this.minimap.paint(nowMs, this.parts.map.clientWidth, this.parts.map.clientHeight));
    this.updateShares = throttled(120, () => this.#updateShares());
    new ResizeObserver(() => this.#measure()).observe(parts.scroller);
    parts.scroller.addEventListener("scroll", () => {
      this.scrollPx = parts.scroller.scrollTop; // read here alone: reading it in a frame would lay out the page
      this.draw();
    }, { passive: true });
    colours.watch(() => this.draw());
    this.#measure();
    this.legend.update(this.trace);
  }

  /** Takes in decoded frames. */
  append(frames) {
    for (const frame of frames) this.trace.append(frame);
    if (this.trace.isEmpty) return;
    if (this.trace.ranks.length !== this.layout.ranks) {
      this.layout = new Layout(this.trace.ranks.length);
      this.#measure();
    }
    this.view.setExtent(Math.min(0, this.trace.firstStartNs), this.trace.lastEndNs);
    this.head.note(this.trace.lastEndNs);
    this.legend.update(this.trace);
    this.scheduler.ask("head");
    this.scheduler.ask("timeline");
    this.askForMap();
  }

  draw() {
    this.scheduler.ask("head");
    this.scheduler.ask("timeline");
    this.scheduler.ask("overlay");
    this.scheduler.ask("map");
  }

  /** The run grows no more: all of it is here. */
  end() {
    this.isGrowing = false;
    this.follow(false);
    if (!this.hasChosenScale) this.#showLastSteps();
    this.#viewed();
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

  follow(isOn) {
    if (isOn && !this.isGrowing) return;
    if (isOn !== this.isFollowing) {
      this.isFollowing = isOn;
      this.dispatchEvent(new Event("follow"));
    }
    this.draw();
  }

  /** The visitor moved the view: it is hers from now on. */
  #take() {
    this.glide = null;
    this.hasChosenScale = true;
    this.follow(false);
  }

  setRange(fromNs, toNs) {
    this.#take();
    this.view.setRange(fromNs, toNs);
    this.#viewed();
  }

  panPx(px) {
    this.#take();
    this.view.panPx(px);
    this.#viewed();
  }

  /** `x` counts from the left edge of the canvas. */
  zoomAt(x, factor) {
    const wasFollowing = this.isFollowing;
    this.#take();
    this.view.zoomAt(wasFollowing ? this.view.widthPx * (1 - HEAD_ROOM) : Math.max(0, x - this.leftPx), factor);
    this.#viewed();
    if (wasFollowing) this.follow(true);
  }

  fit() {
    this.glideTo(this.view.beginNs - (this.view.endNs - this.view.beginNs) * 0.01, this.view.endNs + (this.view.endNs - this.view.beginNs) * 0.01);
  }

  /** A short move of the eye; at once for those who asked for less motion. */
  glideTo(fromNs, toNs) {
    this.#take();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.setRange(fromNs, toNs);
      return;
    }
    this.glide = { beganMs: performance.now(), from: [this.view.fromNs, this.view.toNs], to: [fromNs, toNs] };
    this.draw();
  }

  select(span, { reveal = false } = {}) {
    this.selected = span;
    this.dependency = span ? previousDependency(this.trace, span) : null;
    if (sameSpan(this.dependency, span)) this.dependency = null;
    if (span && reveal) this.reveal(span);
    this.dispatchEvent(new Event("select"));
    this.scheduler.ask("overlay");
  }

  /** Brings a span into sight without changing the scale, if it is not there. */
  reveal(span) {
    const { scroller } = this.parts;
    const top = span.rank * this.layout.rankPx;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    const bottom = this.layout.topOf(span.rank) + this.layout.rankPx;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    if (span.endNs > this.view.fromNs && span.startNs < this.view.toNs && span.durationNs < this.view.spanNs) {
      if (span.startNs >= this.view.fromNs && span.endNs <= this.view.toNs) return;
    }
    const middle = (span.startNs + span.endNs) / 2;
    const half = Math.max(this.view.spanNs, span.durationNs * 1.2) / 2;
    this.glideTo(middle - half, middle + half);
  }

  focus() {
    const target = this.range ? { startNs: this.range.fromNs, endNs: this.range.toNs } : this.selected;
    if (!target) return;
    const margin = Math.max(50, (target.endNs - target.startNs) * (this.range ? 0.02 : 0.6));
    this.glideTo(target.startNs - margin, target.endNs + margin);
  }

  setChosenRange(range) {
    this.range = range;
    this.dispatchEvent(new Event("range"));
    this.scheduler.ask("overlay");
  }

  setHover(hover, pointer) {
    this.hover = hover;
    this.pointer = pointer;
    this.scheduler.ask("overlay");
  }

  #viewed() {
    this.dispatchEvent(new Event("view"));
    this.updateShares();
    this.draw();
  }

  #measure() {
    const { scroller, stage } = this.parts;
    this.widthPx = scroller.clientWidth;
    this.heightPx = scroller.clientHeight;
    stage.style.height = `${this.heightPx}px`;
    stage.nextElementSibling.style.height = `${Math.max(0, this.layout.contentPx - this.heightPx)}px`;
    this.leftPx = this.widthPx < NARROW_PAGE_PX ? NARROW_GUTTER_PX : WIDE_GUTTER_PX;
    this.view.resize(Math.max(50, this.widthPx - this.leftPx));
    this.draw();
  }

  scene() {
    return new Scene({
      trace: this.trace, view: this.view, layout: this.layout, colours: this.colours, widthPx: this.widthPx, heightPx: this.heightPx,
      leftPx: this.leftPx, scrollPx: this.scrollPx, pixelRatio: window.devicePixelRatio || 1,
    });
  }

  #paint(nowMs) {
    const isGliding = this.#moveGliding(nowMs);
    const hoveredRank = this.hover?.span?.rank ?? this.hover?.gap?.rank ?? -1;
    const isLeft = this.painter.paint(this.scene(), { addresses: this.addresses, shares: this.shares, hoveredRank });
    this.dispatchEvent(new Event("painted"));
    return isLeft || isGliding;
  }

  /** The head goes on, and the view with it where it follows; true as long as it moves. */
  #moveHead(nowMs) {
    if (!this.isGrowing || this.trace.isEmpty) return false;
    if (!this.pace.isDue(nowMs)) return true;
    const beforeNs = this.head.atNs;
    const headNs = this.head.advance(nowMs);
    if (headNs === beforeNs) return false;
    if (!this.isFollowing) {
      if (headNs > this.view.fromNs && headNs < this.view.toNs) this.scheduler.ask("overlay");
      return true;
    }
    this.#chooseScale();
    this.view.fromNs = headNs - this.view.spanNs * (1 - HEAD_ROOM);
    this.dispatchEvent(new Event("view"));
    this.updateShares();
    this.scheduler.ask("timeline");
    this.askForMap();
    if (this.selected || this.pointer || this.range || !this.hasDrawnHead || this.head.newestNs > headNs) this.scheduler.ask("overlay");
    return true;
  }

  /** As long as the visitor chose none, the scale shows a few steps. */
  #chooseScale() {
    const { sorted } = this.trace.steps;
    if (this.hasChosenScale || sorted.length < 2) return;
    const stepNs = sorted[sorted.length - 1].startNs - sorted[sorted.length - 2].startNs;
    const wantedNs = Math.min(MOST_FOLLOWED_NS, Math.max(LEAST_FOLLOWED_NS, stepNs * FOLLOWED_STEPS));
    this.view.nsPerPx = wantedNs / this.view.widthPx;
    if (sorted.length > 2) this.hasChosenScale = true;
  }

  #moveGliding(nowMs) {
    if (!this.glide) return false;
    const { beganMs, from, to } = this.glide;
    const done = Math.min(1, Math.max(0, (nowMs - beganMs) / GLIDE_MS));
    const eased = 1 - (1 - done) ** 3;
    this.view.setRange(from[0] + (to[0] - from[0]) * eased, from[1] + (to[1] - from[1]) * eased);
    if (done === 1) this.glide = null;
    this.#viewed();
    return done < 1;
  }

  #paintOverlay() {
    const headNs = this.isGrowing && !this.trace.isEmpty ? Math.max(this.head.atNs, this.head.newestNs) : null;
    this.hasDrawnHead = Number.isFinite(headNs) && headNs !== null; // while the view follows, the head stands still on it
    this.overlay.paint(this.scene(), { ...this, headNs: Number.isFinite(headNs) ? headNs : null });
  }

  #updateShares() {
    this.shares = busyShares(this.trace, this.view.fromNs, this.view.toNs);
    this.dispatchEvent(new Event("totals"));
    this.scheduler.ask("timeline");
  }
}
