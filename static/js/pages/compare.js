/** Runs side by side: one step of each on one scale of time, and their losses in one chart. */

import { chart } from "../views/chart.js";
import { SideBySide } from "../views/side_by_side.js";

for (const element of document.querySelectorAll("[data-chart]")) chart(element).refresh();
for (const element of document.querySelectorAll("[data-side-by-side]")) new SideBySide(element).load();
