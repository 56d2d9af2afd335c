/** Racks, servers and ranks as nested boxes on a canvas, with the lines of a group laid over them. */

import { element } from "../../core/dom.js";
import { sized } from "./heat.js";

const [GAP, PAD, TITLE, BETWEEN_RACKS] = [3, 6, 16, 14];
const FEWEST_NUMBERED_PX = 20;
const NUMBER_PX = 11; // from a cell's upper edge to the middle of its number
const MOST_IN_A_ROW = 4; // servers of a rack
const BOW = 0.16; // of a line's length, so that a long one does not hide behind short ones
/** Colour and dash by what lies between two ranks: neither tells alone. */
export const LINES = {
  server: { colour: "--kind-forward", dash: [], words: "within a server" },
  rack: { colour: "--warn", dash: [6, 3], words: "within a rack" },
  cluster: { colour: "--bad", dash: [2, 3], words: "between racks" },
};

export function distance({ servers, racks }, one, other) {
  if (servers[one] === servers[other]) return "server";
  return racks[one] === racks[other] ? "rack" : "cluster";
}

/** Boxes in CSS pixels: `ranks[rank]` is the corner of a cell of side `cell`; racks flow into rows of `roomPx`. */
export function layoutOf({ servers, racks }, cell, roomPx) {
  const byRack = new Map();
  servers.forEach((server, rank) => {
    if (!byRack.has(racks[rank])) byRack.set(racks[rank], new Map());
    const held = byRack.get(racks[rank]);
    if (!held.has(server)) held.set(server, []);
    held.get(server).push(rank);
  });
  const most = Math.max(...[...byRack.values()].flatMap((held) => [...held.values()].map((ranks) => ranks.length)));
  const across = most <= 8 ? Math.min(most, 4) : Math.ceil(Math.sqrt(most));
  const server = { width: 2 * PAD + across * (cell + GAP) - GAP, height: 2 * PAD + TITLE + Math.ceil(most / across) * (cell + GAP) - GAP };
  const made = { cell, ranks: [], servers: [], racks: [], width: 0, height: 0 };
  let [x, y, rowHeight] = [0, 0, 0];
  for (const [rack, held] of byRack) {
    const columns = held.size <= MOST_IN_A_ROW ? held.size : Math.ceil(Math.sqrt(held.size));
    const width = 2 * PAD + columns * (server.width + PAD) - PAD;
    const height = 2 * PAD + TITLE + Math.ceil(held.size / columns) * (server.height + PAD) - PAD;
    if (x > 0 && x + width > roomPx) [x, y, rowHeight] = [0, y + rowHeight + BETWEEN_RACKS, 0];
    made.racks.push({ x, y, width, height, words: `rack ${rack}` });
    [...held].forEach(([number, ranks], at) => {
      const left = x + PAD + (at % columns) * (server.width + PAD);
      const top = y + PAD + TITLE + Math.floor(at / columns) * (server.height + PAD);
      made.servers.push({ x: left, y: top, ...server, words: `server ${number}` });
      ranks.forEach((rank, place) => {
        made.ranks[rank] = { x: left + PAD + (place % across) * (cell + GAP), y: top + PAD + TITLE + Math.floor(place / across) * (cell + GAP) };
      });
    });
    made.width = Math.max(made.width, x + width);
    made.height = Math.max(made.height, y + height);
    x += width + BETWEEN_RACKS;
    rowHeight = Math.max(rowHeight, height);
  }
  return made;
}

