/** Stands in for reading.js in a page that was saved to a file: what views read lies in the page itself. */

export class Refused extends Error {
  constructor(address) {
    super(`${address} is not kept in this page`);
    this.words = "This is not kept in a saved page.";
  }
}

export async function readJson(address) {
  return JSON.parse(await readText(address));
}

export async function readBytes(address) {
  throw new Refused(address);
}

/** An answer is kept by its address; one that is not kept with its query is given as it is without. */
export async function readText(address) {
  const kept = [...document.querySelectorAll("template[data-kept]")];
  const of = (wanted) => kept.find((one) => one.dataset.kept === wanted);
  const found = of(address.replace(/\?$/, "")) ?? of(address.replace(/\?.*$/, ""));
  if (!found) throw new Refused(address);
  return found.content.textContent;
}
