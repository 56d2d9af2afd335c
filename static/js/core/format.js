/** Numbers as people read them. Every function takes the unit in its name. */

const exact = new Intl.NumberFormat("en", { minimumFractionDigits: 3, maximumFractionDigits: 3 });

const trimmed = (value, digits) => value.toFixed(digits);

/** "38.2 ms", "950 ns", "1.24 s": three figures that count. */
export function durationNs(ns) {
  if (!Number.isFinite(ns)) return "–";
  const size = Math.abs(ns);
  if (size < 999.5) return `${trimmed(ns, 0)} ns`;
  if (size < 999.5e3) return `${figures(ns / 1e3)} µs`;
  if (size < 999.5e6) return `${figures(ns / 1e6)} ms`;
  if (size < 120e9) return `${figures(ns / 1e9)} s`;
  return clockSeconds(ns / 1e9);
}

/** A moment on the run's clock, to the microsecond: "18,953.421 ms". */
export function momentNs(ns) {
  return Number.isFinite(ns) ? `${exact.format(ns / 1e6)} ms` : "–";
}

/** "2 min 05 s", "1 h 12 min": for waits that a person plans around. */
export function clockSeconds(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, "0")} s`;
  return `${Math.floor(whole / 3600)} h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")} min`;
}

/** Three figures that count, without an exponent. */
export function figures(value) {
  const size = Math.abs(value);
  if (size >= 100 || size === 0) return trimmed(value, 0);
  if (size >= 10) return trimmed(value, 1);
  return trimmed(value, 2);
}

export function bytes(count) {
  if (!(count >= 0)) return "–";
  if (count < 1000) return `${Math.round(count)} B`;
  if (count < 1e6) return `${figures(count / 1e3)} kB`;
  if (count < 1e9) return `${figures(count / 1e6)} MB`;
  return `${figures(count / 1e9)} GB`;
}

export function percent(share, digits = 1) {
  return Number.isFinite(share) ? `${(share * 100).toFixed(digits)} %`.replace("-", "−") : "–";
}

/** A sentence whose numbers stay in a line with their units. */
export function unbroken(words) {
  return words.replace(/(\d) (?=(?:%|×|[nµm]?s|[kMG]?B)(?![A-Za-z]))/g, "$1\u00a0");
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value) {
  return Number.isFinite(value) ? grouped.format(value) : "–";
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}
