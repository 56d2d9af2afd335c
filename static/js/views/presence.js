/** Who else looks at the run; one shows her view, and the others are taken along until they go their own way. */

import { element, setText, throttled } from "../core/dom.js";
import { plural } from "../core/format.js";
import { CHANGES } from "./place.js";

const LEAD_MS = 150;
const MOST_FACES = 5;
/** Keys that change what is seen: whoever presses one goes her own way. */
const OWN_WAY_KEYS = new Set("wasdf0l[]ngzox");

export class Presence {
  constructor(part, timeline, place, { send, isAllHere }) {
    Object.assign(this, { part, place, send, isAllHere });
    this.me = null;
    this.isLeading = false;
    this.lead = null;
    this.isFollowing = true;
    const tell = throttled(LEAD_MS, () => this.isLeading && this.send({ type: "lead", view: this.place.hash }));
    for (const name of CHANGES) timeline.addEventListener(name, tell);
    part("lead")?.addEventListener("click", () => this.#setLeading(!this.isLeading));
    part("led-toggle").addEventListener("click", () => this.#setFollowing(!this.isFollowing));
    const { frame } = timeline.parts;
    frame.addEventListener("pointerdown", () => this.#setFollowing(false));
    frame.addEventListener("input", () => this.#setFollowing(false));
    frame.addEventListener("wheel", (event) => (event.ctrlKey || event.metaKey || event.shiftKey) && this.#setFollowing(false), { passive: true });
    document.addEventListener("keydown", ({ key, target }) => {
      if (OWN_WAY_KEYS.has(key.toLowerCase()) && !target.closest("input, textarea, select")) this.#setFollowing(false);
    });
  }

  hear(message) {
    if (message.type === "people") this.#showPeople(message);
    else if (message.type === "lead") this.#hearLead(message.lead);
  }

  #showPeople({ people, count, me }) {
    this.me = me;
    const faces = people.slice(0, MOST_FACES).map((one) => face(one, one.key === me));
    const more = count - people.slice(0, MOST_FACES).reduce((sum, one) => sum + (one.is_guest ? one.pages : 1), 0);
    if (more > 0) faces.push(element("li", { class: "face face-more", title: people.slice(MOST_FACES).map(nameOf).join(", ") }, people.length ? `+${more}` : String(more)));
    this.part("people").replaceChildren(...faces);
    this.part("people").setAttribute("aria-label", `${plural(count, "person looks", "people look")} at this run`);
    this.#showLead();
  }

  #hearLead(lead) {
    const isOther = lead && (lead.key !== this.me || !this.me);
    const wasShown = this.lead !== null;
    this.lead = isOther ? lead : null;
    if (isOther && this.isLeading) this.isLeading = false; // somebody else took the lead
    if (isOther && !wasShown) this.isFollowing = true;
    if (this.lead && this.isFollowing) this.place.go(this.lead.view, this.isAllHere());
    this.#showLead();
  }

  #setLeading(isLeading) {
    this.isLeading = isLeading;
    this.send({ type: "lead", view: isLeading ? this.place.hash : null });
    this.#showLead();
  }

  #setFollowing(isFollowing) {
    if (!this.lead || isFollowing === this.isFollowing) return;
    this.isFollowing = isFollowing;
    if (isFollowing) this.place.go(this.lead.view, this.isAllHere());
    this.#showLead();
  }

  #showLead() {
    const button = this.part("lead");
    button?.classList.toggle("on", this.isLeading);
    button?.setAttribute("aria-pressed", String(this.isLeading));
    this.part("led").hidden = !this.lead;
    if (!this.lead) return;
    const who = this.lead.name || "Somebody";
    setText(this.part("led-words"), this.isFollowing ? `${who} shows you around: your timeline goes along.` : `${who} shows others around.`);
    setText(this.part("led-toggle"), this.isFollowing ? "Go my own way" : "Go along");
  }
}

const nameOf = ({ name, is_guest: isGuest, pages }) => (isGuest ? `guest (${name})${pages > 1 ? ` ×${pages}` : ""}` : name);

function face(one, isMe) {
  const words = `${nameOf(one)}${isMe ? ", you" : ""}${one.leads ? ", shows the others around" : ""}`;
  return element("li", { class: `face${one.leads ? " face-leads" : ""}${one.is_guest ? " face-guest" : ""}`, title: words },
    element("span", { "aria-hidden": "true" }, initials(one)), element("span", { class: "visually-hidden" }, words));
}

function initials({ name, is_guest: isGuest }) {
  if (isGuest) return "◌";
  const words = name.split(/[\s._-]+/).filter(Boolean);
  return (words.length > 1 ? words[0][0] + words[1][0] : name.slice(0, 2)).toUpperCase();
}
