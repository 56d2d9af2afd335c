/** The share dialog: a link may open at what is seen now. */

export function bindShareDialog(place) {
  const dialog = document.getElementById("share-dialog");
  if (!dialog) return;
  const choice = dialog.querySelector('[data-part="link-at-view"]');
  choice.hidden = false; // without scripts nobody knows what is seen
  dialog.querySelector(".run-make-link").addEventListener("submit", () => {
    const isWanted = choice.querySelector("input").checked;
    dialog.querySelector('[data-part="link-view"]').value = isWanted ? place.hash : "";
  });
}
