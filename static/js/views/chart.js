// A Plotly chart in the page's colours. The server builds and thins the figure; Plotly itself is loaded
// when the first chart comes into view, so that it never stands before the timeline's first frame.
//
//   <div data-chart="/runs/…/charts/loss.json" data-plotly="/static/…/plotly.min.js"></div>

import { readJson } from "../core/reading.js";

const LEAST_MS = 1000; // between two drawings
const HEIGHT_PX = 220; // fixed, so that the page stands still while charts come and grow
const HIDDEN_FRAME_MS = 250;
const NEARLY = "160px";
const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false };

let plotly = null;

function loadPlotly(address) {
  plotly ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      plotly = null; // so that the next drawing tries again
      script.remove();
      reject(new Error(`${address} cannot be loaded`));
    };
    document.head.append(script);
  });
  return plotly;
}

let lastTurn = Promise.resolve();

/**
 * Charts draw one after another, and the timeline's frames in between: Plotly's first drawing of each stands in the way
 * of everything else on the page for tenths of a second, as its script does before them.
 */
function inTurn(draw) {
  const turn = lastTurn.then(nextFrame).then(draw);
  lastTurn = turn.catch(() => {}); // whoever asked for the drawing hears of it
  return turn;
}

/** When the page has drawn a frame; where it draws none, as when it is hidden, soon. */
function nextFrame() {
  return new Promise((resolve) => {
    const soon = setTimeout(resolve, HIDDEN_FRAME_MS);
    requestAnimationFrame(() => {
      clearTimeout(soon);
      setTimeout(resolve); // a task of its own, after what came from the server meanwhile
    });
  });
}

/**
 * A chart in `element`. `refresh()` fetches and draws, at most once a second, and says by a promise when
 * what the server knew at the call is drawn; `close()` takes the chart down.
 */
export function chart(element) {
  let shown = null; // the answer that is drawn
  let drawnAt = -Infinity;
  let pending = null;
  let closed = false;
  element.style.height = `${element.dataset.height ?? HEIGHT_PX}px`;
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", element.dataset.empty ?? "A chart that is not drawn yet");

  const sight = inSight(element);

  function refresh() {
    pending ??= wait(drawnAt + LEAST_MS - performance.now()).then(sight.comes).then(() => {
      pending = null; // whoever asks from here on may know of more, and gets a drawing of its own
      drawnAt = performance.now();
      return closed ? undefined : fetchAndDraw();
    });
    return pending;
  }

  async function fetchAndDraw() {
    try {
      const [answer, Plotly] = await Promise.all([readJson(element.dataset.chart), loadPlotly(element.dataset.plotly)]);
      await inTurn(async () => {
        if (closed) return;
        shown = answer;
        await draw(Plotly);
      });
    } catch (error) {
      console.warn("A chart stays as it is:", error); // the connection may be lost; the page says so elsewhere
    }
  }

  async function draw(Plotly) {
    const colour = colours(element);
    element.setAttribute("aria-label", shown.text);
    await Plotly.react(element, shown.figure.data.map((trace) => inColour(trace, colour)), laidOut(shown.figure.layout, colour), CONFIG);
    element.dataset.drawn = String(shown.figure.data[0].x.length);
  }

  async function recolour() {
    if (shown && window.Plotly) await draw(window.Plotly);
  }

  document.addEventListener("themechange", recolour);
  return {
    refresh,
    close() {
      closed = true;
      sight.close();
      document.removeEventListener("themechange", recolour);
      window.Plotly?.purge(element);
    },
  };
}

/** `comes()` promises that the element is in view, or nearly, on a page that is not hidden: nothing is asked for or drawn before. */
function inSight(element) {
  let isNear = false;
  const waiting = [];
  const look = () => {
    if (isNear && !document.hidden) for (const tell of waiting.splice(0)) tell();
  };
  const watcher = new IntersectionObserver((entries) => {
    isNear = entries.at(-1).isIntersecting;
    look();
  }, { rootMargin: NEARLY });
  watcher.observe(element);
  document.addEventListener("visibilitychange", look);
  return {
    comes: () => new Promise((tell) => {
      waiting.push(tell);
      look();
    }),
    close() {
      watcher.disconnect();
      document.removeEventListener("visibilitychange", look);
    },
  };
}

function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, milliseconds)));
}

function colours(element) {
  const style = getComputedStyle(element);
  return (variable) => style.getPropertyValue(variable).trim();
}

function inColour(trace, colour) {
  const own = colour(trace.meta);
  return { ...trace, line: { ...trace.line, color: own }, marker: { ...trace.marker, color: own } };
}

function laidOut(layout, colour) {
  const text = colour("--text");
  const muted = colour("--muted");
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), tickcolor: colour("--line"), fixedrange: true };
  return {
    ...layout,
    autosize: true,
    dragmode: false,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: colour("--font"), size: 11, color: muted },
    title: { ...layout.title, font: { ...layout.title.font, color: text } },
    xaxis: { ...layout.xaxis, ...axis },
    yaxis: { ...layout.yaxis, ...axis },
    annotations: (layout.annotations ?? []).map((note) => ({ ...note, font: { ...note.font, color: muted } })),
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), font: { color: text } },
  };
}
