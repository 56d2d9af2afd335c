/**
 * What one types to find spans: `kind:all_reduce dur:>5ms rank:3 mb:2 step:10-20 stage:1 peer:0 lane:compute size:>1MB
 * name:text`. Words without a field are looked for in labels, kinds, names and groups. All of it must hold. The server asks
 * the same of what the page does not hold (trainer/trace/span_query.py); a test runs the same queries through both.
 */

import { ALL_KINDS, KIND, KINDS, KIND_WORD, LANES, labelOf } from "../core/kinds.js";

const UNIT_NS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 60e9 };
const UNIT_BYTES = { b: 1, kb: 1e3, mb: 1e6, gb: 1e9 };
const LANE_NAMES = ["compute", "collective", "p2p", "host"];
const NUMBER_FIELDS = { step: "step", mb: "micro_batch", stage: "stage", peer: "peer", seq: "sequence" };
const MEASURE_FIELDS = { dur: ["duration_ns", UNIT_NS, "ns", "a length such as >5ms or 2ms-4ms"], size: ["bytes", UNIT_BYTES, "b", "a size such as >1MB"] };

export const FIELDS = ["kind:", "dur:", "rank:", "mb:", "step:", "stage:", "peer:", "lane:", "size:", "name:"];

const plain = (words) => words.toLowerCase().replace(/[^a-z0-9]+/g, "");

/** `{holds(lane), test(chunk, row), error}`; without a query or with an error `test` is null. */
export function parseQuery(text, trace) {
  const made = { lanes: [], kinds: [], tests: [] };
  try {
    for (const part of text.trim().split(/\s+/).filter(Boolean)) addPart(made, part, trace);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { test: null, holds: () => false, error: error.message };
  }
  if (!text.trim()) return { test: null, holds: () => false, error: "" };
  const { kinds, lanes, tests } = made;
  return {
    error: "",
    holds: (lane) => lanes.every((each) => each(lane)) && kinds.every((flags) => lane.kinds.some((kind) => flags[kind])),
    test: (chunk, row) => kinds.every((flags) => flags[chunk.kind[row]] === 1) && tests.every((each) => each(chunk, row)),
  };
}

function addPart(made, part, trace) {
  const at = part.indexOf(":");
  const field = at > 0 ? part.slice(0, at).toLowerCase() : "";
  const value = part.slice(at + 1);
  if (at > 0 && !value) throw new RangeError(`${field}: needs something after it`);
  if (!field) made.tests.push(wordTest(part.toLowerCase(), trace));
  else if (field === "kind") made.kinds.push(kindsOf(value));
  else if (field === "lane") made.lanes.push(lanesOf(value));
  else if (field === "rank") made.lanes.push(rankTest(numbers(value, field)));
  else if (field === "name") made.tests.push(nameTest(value.toLowerCase(), trace));
  else if (Object.hasOwn(NUMBER_FIELDS, field)) addNumber(made, NUMBER_FIELDS[field], numbers(value, field));
  else if (Object.hasOwn(MEASURE_FIELDS, field)) addMeasure(made, field, value);
  else throw new RangeError(`${field}: is no field; there are ${FIELDS.join(" ")}`);
}

const rankTest = (isIn) => (lane) => isIn(lane.rank);

function addNumber(made, column, isIn) {
  made.tests.push((chunk, row) => isIn(chunk[column][row]));
}

function kindsOf(value) {
  const wanted = value.split(",").map(plain);
  const flags = new Uint8Array(KINDS);
  for (const kind of ALL_KINDS) {
    const [name] = Object.entries(KIND).find(([, number]) => number === kind);
    if (wanted.some((each) => each && (plain(name).startsWith(each) || plain(KIND_WORD[kind]).startsWith(each)))) flags[kind] = 1;
  }
  if (!flags.some(Boolean)) throw new RangeError(`kind: "${value}" is none of ${Object.keys(KIND).map((name) => name.toLowerCase()).join(", ")}`);
  return flags;
}

function lanesOf(value) {
  const found = LANE_NAMES.map((name, lane) => (name.startsWith(value.toLowerCase()) ? lane : -1)).filter((lane) => lane >= 0 && lane < LANES);
  if (!found.length) throw new RangeError(`lane: "${value}" is none of ${LANE_NAMES.join(", ")}`);
  return ({ lane }) => found.includes(lane);
}

/** "3", "0-3" and "1,5,7-9" as a test of a number. */
function numbers(value, field) {
  const ranges = value.split(",").map((each) => {
    const found = /^(\d+)(?:-(\d+))?$/.exec(each);
    if (!found) throw new RangeError(`${field}: takes numbers such as 3, 0-3 or 1,4; "${value}" is none`);
    return [Number(found[1]), Number(found[2] ?? found[1])];
  });
  return (number) => ranges.some(([low, high]) => number >= low && number <= high);
}

function addMeasure(made, field, value) {
  const [column, units, unit, example] = MEASURE_FIELDS[field];
  const measure = (text) => {
    const found = /^([\d.]+)([a-zµ]*)$/i.exec(text);
    const asked = found && (found[2] || unit).toLowerCase();
    if (!found || !Object.hasOwn(units, asked) || !Number.isFinite(Number(found[1]))) throw new RangeError(`${field}: takes ${example}; "${value}" is none`);
    return Number(found[1]) * units[asked];
  };
  const found = /^(>=?|<=?)?([^<>-]+)(?:-(.+))?$/.exec(value);
  if (!found || (found[1] && found[3])) throw new RangeError(`${field}: takes ${example}; "${value}" is none`);
  const [, sign, first, second] = found;
  const amount = measure(first);
  const low = sign?.startsWith("<") ? 0 : amount; // a size below 0 says that there is none
  const high = second ? measure(second) : sign?.startsWith(">") ? Infinity : amount;
  made.tests.push((chunk, row) => {
    const it = chunk[column][row];
    return (sign === ">" ? it > low : it >= low) && (sign === "<" ? it < high : it <= high);
  });
}

/** Strings are few and come with time: each is looked at once. */
function stringTest(trace, word) {
  const known = [];
  return (number) => (known[number] ??= trace.strings[number].toLowerCase().includes(word));
}

function nameTest(word, trace) {
  const isIn = stringTest(trace, word);
  return (chunk, row) => isIn(chunk.name[row]) || isIn(chunk.group[row]);
}

function wordTest(word, trace) {
  const isIn = stringTest(trace, word);
  return (chunk, row) => {
    const kind = chunk.kind[row];
    return labelOf(kind, chunk.micro_batch[row]).toLowerCase() === word || KIND_WORD[kind].includes(word) || isIn(chunk.name[row]) || isIn(chunk.group[row]);
  };
}
