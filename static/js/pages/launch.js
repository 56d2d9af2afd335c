// The launch form, checked while one types: what it would make is drawn, what can't work is said beside its field.

const PAUSE_MS = 10; // keys that come while the server is asked about one are asked about together
const form = document.getElementById("job");
const plan = document.getElementById("plan");
const verdict = document.getElementById("verdict");
const json = document.getElementById("json");
let timer = 0;
let asking = null;
let jsonIsTheirs = json.value !== json.defaultValue || Boolean(document.querySelector(".as-json[open]"));

async function check() {
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  try {
    const answer = await fetch(form.dataset.checkUrl, { method: "POST", body: new URLSearchParams(new FormData(form)), signal: mine.signal });
    if (answer.redirected) return location.reload(); // logged out meanwhile
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer; launching will check again.", "bad");
  } finally {
    if (asking === mine) asking = null;
  }
}

function show(found) {
  const complaints = new Map();
  for (const { field, message } of found.errors) complaints.set(field, [...(complaints.get(field) ?? []), message]);
  for (const field of form.querySelectorAll("[data-field]")) {
    complain(field, (complaints.get(field.dataset.field) ?? []).join(" "));
    complaints.delete(field.dataset.field);
  }
  const homeless = [...complaints.values()].flat();
  if (found.errors.length) {
    if (homeless.length) say(homeless.join(" "), "bad");
    else sayFirst(found.errors);
    plan.classList.add("stale");
    return;
  }
  say("This can run", "ok");
  showPlan(found.html);
  plan.classList.remove("stale");
  if (!jsonIsTheirs) json.value = found.json;
}

/** What stays as it is, is not drawn anew: it keeps what is scrolled, chosen or focused in it, and costs nothing. */
function showPlan(html) {
  const next = document.createElement("template");
  next.innerHTML = html;
  const parts = [...next.content.children];
  const shown = [...plan.children];
  shown.slice(parts.length).forEach((part) => part.remove());
  parts.forEach((part, at) => {
    if (at >= shown.length) plan.append(part);
    else if (!shown[at].isEqualNode(part)) shown[at].replaceWith(part);
  });
}

function complain(field, message) {
  const error = field.querySelector("[data-error]");
  error.textContent = message;
  error.hidden = !message;
  const input = field.querySelector("input, select, textarea");
  if (message) field.closest("details")?.setAttribute("open", "");
  if (message) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

function say(text, tone) {
  verdict.textContent = text;
  verdict.className = `small verdict-${tone}`;
}

/** What would not work may be off the screen: the first of it is said here too, with a way there. */
function sayFirst(errors) {
  const { field, message } = errors[0];
  const place = form.querySelector(`[data-field="${CSS.escape(field)}"]`);
  say(`: ${message}${errors.length > 1 ? `. ${errors.length - 1} more` : ""}`, "bad");
  const way = document.createElement("a");
  way.href = `#${place.querySelector("input, select, textarea").id}`;
  way.textContent = place.dataset.label;
  verdict.prepend(way);
}

/** A section that folds says which of its fields are not as they come. */
function sayChanged(section) {
  const fields = [...section.querySelectorAll("[data-field]")];
  const changed = fields.filter((field) => valueOf(field) !== field.dataset.usual).map((field) => field.dataset.label);
  section.querySelector("[data-changed]").textContent = changed.length ? `${changed.join(", ")} changed` : "as it comes";
}

function valueOf(field) {
  const input = field.querySelector("input, select, textarea");
  return input.type === "checkbox" ? (input.checked ? "on" : "") : input.value.trim();
}

form.addEventListener("input", (event) => {
  const section = event.target.closest("details.section");
  if (section) sayChanged(section);
  document.getElementById("refused")?.remove();
  clearTimeout(timer);
  timer = setTimeout(check, asking ? PAUSE_MS : 0);
});

// A second press while the first is on its way would launch twice.
for (const each of document.querySelectorAll('main form[method="post"]')) {
  each.addEventListener("submit", (event) => {
    if (each.dataset.sent) event.preventDefault();
    each.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => {
  for (const each of document.querySelectorAll("form[data-sent]")) delete each.dataset.sent;
});

const chosen = document.querySelector(".gallery [aria-current]");
if (chosen) chosen.closest(".gallery-groups").scrollTop = chosen.offsetTop - chosen.closest(".gallery-groups").offsetTop - 30;

// The gallery, filtered as one types: a preset stays in sight if it has every word.
const filter = document.getElementById("preset-filter");
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const begins = words.map((word) => new RegExp(`(?<![a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}`)); // "ring" is not in "bring"
  let count = 0;
  for (const group of document.querySelectorAll("[data-group]")) {
    const presets = [...group.querySelectorAll("[data-preset]")];
    for (const one of presets) one.hidden = !begins.every((word) => word.test(one.dataset.preset));
    const left = presets.filter((one) => !one.hidden).length;
    group.hidden = left === 0;
    document.querySelector(`.gallery-jumps [href="#${group.id}"]`).parentElement.hidden = left === 0;
    count += left;
  }
  document.getElementById("preset-count").textContent = words.length ? `${count} ${count === 1 ? "preset" : "presets"}` : "";
});

json.addEventListener("input", () => {
  jsonIsTheirs = true;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  const at = document.activeElement?.form ?? form;
  at.requestSubmit(at.querySelector("button.primary"));
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.textContent.trim());
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(text); // no right to the clipboard: select it, so that Ctrl+C does it
  }
});

document.getElementById("refused")?.focus();
form.querySelector("[aria-invalid]")?.focus();
