/** Times in ms, and what they come to. */

export function quantile(values, share) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export const median = (values) => quantile(values, 0.5);

export async function timed(work) {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

export const nextFrame = () => new Promise((done) => requestAnimationFrame(done));

const afterPaint = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = done;
  port2.postMessage(null);
});

/** Ms of `work`, and of what the page's next frame then has to lay out and paint; not of waiting for that frame. */
export async function timedWithFrame(work) {
  const workMs = await timed(work);
  await nextFrame();
  return workMs + await timed(afterPaint);
}

/** The gaps in ms between the page's animation frames while `each(frame, nowMs)` is called in every one, for so long. */
export function frameGaps(seconds, each) {
  return new Promise((resolve) => {
    const gaps = [];
    let beganMs = NaN;
    let lastMs = NaN;
    const frame = (nowMs) => {
      if (!Number.isFinite(beganMs)) beganMs = nowMs;
      if (Number.isFinite(lastMs)) gaps.push(nowMs - lastMs);
      lastMs = nowMs;
      if (nowMs - beganMs > seconds * 1000) return resolve(gaps);
      each(gaps.length, nowMs);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}
