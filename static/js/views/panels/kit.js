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
