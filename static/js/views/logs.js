/** What a rank printed, read when asked for, when the section is first seen, and when the run has ended. */

export class Logs {
  constructor({ text, rank, again }, readBase) {
    Object.assign(this, { text, rank, readBase });
    rank.addEventListener("change", () => this.read());
    again.addEventListener("click", () => this.read());
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      this.read();
    });
    seen.observe(text);
    this.asked = 0;
  }

  async read() {
    const asked = ++this.asked;
    this.text.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(`${this.readBase}logs/${this.rank.value}/`, { headers: { Accept: "text/plain" } });
      const words = answer.ok ? await answer.text() : `The log cannot be read (${answer.status}).`;
      if (asked === this.asked) this.#show(words);
    } catch {
      if (asked === this.asked) this.#show("The server does not answer.");
    }
  }

  #show(words) {
    this.text.textContent = words || "This rank has printed nothing.";
    this.text.scrollTop = this.text.scrollHeight;
    this.text.removeAttribute("aria-busy");
  }

  showRank(rank) {
    this.rank.value = String(rank);
    this.read();
  }
}
