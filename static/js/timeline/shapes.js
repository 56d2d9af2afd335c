/** Boxes around spans, and arrows between them. */

const SHORTEST_ARROW_PX = 24;

/** A span's box on the canvas, held to what is in sight. */
export function boxOf(scene, span) {
  const lane = scene.layout.box(span.rank, span.lane);
  const left = Math.max(scene.snapped(scene.x(span.startNs)), scene.leftPx - 4);
  const right = Math.min(Math.max(scene.snapped(scene.x(span.endNs)), left + 2), scene.widthPx + 4);
  return { left, right, top: scene.y(span.rank) + lane.topPx, height: lane.heightPx };
}

export function outline(context, scene, span, colour, lineWidth) {
  const { left, right, top, height } = boxOf(scene, span);
  if (right < scene.leftPx || left > scene.widthPx) return;
  context.strokeStyle = colour;
  context.lineWidth = lineWidth;
  context.beginPath();
  context.roundRect(left - lineWidth / 2, top - lineWidth / 2, right - left + lineWidth, height + lineWidth, 2.5);
  context.stroke();
}

/** From the end of what had to be done first to the start of what waited for it. */
export function arrow(context, scene, from, to) {
  const start = boxOf(scene, from);
  const end = boxOf(scene, to);
  const isLate = from.startNs > to.startNs; // who came last to a collective: the others waited from their start to this one's
  const x1 = scene.x(isLate ? from.startNs : from.endNs);
  const x2 = isLate ? x1 : scene.x(to.startNs);
  if (Math.max(x1, x2) < scene.leftPx || Math.min(x1, x2) > scene.widthPx) return;
  if (from.rank === to.rank && from.lane === to.lane && x2 - x1 < SHORTEST_ARROW_PX) return;
  const y1 = start.top + start.height / 2;
  const y2 = end.top + end.height / 2;
  const bend = isLate ? 0 : Math.max(24, Math.min(90, Math.abs(x2 - x1) / 2));
  for (const [style, lineWidth] of [[scene.colours.card, 4.5], [scene.colours.text, 1.6]]) {
    context.strokeStyle = context.fillStyle = style;
    context.lineWidth = lineWidth;
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, isLate ? x2 : x2 - 5, y2);
    context.stroke();
  }
  context.beginPath();
  context.arc(x1, y1, 2.6, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
  context.moveTo(x2, y2);
  const back = Math.sign(y1 - y2) * 8;
  context.lineTo(...(isLate ? [x2 - 4.5, y2 + back] : [x2 - 8, y2 - 4.5]));
  context.lineTo(...(isLate ? [x2 + 4.5, y2 + back] : [x2 - 8, y2 + 4.5]));
  context.fill();
}

/** A line of words on a card of its own, its middle at `x` as far as it fits in sight. */
export function chip(context, scene, words, x, top, { ground, colour }) {
  context.font = "600 11px Inter, ui-sans-serif, system-ui, sans-serif";
  context.textBaseline = "middle";
  const width = context.measureText(words).width + 12;
  const middle = Math.min(Math.max(x, scene.leftPx + width / 2), scene.widthPx - width / 2);
  context.fillStyle = ground;
  context.beginPath();
  context.roundRect(middle - width / 2, top, width, 17, 4);
  context.fill();
  context.fillStyle = colour;
  context.fillText(words, middle - width / 2 + 6, top + 9);
}
