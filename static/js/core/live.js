// The page's end of a live run: pulls what follows its cursor, survives lost connections, and hands
// on every frame exactly once. Once all is here it stays connected for what people do.

import { decodeBatch } from "./frame.js";
import { Seen } from "./seen.js";

const GONE = 4404;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;
const SILENCE_MS = 35_000; // the server says something at least every 10 s, so this is a dead connection

/**
 * `after`: the cursor to begin with, where the page needs nothing that came before. `onState(run)`; `onFrames(frames, events, complete)` may return a promise, and the next batch comes
 * once it is done; `onConnection({status, retryInMs, redisAway})` with status "connecting", "live",
 * "lost", "complete" (the run is sealed and all of it is here) or "gone" (no right to it, or no more);
 * `onMessage(message)` gets whatever else the server says. Returns `{close, send, stats}`.
 */
export function connect({ url, after = null, onState, onFrames, onConnection, onMessage = () => {} }) {
  const address = new URL(url, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const seen = new Seen({ beginsLater: after !== null });
  let socket = null;
  let cursor = after;
  let complete = false;
  let over = false;
  let attempts = 0;
  let retryTimer = 0;
  let silenceTimer = 0;
  let working = Promise.resolve(); // done when the page has taken in the last batch

  function open() {
    clearTimeout(retryTimer);
    onConnection({ status: "connecting" });
    const opened = new WebSocket(address);
    socket = opened;
    opened.binaryType = "arraybuffer";
    opened.onopen = () => {
      onConnection({ status: complete ? "complete" : "live" });
      working.then(() => pull(opened));
      listenForSilence();
    };
    opened.onmessage = ({ data }) => {
      if (opened !== socket) return;
      attempts = 0;
      listenForSilence();
      if (typeof data === "string") receiveText(JSON.parse(data));
      else working = receiveBatch(opened, data);
    };
    opened.onclose = ({ code }) => {
      if (opened === socket) closed(code);
    };
  }

  function pull(from) {
    if (!complete && from === socket && from.readyState === WebSocket.OPEN) {
      from.send(JSON.stringify({ type: "pull", after: cursor }));
    }
  }

  function receiveText(message) {
    if (message.type === "state") onState(message.run);
    else if (message.type === "redis") onConnection({ status: complete ? "complete" : "live", redisAway: message.away });
    else onMessage(message);
  }

  async function receiveBatch(from, data) {
    try {
      const batch = decodeBatch(data);
      seen.bytes += data.byteLength;
      cursor = batch.cursor;
      complete = batch.complete;
      await onFrames(batch.frames.map((frame) => seen.take(frame, batch.merged)).filter(Boolean), batch.events, batch.complete);
      if (complete && !over) onConnection({ status: "complete" });
      pull(from);
    } catch (error) {
      console.error("A batch could not be shown", error);
      from.close();
    }
  }

  function closed(code) {
    socket = null;
    clearTimeout(silenceTimer);
    if (over) return;
    if (code === GONE) {
      over = true;
      onConnection({ status: "gone" });
    } else {
      const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** attempts++);
      const retryInMs = Math.round(longest * (0.5 + Math.random() / 2)); // spread, so that viewers do not return all at once
      onConnection({ status: "lost", retryInMs });
      retryTimer = setTimeout(open, retryInMs);
    }
  }

  function drop() {
    const dropped = socket;
    if (!dropped) return;
    closed(0); // at once: a socket without a network closes only after its own long time-out
    dropped.close();
  }

  function listenForSilence() {
    clearTimeout(silenceTimer);
    silenceTimer = setTimeout(drop, SILENCE_MS);
  }

  function retryAtOnce() {
    if (!over && !socket && document.visibilityState === "visible") open();
  }

  addEventListener("online", retryAtOnce);
  addEventListener("offline", drop);
  document.addEventListener("visibilitychange", retryAtOnce);
  open();

  return {
    get stats() {
      return seen.stats();
    },
    /** What is sent while there is no connection is lost. */
    send(message) {
      if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    },
    close() {
      over = true;
      clearTimeout(retryTimer);
      clearTimeout(silenceTimer);
      removeEventListener("online", retryAtOnce);
      removeEventListener("offline", drop);
      document.removeEventListener("visibilitychange", retryAtOnce);
      socket?.close();
    },
  };
}
