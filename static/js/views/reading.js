/** A quiet word beside the range: that what is in sight is still being read, or why it could not be. */

import { setText } from "../core/dom.js";
import { Refused } from "../core/reading.js";

/** What takes less than this is not worth a word. */
const PATIENCE_MS = 250;

function wordsOf({ status, requests: { error, retryInMs } }) {
  if (status === "reading") return "reading detail …";
  if (status !== "failed") return "";
  const reason = error instanceof Refused ? error.words : "The server does not answer.";
  return `Detail could not be read: ${reason} Trying again in ${Math.max(1, Math.round(retryInMs / 1000))} s.`;
}

export function bindReading(part, timeline, reader) {
  const label = part("reading");
  let timer = 0;
  timeline.addEventListener("reading", () => {
    clearTimeout(timer);
    const show = () => {
      setText(label, wordsOf(reader));
      label.title = label.textContent; // a narrow page cuts it off
      label.dataset.tone = reader.status === "failed" ? "bad" : "";
    };
    if (reader.status === "reading" && !label.textContent) timer = setTimeout(show, PATIENCE_MS);
    else show();
  });
}
