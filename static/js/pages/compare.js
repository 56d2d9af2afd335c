/** Runs side by side: their losses in one chart. */

import { chart } from "../views/chart.js";

for (const element of document.querySelectorAll("[data-chart]")) chart(element).refresh();
