/** The time axis: ticks at round distances, and lines through the lanes under them. */

import { RULER_PX } from "./layout.js";

const LEAST_TICK_PX = 92;
export const TEXT_PX = RULER_PX - 17; // its middle, above the signs at the ruler's foot

/** The shortest of 1, 2 or 5 × 10^n ns that is at least `leastNs`. */
export function tickNs(leastNs) {
  const power = 10 ** Math.floor(Math.log10(leastNs));
  for (const factor of [1, 2, 5]) if (factor * power >= leastNs) return factor * power;
  return 10 * power;
}

/** A tick's words, as exact as the distance between ticks asks for; all up to `farthestNs` are in one unit. */
export function tickText(timeNs, distanceNs, farthestNs = Math.abs(timeNs)) {
  const [unitNs, unit] = distanceNs >= 1e9 || farthestNs >= 10e9 ? [1e9, "s"] : distanceNs >= 1e6 ? [1e6, "ms"]
    : farthestNs >= 1e9 ? [1e9, "s"] : distanceNs >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
  const digits = Math.max(0, Math.ceil(-Math.log10(distanceNs / unitNs) - 1e-9));
  return `${(timeNs / unitNs).toFixed(digits)} ${unit}`;
}

/** Lines at the ticks, to go under the spans. */
export function drawGrid(context, scene) {
  const distance = tickNs(LEAST_TICK_PX * scene.nsPerPx);
  context.fillStyle = scene.colours.line;
  for (let tick = Math.ceil((scene.fromNs - scene.nsPerColumn) / distance); tick * distance <= scene.toNs; tick++) {
    context.fillRect(scene.snapped(scene.x(tick * distance)), RULER_PX - 5, 1, scene.heightPx);
  }
}

export function drawRuler(context, scene, sprites) {
  const { colours, fromNs, toNs, leftPx, widthPx } = scene;
  const distance = tickNs(LEAST_TICK_PX * scene.nsPerPx);
  const farthestNs = Math.max(Math.abs(fromNs), Math.abs(toNs));
  for (let tick = Math.ceil(fromNs / distance); tick * distance <= toNs; tick++) {
    const x = scene.snapped(scene.x(tick * distance));
    if (x < leftPx + 20 || x > widthPx - 20) continue;
    const text = tickText(tick * distance, distance, farthestNs);
    sprites.stamp(context, text, colours.muted, x - sprites.get(text, colours.muted).widthPx / 2, TEXT_PX);
  }
}
