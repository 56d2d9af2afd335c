/**
 * One animation-frame loop for the page: whoever has something to draw asks for it by name, and all
 * that was asked for is drawn in one frame, in the order of registration. A painter that returns true
 * is called again in the next frame (an animation, or work that did not fit its budget).
 */
export class Scheduler {
  #painters = new Map();
  #asked = new Set();
  #waiting = false;

  constructor(requestFrame = (callback) => window.requestAnimationFrame(callback)) {
    this.requestFrame = requestFrame;
  }

  register(name, paint) {
    this.#painters.set(name, paint);
  }

  ask(name) {
    this.#asked.add(name);
    this.#wait();
  }

  #wait() {
    if (this.#waiting) return;
    this.#waiting = true;
    this.requestFrame((nowMs) => this.#run(nowMs));
  }

  #run(nowMs) {
    this.#waiting = false;
    const asked = this.#asked;
    this.#asked = new Set();
    for (const [name, paint] of this.#painters) {
      if (asked.has(name) && paint(nowMs) === true) this.#asked.add(name);
    }
    if (this.#asked.size) this.#wait();
  }
}
