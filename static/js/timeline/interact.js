/**
 * Mouse, touch and keys on the timeline.
 *
 * Drag pans; with shift, or on the ruler, a drag chooses a range. The wheel scrolls as everywhere,
 * sideways it pans, with ctrl it zooms where the pointer is. A click chooses a span, or folds a group at
 * its heading; a double click zooms to a span. Two fingers pan and zoom.
 */

import { REACH_PX, hit } from "./hit.js";
import { RULER_PX } from "./layout.js";
import { marksAt } from "./marks.js";
import { sentenceOf } from "./words.js";
import { Tooltip } from "./tooltip.js";

const DRAG_FROM_PX = 4;
const TOUCH_REACH_PX = 12;
const ZOOM_A_SECOND = 6;
const PAN_A_SECOND = 0.9;
const WHEEL_LINE_PX = 16;

export class Interaction {
  constructor(timeline, announcer) {
    this.timeline = timeline;
    this.announcer = announcer;
    this.surface = timeline.parts.scroller;
    this.tooltip = new Tooltip(timeline.parts.frame);
    this.pointers = new Map();
    this.drag = null;
    this.held = new Set();
    this.heldMs = NaN;
    timeline.scheduler.register("held keys", (nowMs) => this.#moveByKeys(nowMs));
    this.#listen();
  }

  #listen() {
    const { surface } = this;
    surface.addEventListener("pointerdown", (event) => this.#down(event));
    surface.addEventListener("pointermove", (event) => this.#move(event));
    surface.addEventListener("pointerup", (event) => this.#up(event));
    surface.addEventListener("pointercancel", (event) => this.#cancel(event));
    surface.addEventListener("pointerleave", () => this.#leave());
    surface.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    surface.addEventListener("dblclick", (event) => this.#doubleClick(event));
    this.timeline.addEventListener("view", () => this.#hoverAgain());
    this.timeline.addEventListener("select", () => {
      const { selected, trace } = this.timeline;
      this.announcer.textContent = selected ? sentenceOf(trace, selected) : "";
    });
  }

  #point(event) {
    const box = this.surface.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #timeAt(x) {
    return this.timeline.view.timeAt(x - this.timeline.leftPx);
  }

  #hitAt({ x, y }, reachPx = REACH_PX) {
    const { layout, leftPx, scrollPx, trace, view } = this.timeline;
    if (x < leftPx) return null;
    const lane = layout.laneAt(y, scrollPx);
    return lane && hit(trace, lane.rank, lane.lane, this.#timeAt(x), reachPx * view.nsPerPx);
  }

  #down(event) {
    if (event.button !== 0) return;
    const point = this.#point(event);
    if (point.x > this.surface.clientWidth) return; // the scroll bar
    this.pointers.set(event.pointerId, point);
    this.surface.setPointerCapture(event.pointerId);
    if (this.pointers.size === 2) {
      this.drag = { kind: "pinch", ...this.#pinch() };
      return;
    }
    const choosesRange = event.shiftKey || (point.y < RULER_PX && event.pointerType === "mouse");
    this.drag = { kind: choosesRange ? "range" : "pan", start: point, last: point, anchorNs: this.#timeAt(point.x), moved: false };
  }

  #pinch() {
    const [one, other] = [...this.pointers.values()];
    return { middle: (one.x + other.x) / 2, apart: Math.max(20, Math.abs(one.x - other.x)) };
  }

  #move(event) {
    const point = this.#point(event);
    if (!this.pointers.has(event.pointerId)) {
      if (event.pointerType !== "touch") this.#hover(point);
      return;
    }
    this.pointers.set(event.pointerId, point);
    if (this.drag?.kind === "pinch") this.#movePinch();
    else if (this.drag) this.#moveDrag(point);
  }

  #movePinch() {
    if (this.pointers.size < 2) return;
    const now = this.#pinch();
    this.timeline.panPx(this.drag.middle - now.middle);
    this.timeline.zoomAt(now.middle, this.drag.apart / now.apart);
    Object.assign(this.drag, now);
  }

  #moveDrag(point) {
    const { drag, timeline } = this;
    if (!drag.moved && Math.hypot(point.x - drag.start.x, point.y - drag.start.y) < DRAG_FROM_PX) return;
    if (!drag.moved) this.surface.classList.add(drag.kind === "pan" ? "is-panning" : "is-choosing");
    drag.moved = true;
    this.tooltip.hide();
    if (drag.kind === "range") {
      const timeNs = this.#timeAt(Math.max(point.x, timeline.leftPx));
      timeline.setChosenRange({ fromNs: Math.min(drag.anchorNs, timeNs), toNs: Math.max(drag.anchorNs, timeNs) });
    } else {
      timeline.panPx(drag.last.x - point.x);
      this.surface.scrollTop += drag.last.y - point.y;
    }
    drag.last = point;
  }

  #up(event) {
    const { drag } = this;
    const point = this.#point(event);
    this.#cancel(event);
    if (!drag || drag.kind === "pinch" || drag.moved) return;
    const header = point.x < this.timeline.leftPx && this.timeline.layout.headerAt(point.y, this.timeline.scrollPx);
    if (header) {
      this.timeline.arrange({ folded: this.timeline.arrangement.fold(header.key) });
      return;
    }
    if (drag.kind === "range") this.timeline.setChosenRange(null);
    const found = this.#hitAt(point, event.pointerType === "touch" ? TOUCH_REACH_PX : REACH_PX);
    if (!found && this.timeline.range) this.timeline.setChosenRange(null);
    this.timeline.select(found?.span ?? null);
    if (event.pointerType === "touch" && found) this.#showTip(found, point);
  }

  #cancel(event) {
    this.pointers.delete(event.pointerId);
    this.surface.classList.remove("is-panning", "is-choosing");
    this.drag = null;
  }

  #leave() {
    this.tooltip.hide();
    this.timeline.setHover(null, null);
  }

