/** How far the ranks' clocks may be trusted, in words. Keys are those of a run's figures. */

import { durationNs } from "../core/format.js";
import { median } from "./now.js";

const MOST_NAMED = 8;

export function clockWords({ ranks, figures }) {
  if (ranks === 1) return "one rank, one clock";
  const uncertainties = (figures?.rank_clock_uncertainty_ns ?? []).map((ns) => ns ?? NaN);
  const others = uncertainties.map((ns, rank) => ({ ns, rank })).filter(({ ns, rank }) => rank > 0 && Number.isFinite(ns));
  if (!others.length) return "not compared yet";
  const residual = figures.clock_residual_ns;
  const agree = Number.isFinite(residual) ? `; ends of collectives agree to ${durationNs(residual)}` : "";
  if (others.length <= MOST_NAMED) return `${others.map(({ ns, rank }) => `rank ${rank} ± ${durationNs(ns)}`).join(", ")} against rank 0’s${agree}`;
  const worst = others.reduce((most, one) => (one.ns > most.ns ? one : most));
  return `± ${durationNs(median(others.map(({ ns }) => ns)))} against rank 0’s, at most ± ${durationNs(worst.ns)} (rank ${worst.rank})${agree}`;
}

/** Of every rank, for a title: a line each. */
export function clockLines({ figures }) {
  const uncertainties = figures?.rank_clock_uncertainty_ns ?? [];
  return uncertainties.map((ns, rank) => `rank ${rank}: ${rank === 0 ? "the run’s clock" : ns === null ? "not compared yet" : `± ${durationNs(ns)}`}`).join("\n");
}
