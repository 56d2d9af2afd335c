/** The run's heading: its state in words, how far it is, what went wrong, and whether the page hears of it. */

import { setText } from "../core/dom.js";
import { clockSeconds, count, plural } from "../core/format.js";
import { clockLines, clockWords } from "./clocks.js";

const CONNECTION_WORDS = {
  connecting: "connecting", live: "live", lost: "connection lost, trying again", complete: "complete", gone: "no longer shared",
};
const FAILURE_TITLES = { failed: "The run failed.", lost: "The run was lost.", stopped: "The run was stopped." };

export class StateView {
  constructor(root, part) {
    Object.assign(this, { root, part });
    this.words = document.getElementById("state-words").content;
    this.shownState = root.dataset.state;
  }

  /** `stepSeconds`: how long a step takes at present, NaN where not known. */
  show(run, stepSeconds) {
    this.root.dataset.state = run.state;
    if (run.state !== this.shownState) {
      this.shownState = run.state;
      this.part("state").replaceChildren(...this.words.querySelector(`[data-state="${run.state}"]`).cloneNode(true).childNodes);
    }
    setText(this.part("progress"), progressWords(run, stepSeconds));
    const bar = this.part("bar");
    bar.setAttribute("aria-valuenow", run.steps_done);
    bar.style.setProperty("--done", run.steps ? Math.min(1, run.steps_done / run.steps) : 0);
    const stop = this.part("stop");
    if (stop) {
      stop.hidden = run.has_ended;
      stop.querySelector("button").disabled = run.state === "stopping";
    }
    setText(this.part("worker"), run.worker || "none yet");
    this.#showClocks(run);
    this.#showRealtime(run);
    this.#showFailure(run);
  }

  #showClocks(run) {
    const place = this.part("clocks");
    if (!place) return;
    setText(place, clockWords(run));
    place.title = clockLines(run);
  }

  #showRealtime(run) {
    const place = this.part("realtime");
    if (!place) return;
    place.dataset.kind = run.realtime === false ? "refused" : "";
    setText(place, run.realtime === false ? "Real-time class not granted: paced durations may come out longer where cores are busy."
      : run.realtime ? "Real-time class granted." : "");
  }

  #showFailure(run) {
    const box = this.part("failure");
    box.hidden = !FAILURE_TITLES[run.state] || (run.state === "stopped" && !run.reason);
    if (box.hidden) return;
    const { rank, signal, exit_code: exitCode, log_tail: tail } = run.failure ?? {};
    const how = signal ? `by signal ${signal}` : Number.isInteger(exitCode) ? `with exit code ${exitCode}` : "";
    const isNamed = !Number.isInteger(rank) || (run.reason ?? "").startsWith(`Rank ${rank} `);
    const who = !isNamed ? ` Rank ${rank} ended${how ? ` ${how}` : ""}.` : "";
    setText(this.part("failure-title"), FAILURE_TITLES[run.state] + who);
    setText(this.part("failure-reason"), run.reason ?? "");
    const log = this.part("failure-log");
    const text = Array.isArray(tail) ? tail.join("\n") : tail ?? "";
    log.hidden = !text;
    setText(log, text);
  }

  showConnection({ status, redisAway = false }) {
    const pill = this.part("connection");
    pill.dataset.status = redisAway && status === "live" ? "lost" : status;
    setText(pill, redisAway && status === "live" ? "no new spans: Redis is away" : CONNECTION_WORDS[status] ?? status);
  }
}

function progressWords(run, stepSeconds) {
  const done = `${count(run.steps_done)} of ${plural(run.steps, "step")}`;
  if (run.state === "queued") return run.place_in_queue > 1 ? `number ${run.place_in_queue} in the queue` : "next in the queue";
  if (run.state === "starting") return `starting ${plural(run.ranks, "rank")}`;
  if (run.state === "stopping") return `${done}, stopping`;
  const lasted = run.started && run.ended ? `${done} in ${clockSeconds((run.ended - run.started) / 1000)}` : done;
  if (run.state === "finished" && run.reason) return `${lasted}. ${run.reason}`;
  if (run.state !== "running") return lasted;
  const left = (run.steps - run.steps_done) * stepSeconds;
  return Number.isFinite(left) && run.steps_done > 0 ? `${done}, about ${clockSeconds(left)} left` : done;
}

/** What stands in the timeline's place while there is nothing to draw: [title, words]. */
export function emptyWords(run) {
  if (run.state === "queued") {
    const first = run.place_in_queue > 1 ? `${plural(run.place_in_queue - 1, "run")} will start first. ` : "";
    return ["Waiting in the queue", first + (run.waits_for ?? "")];
  }
  if (run.state === "starting") return ["Starting", `A worker is bringing up ${plural(run.ranks, "rank")}.`];
  if (run.has_ended) return ["No spans", "The run ended before its ranks recorded anything."];
  return ["No spans yet", "The first ones come with the first micro-batch."];
}
