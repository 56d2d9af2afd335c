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

export const nextFrame = () => new Promise((done) => requestAnimationFrame(done));
