/** In the page that `bench views` looks at: frames, what views do, and how long a picture takes to get to pixels. Sets `window.bench`. */

const root = document.querySelector(".run");
const panels = root?.querySelector('[data-part="panels"]');

const SETTLE_MS = 1000; // what was under way when views went out of sight may end

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** The gaps in ms between animation frames from now on, for so many seconds. */
function frameGaps(seconds) {
  return new Promise((resolve) => {
    const gaps = [];
    let lastMs = NaN;
    let untilMs = NaN;
    const frame = (nowMs) => {
      if (Number.isFinite(lastMs)) gaps.push(nowMs - lastMs);
      else untilMs = nowMs + seconds * 1000;
      lastMs = nowMs;
      if (nowMs < untilMs) requestAnimationFrame(frame);
      else resolve(gaps);
    };
    requestAnimationFrame(frame);
  });
}

/** The panels with the foot of the timeline above them, or nothing of them. */
function look({ atPanels }) {
  const top = panels.getBoundingClientRect().top + scrollY - (atPanels ? 0.4 * innerHeight : 0);
  scrollTo({ top: atPanels ? top : 0, behavior: "instant" });
  const { top: now } = panels.getBoundingClientRect();
  if (atPanels !== now < innerHeight) throw new Error(`the views are ${now} px down, and the page is ${innerHeight} px high`);
}

/** Requests for views' data, and changes of what views show (a canvas that is drawn anew is a change), during so many seconds. */
async function work(seconds, { isHidden }) {
  if (isHidden) hide(true);
  await pause(SETTLE_MS);
  const began = performance.now();
  let updates = 0;
  const changes = new MutationObserver((records) => { updates += records.length; });
  changes.observe(panels, { subtree: true, childList: true, attributes: true, characterData: true });
  await pause(seconds * 1000);
  changes.disconnect();
  const asked = performance.getEntriesByType("resource").filter(({ startTime, name }) => startTime >= began && /\/(panels|charts)\/[a-z-]+\.json/.test(name));
  if (isHidden) hide(false);
  const requests = asked.filter(({ name }) => isHidden || name.includes("/panels/") && !name.includes("/panels/explain"));
  return { requests: requests.length, updates };
}

/** As the browser says it of a tab behind another. */
function hide(isHidden) {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}

/** Ms of `draw` and of reading a pixel of `canvas` back, for which it has to be there. */
function drawnMs(draw, canvas) {
  const began = performance.now();
  draw();
  canvas().getContext("2d").getImageData(0, 0, 1, 1);
  return performance.now() - began;
}

/** Topology's map and its matrix with all ranks, `rounds` times each, at every size that it offers. */
async function topology(rounds) {
  const modules = new URL("..", document.querySelector('script[src*="pages/run.js"]').src);
  const { topologyMap } = await import(`${modules}views/panels/topology_map.js`);
  const { heat, squares } = await import(`${modules}views/panels/heat.js`);
  const { binned } = await import(`${modules}views/panels/topology.js`);
  const { trafficOfStep } = await import(`${modules}timeline/traffic.js`);
  const { heldSteps } = await import(`${modules}timeline/collectives.js`);
  const ask = async (query) => (await fetch(`${root.dataset.readBase}panels/topology.json?${query}`)).json();
  const known = await ask("");
  const { groups, pairs } = await ask(new URLSearchParams({ group: known.groups.at(-1) }));
  const { trace } = lockstep.timeline;
  const ranks = trace.ranks.length;
  const [step] = heldSteps(trace, 1);
  const [map, matrix] = [topologyMap(() => {}), heat("Traffic", { colour: "--kind-send", cellPx: squares })];
  panels.replaceChildren(map.box, matrix.box);
  const found = { map: [], matrix: [], ranks };
  for (let round = 0; round < rounds; round++) {
    const traffic = trafficOfStep(trace, step);
    const sent = new Float64Array(ranks);
    for (const [pair, size] of traffic) sent[Math.floor(pair / ranks)] += size;
    found.pairs = traffic.size;
    const cell = [10, 24, 36, 64][round % 4];
    found.map.push(drawnMs(() => map.show({ ...known, sent, lines: { groups, pairs: pairs.ring }, cell }), () => map.box.querySelector("canvas")));
    found.matrix.push(drawnMs(() => matrix.show(binned(trafficOfStep(trace, step), ranks)), () => matrix.box.querySelector("canvas")));
  }
  return found;
}

/** Ms from the next keystroke in a field of the launch form to the preview that follows it, painted. */
function previewMs() {
  const plan = document.getElementById("plan");
  return new Promise((resolve) => {
    let pressedMs = NaN;
    document.addEventListener("keydown", ({ timeStamp }) => { pressedMs = timeStamp; }, { once: true, capture: true });
    const watcher = new MutationObserver(() => {
      watcher.disconnect();
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - pressedMs);
        port2.postMessage(null); // after what the frame lays out and paints
      });
    });
    watcher.observe(plan, { childList: true });
  });
}

window.bench = { frameGaps, look, work, topology, previewMs };
