/**
 * What people say of the run. The socket says that something changed; what it was is asked for, from where
 * this page has got to. Events: "change".
 */

import { readJson } from "../core/reading.js";

export class Comments extends EventTarget {
  /** `isOn`: whether this page sees them; `person`: who writes here, empty for who cannot. */
  constructor({ readBase, runId, isOn, person }) {
    super();
    Object.assign(this, { readBase, isOn, person, people: [] });
    this.api = `/api/v1/runs/${runId}/comments`;
    this.byId = new Map();
    this.through = 0;
    this.wanted = 0;
    this.asking = null;
  }

  /** Comments that stand for their threads, the newest first, each with its `replies`, the oldest first. */
  get threads() {
    const all = [...this.byId.values()].sort((one, other) => one.id - other.id);
    const threads = all.filter((one) => one.parent === null).map((one) => ({ ...one, replies: all.filter((reply) => reply.parent === one.id && !reply.is_deleted) }));
    return threads.filter((one) => !one.is_deleted || one.replies.length).reverse();
  }

  /** The run's comments have come to this revision. */
  changed(revision) {
    this.wanted = Math.max(this.wanted, revision);
    if (this.isOn && this.wanted > this.through && !this.asking) this.asking = this.#catchUp().finally(() => (this.asking = null));
    return this.asking;
  }

  async #catchUp() {
    try {
      while (this.through < this.wanted) {
        const { comments, through, people } = await readJson(`${this.readBase}comments.json?after=${this.through}`);
        for (const comment of comments) this.byId.set(comment.id, comment);
        this.people = people;
        if (through === this.through) this.wanted = through; // the page was told of more than there is
        this.through = through;
        this.dispatchEvent(new Event("change"));
      }
    } catch (error) {
      console.warn("Comments stay as they are:", error); // the next word of the socket tries again
    }
  }

  write(text, about, parent = null) {
    return this.#send("POST", this.api, { text, about, parent });
  }

  edit(id, text) {
    return this.#send("PATCH", `${this.api}/${id}`, { text });
  }

  remove(id) {
    return this.#send("DELETE", `${this.api}/${id}`);
  }

  /** Resolves to "" when it is done, else to what is wrong. */
  async #send(method, url, body = null) {
    const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value ?? "";
    try {
      const answer = await fetch(url, {
        method, headers: { "X-CSRFToken": token, "Content-Type": "application/json" }, body: body && JSON.stringify(body),
      });
      if (answer.ok) return "";
      const problem = await answer.json();
      return problem.errors?.map((error) => error.message).join("; ") || problem.title;
    } catch {
      return "The server does not answer; what you wrote is still here.";
    }
  }
}
