/** What views read from the server, beside the live stream. */

/** The answer's JSON. Throws where the server refuses or does not answer; `signal` gives it up. */
export async function readJson(address, signal) {
  return (await answer(address, "application/json", signal)).json();
}

export async function readText(address) {
  return (await answer(address, "text/plain")).text();
}

/** `signal` gives it up. */
export async function readBytes(address, signal) {
  return (await answer(address, "application/octet-stream", signal)).arrayBuffer();
}

async function answer(address, kind, signal) {
  const response = await fetch(address, { headers: { Accept: kind }, signal });
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  throw new Refused(address, response.status, error);
}

/** The server answered, but not with what was asked for; `words` are its reason, where it gave one. */
export class Refused extends Error {
  constructor(address, status, words = `The server answered ${status}.`) {
    super(`${address} answered ${status}`);
    this.status = status;
    this.words = words;
  }
}
