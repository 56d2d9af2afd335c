/** A step's time as one bar, a stretch for each cause: Explain's, and the one in short beside the timeline. */

import { durationNs, percent } from "../core/format.js";
import { svg } from "./panels/kit.js";

const WIDTH = 1000;
const HEIGHT = 34;

/** Milliseconds as a person reads them, with a true minus. */
export const signed = (ms) => (ms < 0 ? `−${durationNs(-ms * 1e6)}` : durationNs(ms * 1e6));

/** `pieces`: `{key, title, ms, share}` each; what took less than nothing has no stretch. */
export function stepBar(pieces, title) {
  const shown = pieces.filter((piece) => piece.ms > 0);
  const whole = shown.reduce((sum, piece) => sum + piece.ms, 0);
  const words = shown.map((piece) => `${piece.title} ${percent(piece.share)}`).join(", ");
  const made = svg("svg", { class: "explain-bar", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${words}`, preserveAspectRatio: "none" });
  let x = 0;
  for (const { key, title: cause, ms, share } of shown) {
    const width = (ms / whole) * WIDTH;
    const stretch = svg("rect", { class: `piece-${key}`, x, y: 0, width: Math.max(width - 2, 1), height: HEIGHT, rx: 3 });
    stretch.append(svg("title", {}, `${cause}: ${signed(ms)}, ${percent(share)}`));
    made.append(stretch);
    x += width;
  }
  return made;
}
