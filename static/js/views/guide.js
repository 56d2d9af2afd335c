/** The guide of a page to learn from: it marks the part of the run page that it speaks of, goes there, and can be closed. */

const PARTS = { timeline: '[data-part="frame"]', figures: ".run-now", loss: '[data-chart*="charts/loss"]' };

/** Does nothing on a page without a guide. */
export function bindGuide(root, panels) {
  const guide = root.querySelector('[data-part="guide"]');
  if (!guide) return;
  const { where } = guide.dataset;
  const part = PARTS[where] ? root.querySelector(PARTS[where]) : root.querySelector('[data-part="panels"]');
  part.classList.add("guided");
  const openPanel = () => (PARTS[where] ? null : panels.open(where));
  openPanel();

  guide.querySelector('[data-part="guide-show"]').addEventListener("click", () => {
    openPanel();
    part.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    const focusable = part.querySelector('[role="application"], [role="tab"][aria-selected="true"]');
    focusable?.focus({ preventScroll: true });
  });
  guide.querySelector('[data-part="guide-close"]').addEventListener("click", () => {
    guide.remove();
    part.classList.remove("guided");
    const address = new URL(location.href);
    address.searchParams.delete("learn");
    history.replaceState(history.state, "", address);
    root.querySelector("h1").closest("header").querySelector("button")?.focus();
  });
}
