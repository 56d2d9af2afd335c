// Keeps the list of runs up to date while something in it moves. What did not change is left alone,
// so that neither focus nor a selection is lost.

import { throttled } from "../core/dom.js";
import { news } from "../core/news.js";
import { bindMenus } from "../views/menus.js";

const EVERY_MS = 2000;
const CALM_MS = 10_000; // nothing moves; a word that something does may be lost
const NEWS_MS = 300;
const COMPARED = { least: 2, most: 4 };
const live = document.getElementById("live");
const rowsUrl = live.dataset.rowsUrl + location.search;
let timer = 0;

function moves() {
  return live.querySelector("[data-moves]")?.dataset.moves === "yes";
}

function plan() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, moves() ? EVERY_MS : CALM_MS);
}

async function refresh() {
  try {
    const answer = await fetch(rowsUrl, { headers: { "X-Requested-With": "fetch" } });
    if (answer.redirected) location.reload(); // logged out meanwhile
    if (answer.ok) merge(new DOMParser().parseFromString(await answer.text(), "text/html").body);
  } catch {
    // The server is away; the next round may find it.
  }
  plan();
}

function merge(fresh) {
  const oldBody = live.querySelector("tbody");
  const newBody = fresh.querySelector("tbody");
  if (!oldBody || !newBody) {
    live.replaceChildren(...fresh.childNodes);
    return;
  }
  oldBody.dataset.moves = newBody.dataset.moves;
  mergeRows(oldBody, newBody);
  for (const name of ["fleet", "pager"]) {
    const [before, after] = [live, fresh].map((root) => root.querySelector(`[data-part="${name}"]`));
    if (before && after && before.innerHTML !== after.innerHTML) before.replaceWith(after);
    else if (!before && after) live.append(after);
    else if (before && !after) before.remove();
  }
}

function mergeRows(body, fresh) {
  const rows = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  [...fresh.rows].forEach((after, at) => {
    const before = rows.get(after.dataset.key);
    rows.delete(after.dataset.key);
    if (before) mergeCells(before, after);
    const row = before ?? after;
    if (body.rows[at] !== row) body.insertBefore(row, body.rows[at] ?? null);
  });
  for (const row of rows.values()) row.remove();
  showTicked();
}

function mergeCells(before, after) {
  [...after.cells].forEach((cell, at) => {
    if (before.cells[at].innerHTML !== cell.innerHTML) before.cells[at].replaceChildren(...cell.childNodes);
  });
}

const bar = document.getElementById("bulk");

function showTicked() {
  const ticked = live.querySelectorAll("[name=run]:checked").length;
  bar.querySelector('[data-part="ticked"]').textContent = `${ticked} ticked`;
  const compare = bar.querySelector('[data-part="compare"]');
  if (compare) compare.disabled = ticked < COMPARED.least || ticked > COMPARED.most;
}

live.addEventListener("change", showTicked);
showTicked();
bindMenus();

news.addEventListener("runs", throttled(NEWS_MS, refresh));
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
addEventListener("pageshow", (event) => {
  if (event.persisted) refresh(); // "back" shows the page as it was left
});
plan();
