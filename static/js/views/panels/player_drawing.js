/** What the step player draws: ranks on a circle with the chunks on their way, and which rank has what. */

import { element } from "../../core/dom.js";
import { svg } from "./kit.js";

const SIZE = 320;
const MIDDLE = SIZE / 2;
const RADIUS = 122;
const NODE = 19;
const LETTERS = "abcdefghijklmnop";

const place = (rank, ranks) => {
  const angle = (2 * Math.PI * rank) / ranks - Math.PI / 2;
  return [MIDDLE + RADIUS * Math.cos(angle), MIDDLE + RADIUS * Math.sin(angle)];
};

/** The moves of the step under way, of which `share` is over. `names` are the ranks by place, if they are known. */
export function circle(plan, moves, share, names) {
  const title = `${plan.collective.replaceAll("_", "-")} by ${plan.algorithm} among ${plan.ranks} ranks`;
  const made = svg("svg", { class: "player-circle", viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": title });
  const token = plan.ranks > 8 ? 9 : 12;
  for (const [source, target] of moves) made.append(arrow(source, target, plan.ranks));
  for (let rank = 0; rank < plan.ranks; rank++) {
    const [x, y] = place(rank, plan.ranks);
    made.append(svg("circle", { class: "player-node", cx: x, cy: y, r: NODE }), svg("text", { class: "player-name", x, y: y + 4 }, `${names?.[rank] ?? rank}`));
  }
  for (const [source, target, chunks, isReduce] of moves) {
    const [[fromX, fromY], [toX, toY]] = [place(source, plan.ranks), place(target, plan.ranks)];
    const along = 0.28 + 0.44 * share;
    const [x, y] = [fromX + (toX - fromX) * along, fromY + (toY - fromY) * along];
    const words = chunks.length === 1 ? `${chunks[0]}` : `${chunks.length}×`;
    const chip = svg("g", { class: isReduce ? "player-chip adds" : "player-chip" },
      svg("rect", { x: x - token - 2, y: y - token + 2, width: 2 * token + 4, height: 2 * token - 4, rx: 4 }), svg("text", { x, y: y + 4 }, isReduce ? `+${words}` : words));
    chip.append(svg("title", {}, `rank ${names?.[source] ?? source} sends chunk ${chunks.join(", ")} to rank ${names?.[target] ?? target}, which ${isReduce ? "adds it to its own" : "keeps it"}`));
    made.append(chip);
  }
  return made;
}

function arrow(source, target, ranks) {
  const [[fromX, fromY], [toX, toY]] = [place(source, ranks), place(target, ranks)];
  const length = Math.hypot(toX - fromX, toY - fromY);
  const [alongX, alongY] = [(toX - fromX) / length, (toY - fromY) / length];
  const [tipX, tipY] = [toX - alongX * (NODE + 3), toY - alongY * (NODE + 3)];
  const [backX, backY] = [tipX - 8 * alongX, tipY - 8 * alongY];
  const head = `M${tipX} ${tipY} L${backX - 4 * alongY} ${backY + 4 * alongX} L${backX + 4 * alongY} ${backY - 4 * alongX} Z`;
  return svg("g", { class: "player-arrow" }, svg("line", { x1: fromX + alongX * NODE, y1: fromY + alongY * NODE, x2: backX, y2: backY }), svg("path", { d: head }));
}

/** A row a rank, a column a chunk; letters are contributions. An all-to-all's chunks are named "from→for". */
export function stateTable(plan, done, names) {
  const full = 2 ** plan.ranks - 1;
  const isSum = plan.collective === "all_reduce" || plan.collective === "reduce_scatter" || plan.collective === "reduce";
  const chunkName = (chunk) => (plan.collective === "all_to_all" ? `${Math.floor(chunk / plan.ranks)}→${chunk % plan.ranks}` : `${chunk}`);
  const before = plan.states[Math.max(0, done - 1)];
  const heads = Array.from({ length: plan.chunks }, (_, chunk) => element("th", { scope: "col" }, chunkName(chunk)));
  const rows = plan.states[done].map((held, rank) => element("tr", {}, element("th", { scope: "row" }, `rank ${names?.[rank] ?? rank}`), ...held.map((bits, chunk) => {
    const isDone = isSum ? bits === full : bits > 0;
    const isNew = bits !== before[rank][chunk];
    return element("td", { class: [isDone && "done", isNew && "new"].filter(Boolean).join(" ") || null, "data-held": lettersOf(bits) }, short(bits, plan.ranks));
  })));
  return element("div", { class: "player-table", tabindex: "0", role: "region", "aria-label": "Which rank has which contributions" }, element("table", {},
    element("caption", { class: "visually-hidden" }, "Contributions that each rank has, by chunk"),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Chunk"), ...heads)), element("tbody", {}, ...rows)));
}

const lettersOf = (bits) => [...LETTERS].filter((_, rank) => bits & (1 << rank)).join("");

/** Letters of a few; of many ranks' how many they are. */
function short(bits, ranks) {
  const letters = lettersOf(bits);
  if (!letters) return "·";
  return letters.length > 6 ? (letters.length === ranks ? "all" : `${letters.length} of ${ranks}`) : letters;
}
