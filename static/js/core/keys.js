/** The page's keys: typed once, obeyed everywhere but in fields and dialogs, and listed by the same table. */

const isTyping = (target) => target instanceof Element && target.closest("input, textarea, select, [contenteditable], dialog[open]") !== null;

/**
 * `bindings`: `{keys: ["w"], words, press(event), release?(event), only?: element}`. A binding with
 * `only` is obeyed while the focus is in that element. Returns a function that unbinds.
 */
export function bindKeys(bindings, target = document) {
  const held = new Map();
  const find = (event) => bindings.find((binding) => binding.keys.includes(event.key.length === 1 ? event.key.toLowerCase() : event.key)
    && (!binding.only || binding.only.contains(document.activeElement)));

  const down = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    const binding = find(event);
    if (!binding) return;
    event.preventDefault();
    if (binding.release) {
      if (held.has(event.code)) return;
      held.set(event.code, binding);
    }
    binding.press(event);
  };
  const up = (event) => {
    held.get(event.code)?.release(event);
    held.delete(event.code);
  };
  const letGo = () => {
    for (const binding of held.values()) binding.release();
    held.clear();
  };
  target.addEventListener("keydown", down);
  target.addEventListener("keyup", up);
  window.addEventListener("blur", letGo);
  return () => {
    target.removeEventListener("keydown", down);
    target.removeEventListener("keyup", up);
    window.removeEventListener("blur", letGo);
  };
}
