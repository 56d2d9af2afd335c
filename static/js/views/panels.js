/**
 * The views beside the timeline, one at a time behind tabs. A view's module is loaded when its tab is first
 * chosen, and works only while it is seen: `mount(body, context)` builds it and returns `{update()}`.
 */

import { throttled } from "../core/dom.js";
import { readJson } from "../core/reading.js";

const UPDATE_MS = 2000;

const MODULES = {
  pipeline: () => import("./panels/pipeline.js"),
  explain: () => import("./panels/explain.js"),
  collectives: () => import("./panels/collectives.js"),
  topology: () => import("./panels/topology.js"),
  stragglers: () => import("./panels/stragglers.js"),
  experts: () => import("./panels/experts.js"),
  learning: () => import("./panels/learning.js"),
  memory: () => import("./panels/memory.js"),
  comments: () => import("./panels/comments.js"),
  log: () => import("./panels/log.js"),
};

export class Panels {
  /**
   * `context`: `{run(), timeline, readBase, plotly, launchForm, comments, place}` (the form empty for who may not launch),
   * which every view gets with `ask(fields)`, its data from the server.
   */
  constructor(box, context) {
    this.context = context;
    this.tabs = [...box.querySelectorAll('[role="tab"]')];
    this.mounted = new Map();
    this.due = new Map(); // tabs whose view is updating, and whether it has to once more
    this.isSeen = false;
    this.changed = throttled(UPDATE_MS, () => this.#update());
    for (const tab of this.tabs) {
      tab.addEventListener("click", () => this.show(tab));
      tab.addEventListener("keydown", (event) => this.#walk(event, tab));
    }
    new IntersectionObserver((entries) => {
      this.isSeen = entries.at(-1).isIntersecting;
      this.#update();
    }).observe(box);
    document.addEventListener("visibilitychange", () => this.#update());
  }

  get shown() {
    return this.tabs.find((tab) => tab.getAttribute("aria-selected") === "true");
  }

  /** The view with this name, if the run has it; resolves to what its module made. */
  async open(name) {
    const tab = this.tabs.find((one) => nameOf(one) === name);
    if (!tab) return null;
    this.show(tab);
    return this.#mount(tab);
  }

  show(tab) {
    for (const one of this.tabs) {
      one.setAttribute("aria-selected", String(one === tab));
      one.tabIndex = one === tab ? 0 : -1;
      panelOf(one).hidden = one !== tab;
    }
    const address = new URL(location.href);
    address.searchParams.set("view", nameOf(tab));
    history.replaceState(history.state, "", address);
    this.#update();
  }

  #walk(event, tab) {
    const at = this.tabs.indexOf(tab);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation(); // the timeline has keys of its own
    const wanted = this.tabs.at(next % this.tabs.length);
    this.show(wanted);
    wanted.focus();
  }

  /** A view that is still at it is told again afterwards: never two updates of one at once. */
  async #update() {
    if (!this.isSeen || document.hidden) return;
    const tab = this.shown;
    const isBusy = this.due.has(tab);
    this.due.set(tab, isBusy);
    if (isBusy) return;
    try {
      const view = await this.#mount(tab);
      await view.update();
    } catch (error) {
      console.warn("A view stays as it is:", error); // the connection may be lost; the page says so elsewhere
    }
    const isDue = this.due.get(tab);
    this.due.delete(tab);
    if (isDue) this.changed();
  }

  #mount(tab) {
    const name = nameOf(tab);
    if (!this.mounted.has(name)) {
      const body = panelOf(tab).querySelector('[data-part="panel-body"]');
      const mounted = MODULES[name]().then((module) => module.mount(body, { ...this.context, ask: (fields) => this.#ask(name, fields) }));
      mounted.catch(() => this.mounted.delete(name)); // so that the next look tries again
      this.mounted.set(name, mounted);
    }
    return this.mounted.get(name);
  }

  #ask(name, fields = {}) {
    return readJson(`${this.context.readBase}panels/${name}.json?${new URLSearchParams(fields)}`);
  }
}

const nameOf = (tab) => tab.id.replace(/^tab-/, "");
const panelOf = (tab) => document.getElementById(tab.getAttribute("aria-controls"));
