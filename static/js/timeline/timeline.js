/**
 * The timeline: a trace, a view of it, and the canvases that show it. It tells what happens by events:
 * "view" (the range in sight changed), "select" (a span was chosen), "follow", "range" (a range was chosen), "arrange"
 * (lanes were grouped, folded or sorted anew), "totals" (the range in sight is worth adding up again), "painted",
 * "appended" (spans came), "reading" and "read" (something is being read from the server, and is here: reader.js).
 */

import { throttled } from "../core/dom.js";
import { Arrangement } from "./arrange.js";
import { Camera } from "./camera.js";
import { NARROW_GUTTER_PX, WIDE_GUTTER_PX, addressWords, busyNs, busyShares } from "./gutter.js";
import { Legend } from "./legend.js";
import { Minimap } from "./minimap.js";
import { Overlay } from "./overlay.js";
import { Painter } from "./paint.js";
import { Scene } from "./scene.js";
import { previousDependency, sameSpan } from "./dependencies.js";
import { Search } from "./search.js";
import { Trace } from "./trace.js";
import { View } from "./view.js";

const NARROW_PAGE_PX = 560;
const FOLLOWED_MAP_MS = 250;
const SHARES_MS = 120;

export class Timeline extends EventTarget {
  /** `parts`: elements scroller, stage, base, overlay, map, legend; `hasEnded`: the run is over already. */
  constructor(parts, { ranks, grid = [], gridSizes = {}, stages = [], places = {}, hasEnded = false, colours, scheduler }) {
    super();
    Object.assign(this, { parts, colours, scheduler });
    this.trace = new Trace(ranks, grid, stages);
    this.addresses = grid.map((address) => addressWords(address, gridSizes, stages));
    this.arrangement = new Arrangement({ ranks, grid, gridSizes, stages, places });
    this.hasChunks = stages.some((held) => held.length > 1) && !this.trace.isBothWays; // there the way says which
    this.view = new View();
    this.camera = new Camera(this.trace, this.view, { hasEnded, onMove: () => this.#viewed(), onFollow: () => this.#tell("follow") });
    this.painter = new Painter(parts.base);
    this.overlay = new Overlay(parts.overlay);
    this.minimap = new Minimap(parts.map, this);
    this.legend = new Legend(parts.legend);
    this.search = new Search(this.trace, scheduler, () => this.#tell("search"));
    this.shares = [];
    /** What is shown on top: the chosen span and what it waited for, what is under the pointer, a chosen range, a step's longest chain, a step's ideal. */
    Object.assign(this, { selected: null, dependency: null, hover: null, pointer: null, range: null, path: null, ideal: null });
    this.scrollPx = 0;
    this.askForMap = throttled(FOLLOWED_MAP_MS, () => scheduler.ask("map"));
    this.updateShares = throttled(SHARES_MS, () => this.#updateShares());
    scheduler.register("head", (nowMs) => this.#moveHead(nowMs));
    scheduler.register("timeline", (nowMs) => this.#paint(nowMs));
    scheduler.register("overlay", () => this.#paintOverlay());
    scheduler.register("map", (nowMs) => this.minimap.paint(nowMs, this.parts.map.clientWidth, this.parts.map.clientHeight));
    new ResizeObserver(() => this.#measure()).observe(parts.scroller);
    parts.scroller.addEventListener("scroll", () => {
      this.scrollPx = parts.scroller.scrollTop; // read here alone: reading it in a frame would lay out the page
      this.draw();
    }, { passive: true });
    colours.watch(() => this.draw());
    this.#measure();
    this.legend.update(this.trace);
  }

  get layout() {
    return this.arrangement.layout;
  }

  get isFollowing() {
    return this.camera.isFollowing;
  }

  get isGrowing() {
    return this.camera.isGrowing;
  }

  /** Takes in decoded frames. */
  append(frames) {
    for (const frame of frames) this.trace.append(frame);
    if (this.trace.isEmpty) return;
    this.extend();
    this.dispatchEvent(new Event("appended"));
  }

  /** There is more of the run to show. */
  extend() {
    if (this.trace.ranks.length > this.layout.ranks) this.arrange({ ranks: this.trace.ranks.length });
    this.view.setExtent(Math.min(0, this.trace.firstStartNs), this.trace.lastEndNs);
    this.camera.head.note(this.trace.lastEndNs);
    this.legend.update(this.trace);
    this.search.note();
    if (!this.trace.isWhole) this.updateShares();
    this.scheduler.ask("head");
    this.scheduler.ask("timeline");
    this.askForMap();
  }

  draw() {
    for (const painter of ["head", "timeline", "overlay", "map"]) this.scheduler.ask(painter);
  }

  end() {
    this.camera.end();
  }

  follow(isOn) {
    this.camera.follow(isOn);
    this.draw();
  }

  setRange(fromNs, toNs) {
    this.camera.setRange(fromNs, toNs);
  }

  panPx(px) {
    this.camera.panPx(px);
  }

  /** `x` counts from the left edge of the canvas. */
  zoomAt(x, factor) {
    this.camera.zoomAt(x - this.leftPx, factor);
  }

  fit() {
    this.camera.fit();
  }

  glideTo(fromNs, toNs) {
    this.camera.glideTo(fromNs, toNs);
  }

  /** `by`: an axis; `folded`: keys of groups; `isSorted`: the latest first; `isBare`: compute lanes alone. What is left out stays. */
  arrange(changes) {
    this.arrangement.change(changes, () => busyNs(this.trace, ...this.rangeOrView()));
    this.#measure();
    this.#tell("arrange");
  }

  /** The range chosen, else the one in sight: what is added up and compared. */
  rangeOrView() {
    return this.range ? [this.range.fromNs, this.range.toNs] : [this.view.fromNs, this.view.toNs];
  }

  select(span, { reveal = false } = {}) {
    this.selected = span;
    this.dependency = span ? previousDependency(this.trace, span) : null;
    if (sameSpan(this.dependency, span)) this.dependency = null;
    if (span && reveal) this.reveal(span);
    this.#tell("select");
  }

  /** Brings a span into sight without changing the scale, if it is not there. */
  reveal(span) {
    const { scroller } = this.parts;
    const { topPx, heightPx } = this.layout.slot(span.rank);
    if (topPx < scroller.scrollTop) scroller.scrollTop = topPx;
    const bottom = this.layout.topOf(span.rank) + heightPx;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
    const isWhole = span.startNs >= this.view.fromNs && span.endNs <= this.view.toNs;
    if (isWhole) return;
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
    this.#tell("range");
  }

  setHover(hover, pointer) {
    this.hover = hover;
    this.pointer = pointer;
    this.scheduler.ask("overlay");
  }

  /** `path`: a step's longest chain (path.js); `ideal`: a step's ideal (ideal.js); null takes it away. */
  setPath(path) {
    this.path = path;
    this.#tell("path");
  }

  setIdeal(ideal) {
    this.ideal = ideal;
    this.#tell("ideal");
  }

  #tell(what) {
    this.dispatchEvent(new Event(what));
    this.draw();
  }

  #viewed() {
    this.updateShares();
    this.#tell("view");
  }

  #measure() {
    const { scroller, stage, frame } = this.parts;
    frame?.style.setProperty("--content", `${this.layout.contentPx}px`);
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
      leftPx: this.leftPx, scrollPx: this.scrollPx, pixelRatio: window.devicePixelRatio || 1, hasChunks: this.hasChunks,
    });
  }

  #paint(nowMs) {
    const isGliding = this.camera.moveGliding(nowMs);
    const hoveredRank = this.hover?.span?.rank ?? this.hover?.gap?.rank ?? -1;
    const isLeft = this.painter.paint(this.scene(), { addresses: this.addresses, shares: this.shares, hoveredRank }, this.ideal);
    this.dispatchEvent(new Event("painted"));
    return isLeft || isGliding;
  }

  /** True as long as the head moves. */
  #moveHead(nowMs) {
    const { isMoving, hasMovedView } = this.camera.moveHead(nowMs);
    if (hasMovedView) {
      this.dispatchEvent(new Event("view"));
      this.updateShares();
      this.scheduler.ask("timeline");
      this.askForMap();
    }
    const isSeen = this.camera.headNs > this.view.fromNs && this.camera.headNs < this.view.toNs;
    if (isMoving && (isSeen || this.selected || this.range || this.path || this.ideal)) this.scheduler.ask("overlay");
    return isMoving;
  }

  #paintOverlay() {
    const { selected, dependency, hover, pointer, range, path, ideal, search } = this;
    this.overlay.paint(this.scene(), { selected, dependency, hover, pointer, range, path, ideal, search, headNs: this.camera.headNs });
  }

  #updateShares() {
    this.shares = busyShares(this.trace, this.view.fromNs, this.view.toNs);
    this.dispatchEvent(new Event("totals"));
    this.scheduler.ask("timeline");
  }
}
