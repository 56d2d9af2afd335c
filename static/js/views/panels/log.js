/** What a rank printed: followed while the run goes on, searched as one types. */

import { element, setText } from "../../core/dom.js";
import { Refused, readText } from "../../core/reading.js";

export function mount(body, { run, readBase }) {
  const ranks = Array.from({ length: run().ranks }, (_, rank) => element("option", { value: String(rank) }, String(rank)));
  const rank = element("select", { "data-part": "log-rank" }, ...ranks);
  const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search in the log", "data-part": "log-search" });
  const found = element("span", { role: "status", "data-part": "log-found" });
  const follow = element("input", { type: "checkbox", checked: true });
  const text = element("pre", { class: "panel-log", tabindex: "0", "data-part": "log", role: "region", "aria-label": "What the rank printed" });
  body.replaceChildren(
    element("div", { class: "panel-tools" }, element("label", {}, "Rank", rank), search, found, element("span", { class: "spacer" }),
      element("label", {}, follow, "Follow")),
    text,
  );
  let words = "";
  let asked = 0;
  let isLast = false; // read after the run had ended

  rank.addEventListener("change", read);
  follow.addEventListener("change", () => follow.checked && read());
  search.addEventListener("input", show);
  search.addEventListener("keydown", (event) => event.stopPropagation()); // the timeline has keys of its own

  async function read() {
    const turn = ++asked;
    const hasEnded = run().has_ended;
    text.setAttribute("aria-busy", "true");
    let answer;
    try {
      answer = await readText(`${readBase}logs/${rank.value}/`);
      if (turn === asked) isLast = hasEnded;
    } catch (error) {
      answer = error instanceof Refused ? error.words : "The server does not answer.";
    }
    if (turn !== asked) return;
    text.removeAttribute("aria-busy");
    if (answer === words) return;
    words = answer;
    show();
  }

  function show() {
    const wanted = search.value;
    const pieces = wanted ? split(words, wanted) : [words];
    text.replaceChildren(...pieces.map((piece, at) => (at % 2 ? element("mark", {}, piece) : piece)));
    const matches = (pieces.length - 1) / 2;
    setText(found, wanted ? `${matches} ${matches === 1 ? "match" : "matches"}` : "");
    const first = text.querySelector("mark");
    if (first) first.scrollIntoView({ block: "nearest" });
    else if (follow.checked) text.scrollTop = text.scrollHeight;
  }

  return {
    update: () => (follow.checked && !isLast ? read() : undefined),
    showRank(wanted) {
      rank.value = String(wanted);
      return read();
    },
  };
}

/** What lies between matches and the matches themselves, in turn; upper and lower case are the same. */
function split(words, wanted) {
  const pieces = [];
  const [within, sought] = [words.toLowerCase(), wanted.toLowerCase()];
  let from = 0;
  for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, from)) {
    pieces.push(words.slice(from, at), words.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...pieces, words.slice(from)];
}
