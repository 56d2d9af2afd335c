/** On every page behind the login: how many notices are unread; a new one is shown by the browser, where it is allowed to. */

import { news } from "../core/news.js";

const bell = document.getElementById("bell");
const count = bell.querySelector('[data-part="unread"]');
const button = document.getElementById("allow-notices");
let newestShown = null; // what was there when the page opened is not new

news.addEventListener("notices", ({ detail: { unread, newest } }) => {
  count.textContent = unread > 99 ? "99+" : String(unread);
  count.hidden = unread === 0;
  bell.setAttribute("aria-label", unread ? `Notices, ${unread} unread` : "Notices");
  if (newestShown !== null && newest && newest.id > newestShown) show(newest);
  newestShown = Math.max(newestShown ?? 0, newest?.id ?? 0);
});

function show({ id, title, words, path }) {
  if (!("Notification" in window) || Notification.permission !== "granted" || document.visibilityState === "visible") return;
  const shown = new Notification(title, { body: words, tag: `lockstep-${id}` }); // the tag: several pages show it once
  shown.addEventListener("click", () => {
    window.focus();
    location.href = path;
  });
}

function showAllowed() {
  button.hidden = !("Notification" in window) || Notification.permission !== "default";
}

if (button) {
  showAllowed();
  button.addEventListener("click", async () => {
    await Notification.requestPermission();
    showAllowed();
  });
}
