/** Elements in one line; text is always text, never markup. */

/** `element("b", {class: "x", title: "…"}, "text", child)`; null and false children are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Sets text only when it differs, so that nothing is laid out anew for the same words. */
export function setText(target, text) {
  if (target && target.textContent !== text) target.textContent = text;
}

/** Calls `work` at most once every `leastMs` (a number, or what gives it as things stand), the last time included. */
export function throttled(leastMs, work) {
  let timer = 0;
  let lastMs = -Infinity;
  const run = () => {
    timer = 0;
    lastMs = performance.now();
    work();
  };
  return () => {
    if (!timer) timer = setTimeout(run, Math.max(0, lastMs + (leastMs.call ? leastMs() : leastMs) - performance.now()));
  };
}
