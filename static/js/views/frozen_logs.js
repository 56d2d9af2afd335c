/** Stands in for logs.js in a page that was saved to a file: what the ranks printed lies in the page itself. */

export class Logs {
  constructor({ text, rank, again }) {
    Object.assign(this, { text, rank });
    again.hidden = true;
    rank.addEventListener("change", () => this.read());
    this.read();
  }

  read() {
    const kept = document.querySelector(`template[data-log="${this.rank.value}"]`);
    this.text.textContent = kept?.content.textContent ?? "This rank has printed nothing.";
    this.text.scrollTop = this.text.scrollHeight;
  }

  showRank(rank) {
    this.rank.value = String(rank);
    this.read();
  }
}
