/** What the server tells every page behind the login, over one socket: "notices" (detail: unread, newest) and "runs" (the list changed). */

const GONE = 4404;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 30_000;

class News extends EventTarget {
  #attempts = 0;

  constructor() {
    super();
    this.#open();
  }

  #open() {
    const address = new URL("/ws/news/", location.href);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = new WebSocket(address);
    socket.onmessage = ({ data }) => {
      this.#attempts = 0;
      const { type, ...detail } = JSON.parse(data);
      this.dispatchEvent(new CustomEvent(type, { detail }));
    };
    socket.onclose = ({ code }) => {
      if (code === GONE) return; // logged out
      const longest = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempts++);
      setTimeout(() => this.#open(), longest * (0.5 + Math.random() / 2));
    };
  }
}

export const news = new News();
