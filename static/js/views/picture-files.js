/** A picture of the timeline as a file: PNG, or SVG with its text as text. */

import { SCALE, pictureOf } from "./picture.js";

const SVG = "http://www.w3.org/2000/svg";
const ANCHOR = { left: "start", start: "start", center: "middle", right: "end", end: "end" };
const BASELINE = { middle: "central", alphabetic: "alphabetic", top: "hanging", bottom: "text-after-edge" };

/** Menu entries `data-part="picture-png"` and `picture-svg` save what the timeline shows at that moment. */
export function bindPicture(part, timeline, getRun) {
  const save = async (kind, made) => download(await made(pictureOf(timeline, getRun())), `${getRun().id}-timeline.${kind}`);
  for (const [kind, made] of [["png", png], ["svg", svg]]) {
    part(`picture-${kind}`)?.addEventListener("click", ({ target }) => {
      target.closest("details").open = false;
      save(kind, made);
    });
  }
}

export function png(picture) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(picture.widthPx * SCALE);
  canvas.height = Math.round(picture.heightPx * SCALE);
  const context = canvas.getContext("2d");
  context.scale(SCALE, SCALE);
  context.fillStyle = picture.ground;
  context.fillRect(0, 0, picture.widthPx, picture.heightPx);
  const { canvas: lanes, topPx } = picture.image;
  context.drawImage(lanes, 0, topPx, lanes.width / SCALE, lanes.height / SCALE);
  for (const { x, y, px, colour, isHatched } of picture.marks) {
    context.fillStyle = context.strokeStyle = colour;
    context.beginPath();
    if (!isHatched) context.fillRect(x, y, px, px);
    else for (const [x1, y1, x2, y2] of hatch(x, y, px)) context.moveTo(x1, y1), context.lineTo(x2, y2);
    context.stroke();
  }
  for (const text of picture.texts) write(context, picture, text);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function write(context, picture, { words, x, y, font, colour, align, baseline, alpha, widthPx, from = 0 }) {
  context.save();
  context.beginPath();
  context.rect(from, 0, picture.widthPx, picture.heightPx);
  context.clip();
  Object.assign(context, { font, fillStyle: colour, textAlign: align, textBaseline: baseline, globalAlpha: alpha });
  context.fillText(words, x, y, widthPx ?? undefined);
  context.restore();
}

export function svg(picture) {
  const { widthPx, heightPx, image, ground } = picture;
  const root = node("svg", { xmlns: SVG, width: widthPx, height: heightPx, viewBox: `0 0 ${widthPx} ${heightPx}` });
  root.append(node("rect", { width: widthPx, height: heightPx, fill: ground }), node("image", {
    y: image.topPx, width: image.canvas.width / SCALE, height: image.canvas.height / SCALE, href: image.canvas.toDataURL("image/png"),
  }));
  for (const { x, y, px, colour, isHatched } of picture.marks) {
    if (!isHatched) root.append(node("rect", { x, y, width: px, height: px, fill: colour }));
    else for (const [x1, y1, x2, y2] of hatch(x, y, px)) root.append(node("line", { x1, y1, x2, y2, stroke: colour }));
  }
  const clips = new Map();
  for (const text of picture.texts) groupFor(root, clips, text.from ?? 0, picture).append(textNode(text));
  return new Blob([new XMLSerializer().serializeToString(root)], { type: "image/svg+xml" });
}

/** Words of spans that stick out of sight end where the lanes do. */
function groupFor(root, clips, from, { widthPx, heightPx }) {
  if (!clips.has(from)) {
    const clip = node("clipPath", { id: `from-${from}` });
    clip.append(node("rect", { x: from, width: widthPx - from, height: heightPx }));
    const group = node("g", { "clip-path": `url(#from-${from})` });
    root.append(clip, group);
    clips.set(from, group);
  }
  return clips.get(from);
}

function textNode({ words, x, y, font, colour, align, baseline, alpha, widthPx }) {
  const { groups: { weight, size, family } } = /(?<weight>\d{3})?\s*(?<size>[\d.]+px)\s*(?<family>.*)/.exec(font);
  const made = node("text", {
    x: x.toFixed(2), y: y.toFixed(2), fill: colour, "font-size": size, "font-family": family, "font-weight": weight ?? 400,
    "text-anchor": ANCHOR[align], "dominant-baseline": BASELINE[baseline] ?? "alphabetic",
  });
  if (alpha !== 1) made.setAttribute("opacity", alpha);
  if (widthPx) made.setAttribute("textLength", widthPx);
  made.textContent = words;
  return made;
}

/** Three lines from lower left to upper right, `[x1, y1, x2, y2]`. */
function hatch(x, y, px) {
  return [[x, y + px / 2, x + px / 2, y], [x, y + px, x + px, y], [x + px / 2, y + px, x + px, y + px / 2]];
}

function node(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (key !== "xmlns") made.setAttribute(key, value);
  return made;
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
