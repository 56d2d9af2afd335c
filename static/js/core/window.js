// Reads a window of a run as dashboard/live/window_message.py writes it: cells, or the spans themselves.

import { BrokenBytes, decodeFrame } from "./frame.js";

const MAGIC = 0x31574b4c; // "LKW1"
const HEAD_BYTES = 64;
const CELLS = 1;
const SPANS = 2;

const padded = (bytes) => bytes + (-bytes & 7);

/**
 * `{fromNs, cellNs, count, settledNs, cells, frames}`: `count` cells from `fromNs` on, and either `cells`, as
 * `{lanes, kind, ofKind, coverage}` whose planes are views into `buffer`, a lane after the other, or decoded `frames`.
 * Up to `settledNs` no answer will hold more.
 */
export function decodeWindow(buffer) {
  if (buffer.byteLength < HEAD_BYTES) throw new BrokenBytes(`${buffer.byteLength} bytes are fewer than a window's head`);
  const head = new DataView(buffer, 0, HEAD_BYTES);
  if (head.getUint32(0, true) !== MAGIC) throw new BrokenBytes("these bytes do not begin as a window does");
  const form = head.getUint32(4, true);
  const lanes = head.getUint32(8, true);
  const count = head.getUint32(12, true);
  const window = {
    fromNs: head.getFloat64(16, true), cellNs: head.getFloat64(24, true), count, settledNs: head.getFloat64(40, true), cells: null, frames: null,
  };
  if (form === CELLS) window.cells = cellsOf(buffer, lanes, count);
  else if (form === SPANS) window.frames = framesOf(buffer, head.getUint32(36, true));
  else throw new BrokenBytes(`a window of form ${form} is not of this version`);
  return window;
}

function cellsOf(buffer, lanes, count) {
  let at = HEAD_BYTES;
  const next = (Type, length) => {
    const end = at + length * Type.BYTES_PER_ELEMENT;
    if (end > buffer.byteLength) throw new BrokenBytes(`a window of ${lanes} lanes by ${count} cells is cut off`);
    const column = new Type(buffer, at, length);
    at = padded(end);
    return column;
  };
  return {
    lanes: next(Uint32Array, lanes), kind: next(Uint8Array, lanes * count), ofKind: next(Uint8Array, lanes * count),
    coverage: next(Uint8Array, lanes * count),
  };
}

function framesOf(buffer, announced) {
  const frames = [];
  for (let at = HEAD_BYTES; at < buffer.byteLength; at += frames.at(-1).frameBytes) frames.push(decodeFrame(buffer, at));
  if (frames.length !== announced) throw new BrokenBytes(`${announced} frames were announced, ${frames.length} came`);
  return frames;
}
