/** What the views beside the timeline are built of: headings with what they mean, tables, drawings. */

import { element } from "../../core/dom.js";

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** A part of a view: its title, one line that says how to read it, and what it holds. */
export function part(title, tells, ...children) {
  return element("section", { class: "panel-part" }, element("h3", {}, title), tells && element("p", { class: "muted small" }, tells), ...children);
}

/** `rows`: cells as text or elements, the first one heads its row. `marked(row number)` says which row stands out. */
export function table(caption, heads, rows, marked = () => false) {
  const head = element("tr", {}, ...heads.map((words) => element("th", { scope: "col" }, words)));
  const body = rows.map((cells, at) => element(
    "tr", { class: marked(at) ? "marked" : null },
    ...cells.map((cell, column) => (column ? element("td", {}, cell) : element("th", { scope: "row" }, cell))),
  ));
  return element(
    "div", { class: "panel-table", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", { class: "visually-hidden" }, caption), element("thead", {}, head), element("tbody", {}, ...body)),
  );
}

/** What the figures of a view mean, as the server defines them. */
export function definitionList(definitions) {
  return element("dl", { class: "panel-words" }, ...definitions.flatMap(({ title, definition, formula }) => [
    element("dt", {}, title), element("dd", {}, definition, formula && element("code", {}, formula)),
  ]));
}

/** A select with a label; `options` are [value, words]. */
export function choice(label, options) {
  const select = element("select", {});
  const offer = (offered) => {
    const kept = select.value;
    select.replaceChildren(...offered.map(([value, words]) => element("option", { value }, words)));
    if (offered.some(([value]) => value === kept)) select.value = kept;
  };
  offer(options);
  select.addEventListener("keydown", (event) => event.stopPropagation()); // the timeline has keys of its own
  return { select, offer, box: element("label", {}, label, select) };
}
