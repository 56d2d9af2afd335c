/** What a reload and a shared address keep of a view, behind the #: range, chosen span, arrangement of lanes, search. */

const flag = (value) => value === "1";

/**
 * `{range: [fromNs, toNs] | null, span: {rank, lane, startNs} | null, by, folded, isSorted, isBare, search}`; what cannot be
 * read is left out.
 */
export function readAddress(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (name, count, separator) => {
    const parts = (fields.get(name) ?? "").split(separator).map(Number);
    return parts.length === count && parts.every(Number.isFinite) && fields.get(name) !== "" ? parts : null;
  };
  const range = numbers("t", 2, ",");
  const span = numbers("span", 3, ",");
  return {
    range: range && range[1] > range[0] ? range : null,
    span: span ? { rank: span[0], lane: span[1], startNs: span[2] } : null,
    by: fields.get("by") ?? "",
    folded: (fields.get("fold") ?? "").split(",").filter(Boolean),
    isSorted: flag(fields.get("latest")),
    isBare: flag(fields.get("bare")),
    search: fields.get("q") ?? "",
  };
}

/** Whether what stands behind the # is a view, and not the place of something in the page. */
export const isView = (hash) => /^#(t|span|by|fold|latest|bare|q)=/.test(hash);

/** The same as text, without the #. */
export function addressOf({ range, span, by, folded, isSorted, isBare, search }) {
  const parts = [];
  if (range) parts.push(`t=${range.map((ns) => Math.round(ns)).join(",")}`);
  if (span) parts.push(`span=${span.rank},${span.lane},${span.startNs}`);
  if (by) parts.push(`by=${by}`);
  if (folded.length) parts.push(`fold=${folded.join(",")}`);
  if (isSorted) parts.push("latest=1");
  if (isBare) parts.push("bare=1");
  if (search) parts.push(`q=${encodeURIComponent(search)}`);
  return parts.join("&");
}

export function writeAddress(address) {
  const wanted = address ? `#${address}` : "";
  if (wanted !== location.hash) history.replaceState(history.state, "", wanted || location.pathname + location.search);
}
