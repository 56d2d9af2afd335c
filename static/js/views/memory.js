// The memory of one rank, which the visitor chooses.

import { chart } from "./chart.js";

/** The chart in `element`, of the rank that `select` says. */
export function memoryChart(element, select) {
  const address = element.dataset.memory;
  const choose = () => {
    element.dataset.chart = `${address}?rank=${select.value}`;
  };
  choose();
  const drawn = chart(element);
  select.addEventListener("change", () => {
    choose();
    drawn.refresh();
  });
  return drawn;
}