/** `onChoose(rank)` when a pointer or the arrow keys come to a rank; `show` draws `{servers, racks, sent, lines, cell}`. */
export function topologyMap(onChoose) {
  const canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": "Ranks in their servers and racks" });
  const box = element("div", { class: "topology-map" }, canvas);
  let shown = null;
  let layout = null;
  let chosen = 0;

  function draw() {
    if (!shown || !box.clientWidth) return;
    const began = performance.now();
    const style = getComputedStyle(box);
    const ink = (name) => style.getPropertyValue(name).trim();
    layout = layoutOf(shown, shown.cell, box.clientWidth - 2 * BETWEEN_RACKS);
    const context = sized(canvas, Math.max(box.clientWidth, layout.width + 2 * BETWEEN_RACKS), layout.height + 2 * BETWEEN_RACKS);
    context.translate(BETWEEN_RACKS, BETWEEN_RACKS);
    context.font = `11px ${ink("--font")}`;
    drawBoxes(context, layout.racks, ink("--card-2"), ink("--line"), ink("--muted"));
    drawBoxes(context, layout.servers, ink("--card"), ink("--line"), ink("--muted"));
    drawRanks(context, layout, shown, { ground: ink("--lane"), ink: ink("--accent") });
    drawLines(context, layout, shown, chosen, ink);
    drawNumbers(context, layout, ink("--text"));
    const { x, y } = layout.ranks[chosen];
    context.strokeStyle = ink("--text");
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, layout.cell + 2, layout.cell + 2);
    box.dataset.ranks = `${layout.ranks.length}`;
    box.dataset.drawnMs = `${performance.now() - began}`;
  }

  function choose(rank) {
    if (rank === chosen || !shown || rank < 0 || rank >= shown.servers.length) return;
    chosen = rank;
    draw();
    onChoose(rank);
  }

  canvas.addEventListener("pointerdown", ({ offsetX, offsetY }) => {
    const [x, y] = [offsetX - BETWEEN_RACKS, offsetY - BETWEEN_RACKS];
    const rank = layout?.ranks.findIndex((at) => x >= at.x && x < at.x + layout.cell + GAP && y >= at.y && y < at.y + layout.cell + GAP);
    if (rank >= 0) choose(rank);
  });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation(); // the timeline has keys of its own
    choose(chosen + by);
  });
  document.addEventListener("themechange", draw);
  new ResizeObserver(draw).observe(box);
  return {
    box,
    show(given) {
      shown = given;
      draw();
    },
    get chosen() {
      return chosen;
    },
  };
}

function drawBoxes(context, boxes, fill, stroke, text) {
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.lineWidth = 1;
  for (const { x, y, width, height, words } of boxes) {
    context.fillStyle = fill;
    context.strokeStyle = stroke;
    context.fillRect(x, y, width, height);
    context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
    context.fillStyle = text;
    context.fillText(words, x + PAD, y + PAD + TITLE / 2 - 2, width - 2 * PAD);
  }
}

function drawRanks(context, { ranks, cell }, { sent }, { ground, ink }) {
  const most = Math.max(...sent);
  context.fillStyle = ground;
  for (const { x, y } of ranks) context.fillRect(x, y, cell, cell);
  context.fillStyle = ink;
  ranks.forEach(({ x, y }, rank) => {
    if (!(sent[rank] > 0)) return;
    context.globalAlpha = 0.1 + (0.5 * sent[rank]) / most;
    context.fillRect(x, y, cell, cell);
  });
  context.globalAlpha = 1;
}

function drawNumbers(context, { ranks, cell }, text) {
  if (cell < FEWEST_NUMBERED_PX) return;
  context.fillStyle = text;
  context.textAlign = "center";
  ranks.forEach(({ x, y }, rank) => context.fillText(`${rank}`, x + cell / 2, y + Math.min(cell / 2, NUMBER_PX), cell - 2)); // above the lines
  context.textAlign = "left";
}

/** The chosen rank's group in full, the others pale. */
function drawLines(context, { ranks, cell }, shown, chosen, ink) {
  const { groups = [], pairs = [] } = shown.lines ?? {};
  for (const group of groups) {
    const isOwn = group.includes(chosen);
    context.globalAlpha = isOwn ? 1 : 0.22;
    context.lineWidth = isOwn ? 2.5 : 1;
    for (const [one, other] of pairs) {
      const [from, to] = [ranks[group[one]], ranks[group[other]]];
      const { colour, dash } = LINES[distance(shown, group[one], group[other])];
      context.strokeStyle = ink(colour);
      context.setLineDash(dash);
      context.beginPath();
      const [alongX, alongY] = [to.x - from.x, to.y - from.y];
      context.moveTo(from.x + cell / 2, from.y + cell / 2);
      context.quadraticCurveTo(from.x + alongX / 2 - BOW * alongY + cell / 2, from.y + alongY / 2 + BOW * alongX + cell / 2, to.x + cell / 2, to.y + cell / 2);
      context.stroke();
    }
  }
  context.setLineDash([]);
  context.globalAlpha = 1;
}
