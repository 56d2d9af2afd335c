/**
 * A picture of what the timeline shows, at twice the page's resolution, with title, range and legend.
 *
 * The timeline's own painter draws it onto canvases of the picture's; what it would write is caught and written last, so
 * that a PNG has it as pixels and an SVG as text that one can search, copy and set in another typeface.
 */

import { durationNs, momentNs, plural } from "../core/format.js";
import { ALL_KINDS, KIND, KIND_WORD } from "../core/kinds.js";
import { Overlay } from "../timeline/overlay.js";
import { Painter } from "../timeline/paint.js";
import { Scene } from "../timeline/scene.js";
import { PLAIN_FONT, SMALL_FONT, Sprites, TICK_FONT } from "../timeline/sprites.js";

export const SCALE = 2;
export const FONT = "Inter, ui-sans-serif, system-ui, sans-serif";

const HEAD_PX = 58;
const MARGIN_PX = 16;
const LEGEND_ROW_PX = 22;
const SWATCH_PX = 10;

/** `{widthPx, heightPx, ground, image: {canvas, topPx}, marks: [{x, y, px, colour, isHatched}], texts: [{words, x, y, font, colour, …}]}` */
export function pictureOf(timeline, run) {
  const live = timeline.scene();
  const scene = new Scene({ ...live, pixelRatio: SCALE });
  const { canvas, texts: inside } = painted(timeline, scene);
  const legend = legendOf(timeline, scene);
  const { colours } = scene;
  const head = (words, y, font, colour) => ({ words, x: MARGIN_PX, y, font, colour, align: "left", baseline: "alphabetic", alpha: 1 });
  return {
    widthPx: scene.widthPx,
    heightPx: HEAD_PX + scene.heightPx + legend.heightPx,
    ground: colours.card,
    image: { canvas, topPx: HEAD_PX },
    marks: legend.marks,
    texts: [
      head(run.name, 25, `600 16px ${FONT}`, colours.text),
      head(rangeWords(timeline, run), 46, `12px ${FONT}`, colours.muted),
      ...inside.map((text) => ({ ...text, y: text.y + HEAD_PX, from: text.x < scene.leftPx ? 0 : scene.leftPx })),
      ...legend.texts,
    ],
  };
}

function rangeWords({ view, trace }, run) {
  const isPaced = run.spec.pace.kind !== "real";
  return [
    `run ${run.id}`, `${durationNs(view.spanNs)} from ${momentNs(view.fromNs)} to ${momentNs(view.toNs)} of its clock`,
    plural(trace.ranks.length, "rank"), isPaced && "paced: times are emulated", run.spec.links.kind !== "real" && "modelled links",
  ].filter(Boolean).join(" · ");
}

/** The lanes and what lies over them without their words, and the words. */
function painted(timeline, scene) {
  const texts = [];
  const painter = new Painter(document.createElement("canvas"));
  const known = new Map(); // which canvas is the stamp of which words
  for (const [name, font] of [["sprites"], ["smallSprites", SMALL_FONT], ["plainSprites", PLAIN_FONT], ["tickSprites", TICK_FONT]]) {
    painter[name] = new WordSprites(known, font);
  }
  catchWords(painter.context, scene, known, texts);
  painter.budgetMs = Infinity;
  painter.paint(scene, { addresses: timeline.addresses, shares: timeline.shares, hoveredRank: -1 }, timeline.ideal);
  // Painting took note of what had changed, which the page's own painter has not seen now.
  timeline.painter.rows.forget();
  timeline.painter.sheet.forget();
  timeline.draw();

  const overlay = new Overlay(document.createElement("canvas"));
  catchWords(overlay.context, scene, known, texts);
  const { selected, dependency, range, path, ideal, search } = timeline;
  overlay.paint(scene, { selected, dependency, hover: null, pointer: null, range, path, ideal, search, headNs: -Infinity });
  if (overlay.canvas.style.visibility !== "hidden") {
    painter.context.setTransform(1, 0, 0, 1, 0, 0);
    painter.context.drawImage(overlay.canvas, 0, 0);
  }
  return { canvas: painter.canvas, texts };
}

class WordSprites extends Sprites {
  constructor(known, font) {
    super(font);
    this.known = known;
  }

  get(text, colour) {
    const sprite = super.get(text, colour);
    this.known.set(sprite.canvas, { words: text, colour, font: this.font });
    return sprite;
  }
}

/** From now on the context keeps words, wherever they were to be, instead of drawing them. */
function catchWords(context, scene, known, texts) {
  const at = (x, y) => {
    const { x: column, y: row } = context.getTransform().transformPoint({ x, y });
    return { x: column / scene.pixelRatio, y: row / scene.pixelRatio };
  };
  const draw = context.drawImage.bind(context);
  context.drawImage = (image, ...rest) => {
    const words = known.get(image);
    if (!words) return draw(image, ...rest);
    const [x, y, , heightPx] = rest;
    texts.push({ ...words, ...at(x + 0.5, y + heightPx / 2 + 0.5), align: "left", baseline: "middle", alpha: context.globalAlpha });
  };
  context.fillText = (words, x, y, mostPx = Infinity) => {
    const { font, fillStyle, textAlign, textBaseline, globalAlpha } = context;
    const widthPx = context.measureText(words).width > mostPx ? mostPx : null;
    texts.push({ words, ...at(x, y), font, colour: fillStyle, align: textAlign, baseline: textBaseline, alpha: globalAlpha, widthPx });
  };
}

/** The kinds that the run has shown, as the page's own legend has them, in as many rows as they take. */
function legendOf({ trace }, { colours, widthPx, heightPx }) {
  const kinds = ALL_KINDS.filter((kind) => ![KIND.STEP, KIND.DATA, KIND.WAIT].includes(kind) && trace.counts[kind] > 0);
  const entries = kinds.map((kind) => [KIND_WORD[kind], colours.kind[kind], false]);
  entries.push(["bubble (idle inside a step)", colours.hatch, true]);
  if (trace.counts[KIND.WAIT] > 0) entries.push(["waits for data", colours.kind[KIND.WAIT], false]);
  const measure = document.createElement("canvas").getContext("2d");
  const font = measure.font = `12px ${FONT}`;
  const texts = [];
  const marks = [];
  let x = MARGIN_PX;
  let y = HEAD_PX + heightPx + LEGEND_ROW_PX;
  for (const [words, colour, isHatched] of entries) {
    const px = SWATCH_PX + 6 + measure.measureText(words).width;
    if (x > MARGIN_PX && x + px > widthPx - MARGIN_PX) [x, y] = [MARGIN_PX, y + LEGEND_ROW_PX];
    marks.push({ x, y: y - SWATCH_PX / 2, px: SWATCH_PX, colour, isHatched });
    texts.push({ words, x: x + SWATCH_PX + 6, y, font, colour: colours.muted, align: "left", baseline: "middle", alpha: 1 });
    x += px + 18;
  }
  return { marks, texts, heightPx: y - HEAD_PX - heightPx + LEGEND_ROW_PX };
}
