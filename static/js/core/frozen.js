/** Stands in for live.js in a page that was saved to a file: what the run recorded lies in the page itself. */

import { decodeBatch } from "./frame.js";
import { Seen } from "./seen.js";

/** As `connect` of live.js; there is nothing to connect to, and the run is complete once all is read. */
export function connect({ onFrames, onConnection }) {
  const seen = new Seen();

  async function read() {
    onConnection({ status: "connecting" });
    for (const script of document.querySelectorAll("script[data-batch]")) {
      const buffer = await unpacked(script.textContent);
      script.remove(); // the page holds its spans from here on, not twice
      const batch = decodeBatch(buffer);
      seen.bytes += buffer.byteLength;
      await onFrames(batch.frames.map((frame) => seen.take(frame, batch.merged)).filter(Boolean), batch.events, batch.complete);
    }
    onConnection({ status: "complete" });
  }

  read();
  return { get stats() { return seen.stats(); }, close() {} };
}

function unpacked(text) {
  const packed = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
