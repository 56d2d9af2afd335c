/**
 * A table of numbers as a canvas of cells, each the stronger in colour the more: a pointer or the arrow keys choose a cell, and a
 * line below says what it holds.
 */

import { element, setText } from "../../core/dom.js";

const GUTTER_PX = 62;
const HEAD_PX = 18;
const NARROWEST_NAME_PX = 12;
const ARROWS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/** `colour` names a CSS variable; `cellPx(rows, columns, roomPx)` says how wide and high a cell is. */
export function heat(title, { colour = "--accent", cellPx = stretched } = {}) {
  const canvas = element("canvas", { class: "heat-canvas", tabindex: "0", role: "img", "aria-label": title });
  const said = element("p", { class: "heat-said small muted", role: "status" }, "Point at a cell, or walk with the arrow keys.");
  const box = element("div", { class: "heat" }, element("div", { class: "heat-scroll" }, canvas), said);
  let data = null;
  let size = null;
  let chosen = null;

  /**
   * `{rows, columns, value(row, column), rowName, columnName, words(row, column), full}`; NaN is a cell of which nothing is known.
   * The strongest colour is the largest value's, and at least that of `full`: small differences stay pale.
   */
  function show(given) {
    data = given;
    draw();
    if (chosen) say();
  }

  function draw() {
    if (!data || !box.clientWidth) return;
    const style = getComputedStyle(box);
    const ink = (name) => style.getPropertyValue(name).trim();
    size = cellPx(data.rows, data.columns, box.clientWidth - GUTTER_PX);
    const context = sized(canvas, GUTTER_PX + size.width * data.columns, HEAD_PX + size.height * data.rows);
    context.font = `11px ${ink("--font")}`;
    drawNames(context, ink("--muted"));
    drawCells(context, ink("--lane"), ink(colour));
    if (chosen) {
      context.strokeStyle = ink("--text");
      context.lineWidth = 2;
      context.strokeRect(GUTTER_PX + chosen[1] * size.width, HEAD_PX + chosen[0] * size.height, Math.max(3, size.width), Math.max(3, size.height));
    }
  }

  function drawNames(context, muted) {
    context.fillStyle = muted;
    context.textBaseline = "middle";
    const each = Math.ceil(NARROWEST_NAME_PX / size.height);
    context.textAlign = "right";
    for (let row = 0; row < data.rows; row += each) context.fillText(data.rowName(row), GUTTER_PX - 6, HEAD_PX + (row + 0.5) * size.height, GUTTER_PX - 6);
    const widest = context.measureText(data.columnName(data.columns - 1)).width + 10;
    const stride = Math.ceil(widest / size.width);
    context.textAlign = "center";
    for (let column = 0; column < data.columns; column += stride) context.fillText(data.columnName(column), GUTTER_PX + (column + 0.5) * size.width, HEAD_PX / 2);
  }

  function drawCells(context, ground, ink) {
    let most = data.full ?? 0;
    for (let row = 0; row < data.rows; row++) for (let column = 0; column < data.columns; column++) most = Math.max(most, data.value(row, column) || 0);
    const gap = size.width > 4 && size.height > 4 ? 1 : 0;
    context.fillStyle = ground;
    context.fillRect(GUTTER_PX, HEAD_PX, data.columns * size.width - gap, data.rows * size.height - gap);
    context.fillStyle = ink;
    for (let row = 0; row < data.rows; row++) {
      for (let column = 0; column < data.columns; column++) {
        const value = data.value(row, column);
        if (!(value > 0)) continue;
        context.globalAlpha = 0.08 + (0.92 * value) / most;
        context.fillRect(GUTTER_PX + column * size.width, HEAD_PX + row * size.height, size.width - gap, size.height - gap);
      }
    }
    context.globalAlpha = 1;
  }

  function choose(row, column) {
    if (!data || row < 0 || column < 0 || row >= data.rows || column >= data.columns) return;
    chosen = [row, column];
    draw();
    say();
  }

  const say = () => setText(said, chosen[0] < data.rows && chosen[1] < data.columns ? data.words(...chosen) : "");

  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => {
    if (size) choose(Math.floor((offsetY - HEAD_PX) / size.height), Math.floor((offsetX - GUTTER_PX) / size.width));
  });
  canvas.addEventListener("keydown", (event) => {
    const by = ARROWS[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation(); // the timeline has keys of its own
    if (chosen) choose(chosen[0] + by[0], chosen[1] + by[1]);
    else choose(0, 0);
  });
  document.addEventListener("themechange", draw);
  new ResizeObserver(draw).observe(box);
  return { box, show };
}

/** The canvas at this size in CSS pixels, empty, and its context in those units. */
export function sized(canvas, widthPx, heightPx) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(widthPx * ratio);
  canvas.height = Math.round(heightPx * ratio);
  canvas.style.width = `${widthPx}px`;
  canvas.style.height = `${heightPx}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function stretched(rows, columns, roomPx) {
  return { width: Math.min(28, Math.max(6, roomPx / columns)), height: Math.min(20, Math.max(3, 320 / rows)) };
}

/** Square cells, as of a matrix. */
export function squares(rows, columns, roomPx) {
  const side = Math.min(34, Math.max(2, Math.floor(Math.min(roomPx, 520) / Math.max(rows, columns))));
  return { width: side, height: side };
}
