/** Dialogs that open by a button with `data-open`, and buttons that copy a field. */

export function bindDialogs(root = document) {
  for (const button of root.querySelectorAll("[data-open]")) {
    button.addEventListener("click", () => document.getElementById(button.dataset.open).showModal());
  }
  for (const dialog of root.querySelectorAll("dialog")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close(); // the backdrop
    });
    if (dialog.hasAttribute("data-opens-at-once")) dialog.showModal();
  }
  for (const button of root.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
}

async function copy(button) {
  const field = document.getElementById(button.dataset.copy);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    document.execCommand("copy"); // pages without https have no clipboard of their own
  }
  const words = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = words), 1600);
}
