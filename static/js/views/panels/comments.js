/** What people say of the run, thread by thread, and the form to say something oneself. */

import { element, setText } from "../../core/dom.js";
import { spotPlace, spotWords, spotsNow } from "../spots.js";

const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function mount(body, { comments, timeline, place }) {
  const list = element("ul", { class: "threads", "data-part": "threads" });
  const none = element("p", { class: "muted", "data-part": "no-comments" });
  const begin = comments.person ? composer(comments, timeline) : null;
  body.replaceChildren(...(begin ? [begin.form] : []), none, list);
  const forms = new Map(); // of answers and changes that somebody is writing, kept when the list is drawn anew

  const open = (key, make) => {
    if (!forms.has(key)) forms.set(key, make(() => { forms.delete(key); draw(); }));
    draw();
    forms.get(key).querySelector("textarea").focus();
  };

  function draw() {
    const focused = document.activeElement;
    setText(none, comments.threads.length ? "" : "Nobody has said anything yet.");
    none.hidden = comments.threads.length > 0;
    list.replaceChildren(...comments.threads.map((thread) => threadOf(thread)));
    if (focused instanceof HTMLElement && list.contains(focused)) focused.focus({ preventScroll: true });
  }

  function threadOf(thread) {
    const answer = forms.get(`answer ${thread.id}`);
    return element(
      "li", { class: "thread card", id: `thread-${thread.id}`, tabindex: "-1" },
      said(thread), ...thread.replies.map(said),
      comments.person && !answer && element("button", {
        type: "button", class: "quiet", onclick: () => open(`answer ${thread.id}`, (close) => small("Answer", "", (text) => comments.write(text, null, thread.id), close)),
      }, "Answer"),
      answer,
    );
  }

  function said(comment) {
    const { about, id } = comment;
    const words = comment.parent === null ? spotWords(about) : "";
    const edited = forms.get(`edit ${id}`);
    return element(
      "article", { class: "said", "aria-label": `${comment.author ?? "Somebody"}, ${DAY.format(comment.made)}` },
      element(
        "header", {},
        element("b", {}, comment.author ?? "somebody"),
        element("time", { datetime: new Date(comment.made).toISOString() }, DAY.format(comment.made) + (comment.edited && !comment.is_deleted ? ", edited" : "")),
        words && spotOf(about, words),
        element("span", { class: "spacer" }),
        comment.is_own && !comment.is_deleted && !edited && element(
          "span", { class: "said-buttons" },
          element("button", { type: "button", class: "quiet", onclick: () => open(`edit ${id}`, (close) => small("Change", comment.text, (text) => comments.edit(id, text), close)) }, "Edit"),
          element("button", { type: "button", class: "quiet", onclick: ({ target }) => removeIfSure(target, id) }, "Delete"),
        ),
      ),
      edited ?? (comment.is_deleted ? element("p", { class: "muted" }, "Deleted by its author.") : rendered(comment.html)),
    );
  }

  function spotOf(about, words) {
    const spot = spotPlace(about);
    return spot === null ? element("span", { class: "chip" }, words)
      : element("button", { type: "button", class: "chip", title: "Show it on the timeline", onclick: () => place.visit(spot, true) }, words);
  }

  /** The first press asks, the second does it. */
  async function removeIfSure(button, id) {
    if (button.dataset.asked) {
      const trouble = await comments.remove(id);
      if (trouble) button.textContent = trouble;
      return;
    }
    button.dataset.asked = "yes";
    button.textContent = "Delete it?";
    button.addEventListener("blur", () => { delete button.dataset.asked; button.textContent = "Delete"; }, { once: true });
  }

  comments.addEventListener("change", draw);
  draw();
  return {
    update: () => begin?.offer(),
    begin: () => begin?.focus(),
    show(id) {
      const thread = document.getElementById(`thread-${id}`);
      thread?.scrollIntoView({ block: "center" });
      thread?.focus({ preventScroll: true });
    },
  };
}

/** HTML that the server made of Markdown: safe to show, see dashboard/markdown.py. */
function rendered(html) {
  const made = element("div", { class: "said-words" });
  made.innerHTML = html;
  return made;
}

function composer(comments, timeline) {
  const about = element("select", { "aria-label": "What it is about" });
  let spots = [];
  const words = textarea("Say something about the run or a spot in it");
  const form = formOf("Comment", words, async () => comments.write(words.value, spots[about.selectedIndex][1]), () => { words.value = ""; });
  form.prepend(element("label", { class: "comment-about" }, "About", about));
  form.classList.add("comment-begin");
  form.append(element("p", { class: "help" }, "Markdown; @name tells a teammate. Choose a range or a span on the timeline to talk about that."));
  const offer = () => {
    spots = spotsNow(timeline);
    const wanted = spots.map(([label]) => label);
    if (wanted.join("\n") === [...about.options].map((option) => option.textContent).join("\n")) return;
    about.replaceChildren(...wanted.map((label) => element("option", {}, label)));
  };
  for (const name of ["select", "range"]) timeline.addEventListener(name, offer);
  about.addEventListener("pointerdown", offer);
  about.addEventListener("focus", offer);
  offer();
  return { form, offer, focus: () => { offer(); words.focus(); } };
}

function small(verb, text, send, close) {
  const words = textarea(`${verb} in Markdown`, text);
  const form = formOf(verb, words, () => send(words.value), close);
  form.querySelector(".comment-buttons").append(element("button", { type: "button", class: "quiet", onclick: close }, "Never mind"));
  return form;
}

function textarea(label, text = "") {
  const made = element("textarea", { rows: "3", maxlength: "4000", required: true, "aria-label": label, placeholder: label });
  made.value = text;
  made.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) made.form.requestSubmit();
  });
  return made;
}

function formOf(verb, words, send, done) {
  const error = element("p", { class: "error", role: "alert", hidden: true });
  const button = element("button", { type: "submit", class: "primary" }, verb);
  return element("form", {
    class: "comment-form",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      const trouble = await send();
      button.disabled = false;
      error.hidden = !trouble;
      setText(error, trouble);
      if (!trouble) done();
    },
  }, words, error, element("div", { class: "comment-buttons" }, button));
}