  #hover(point) {
    const found = this.#hitAt(point);
    this.timeline.setHover(found, point);
    const marks = found ? [] : marksAt(this.timeline.trace, this.timeline.scene(), point);
    if (found || marks.length) this.#showTip(found ?? { marks }, point);
    else this.tooltip.hide();
  }

  /** The view moved under a pointer at rest: by keys, by a glide, with the head of the run. */
  #hoverAgain() {
    if (this.timeline.pointer && !this.drag) this.#hover(this.timeline.pointer);
  }

  #showTip(found, { x, y }) {
    const { parts, trace, colours } = this.timeline;
    const frame = parts.frame.getBoundingClientRect();
    const surface = this.surface.getBoundingClientRect();
    this.tooltip.show(trace, found, colours, x + surface.left - frame.left, y + surface.top - frame.top);
  }

  #wheel(event) {
    const { timeline } = this;
    const scale = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_LINE_PX : 1;
    const sideways = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      timeline.zoomAt(this.#point(event).x, Math.exp(event.deltaY * scale * 0.0022));
    } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      event.preventDefault();
      timeline.panPx(sideways * scale);
    }
    this.tooltip.hide();
  }

  #doubleClick(event) {
    const found = this.#hitAt(this.#point(event));
    const target = found?.span ?? found?.gap;
    if (target) this.timeline.glideTo(target.startNs - target.durationNs * 0.6, target.endNs + target.durationNs * 0.6);
  }

  /** Held keys pan and zoom for as long as they are held, at the same speed whatever the frame rate. */
  hold(key, isHeld) {
    if (isHeld) this.held.add(key);
    else this.held.delete(key);
    this.timeline.scheduler.ask("held keys");
  }

  #moveByKeys(nowMs) {
    if (!this.held.size) {
      this.heldMs = NaN;
      return false;
    }
    const seconds = Number.isFinite(this.heldMs) ? Math.min(0.1, (nowMs - this.heldMs) / 1000) : 1 / 60;
    this.heldMs = nowMs;
    const { timeline } = this;
    const direction = Number(this.held.has("d")) - Number(this.held.has("a"));
    const zoom = Number(this.held.has("s")) - Number(this.held.has("w"));
    if (direction) timeline.panPx(direction * seconds * PAN_A_SECOND * timeline.view.widthPx);
    if (zoom) timeline.zoomAt(timeline.pointer?.x ?? timeline.leftPx + timeline.view.widthPx / 2, ZOOM_A_SECOND ** (zoom * seconds));
    return true;
  }
}
