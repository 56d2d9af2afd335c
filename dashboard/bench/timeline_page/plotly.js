// The same spans as Plotly bars: a trace a kind, a bar a span, its start as the bar's base.

import { median, timedWithFrame } from "./timing.js";

const REDRAWS = 15; // four seconds of panning
const APPENDS = 3;

function traces(allFrames) {
  const byKind = new Map();
  for (const { rank, spans } of allFrames) {
    for (let row = 0; row < spans.length; row++) {
      if (!byKind.has(spans.kind[row])) byKind.set(spans.kind[row], { type: "bar", orientation: "h", x: [], base: [], y: [] });
      const trace = byKind.get(spans.kind[row]);
      trace.x.push(spans.duration_ns[row]);
      trace.base.push(spans.start_ns[row]);
      trace.y.push(`rank ${rank}`);
    }
  }
  return [...byKind.values()];
}

/** Medians in ms of a pan, and of an append of `appended` frames' spans, with layout and painting of the frame that follows. */
export async function measurePlotly(drawn, appended) {
  const { Plotly } = window;
  const div = document.body.appendChild(document.createElement("div"));
  div.style.cssText = "width:1400px;height:800px";
  const data = traces(drawn);
  const endNs = Math.max(...drawn.map(({ spans }) => spans.start_ns[spans.length - 1]));
  await Plotly.newPlot(div, data, { barmode: "overlay", showlegend: false, xaxis: { range: [0, endNs] } }, { staticPlot: false });
  const pans = [];
  for (let pan = 1; pan <= REDRAWS; pan++) {
    pans.push(await timedWithFrame(() => Plotly.relayout(div, { "xaxis.range": [pan * endNs * 1e-3, endNs * (1 + pan * 1e-3)] })));
  }
  const added = traces(appended);
  const update = { x: added.map(({ x }) => x), base: added.map(({ base }) => base), y: added.map(({ y }) => y) };
  const appends = [];
  for (let append = 0; append < APPENDS; append++) {
    appends.push(await timedWithFrame(() => Plotly.extendTraces(div, update, added.map((_, at) => at))));
  }
  Plotly.purge(div);
  div.remove();
  return { redraw: median(pans), append: median(appends) };
}
