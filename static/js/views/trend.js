/** A sparkline: the last steps' values as a line, their theory as a dashed one. */

const WIDTH = 64;
const HEIGHT = 22;
const PAD = 2;

const SVG = "http://www.w3.org/2000/svg";

export class Trend {
  constructor(svg) {
    this.svg = svg;
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    this.theory = svg.appendChild(document.createElementNS(SVG, "line"));
    this.theory.setAttribute("class", "figure-trend-theory");
    this.line = svg.appendChild(document.createElementNS(SVG, "polyline"));
  }

  /** `values` in the order of steps, NaN where one is not known. */
  show(values, theory = NaN) {
    const known = values.filter(Number.isFinite);
    const all = Number.isFinite(theory) ? [...known, theory] : known;
    const low = Math.min(...all);
    const high = Math.max(...all);
    const y = (value) => (high > low ? HEIGHT - PAD - ((value - low) / (high - low)) * (HEIGHT - 2 * PAD) : HEIGHT / 2).toFixed(1);
    const stride = (WIDTH - 2) / Math.max(1, values.length - 1);
    const points = values.map((value, at) => (Number.isFinite(value) ? `${(1 + at * stride).toFixed(1)},${y(value)}` : "")).filter(Boolean);
    this.line.setAttribute("points", points.length > 1 ? points.join(" ") : "");
    this.theory.setAttribute("visibility", Number.isFinite(theory) && points.length > 1 ? "visible" : "hidden");
    if (!Number.isFinite(theory)) return;
    for (const [name, value] of [["x1", 0], ["x2", WIDTH], ["y1", y(theory)], ["y2", y(theory)]]) this.theory.setAttribute(name, value);
  }
}
