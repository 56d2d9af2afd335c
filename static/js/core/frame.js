// Reads the bytes that trainer/trace/frame.py writes: one rank's flush, as typed views without a copy.
// Both are held to the same golden bytes. Numbers are little-endian, as is every machine with a browser.

const FRAME_MAGIC = 0x31464b4c; // "LKF1"
const BATCH_MAGIC = 0x31424b4c; // "LKB1"
const HEADER_BYTES = 96;

// In the order of the bytes, widest first; each column is padded to 8 bytes.
const SPAN_COLUMNS = [
  ["start_ns", Float64Array], ["duration_ns", Float64Array], ["bytes", Float64Array],
  ["step", Int32Array], ["sequence", Int32Array], ["peer", Int32Array],
  ["micro_batch", Int16Array], ["stage", Int16Array], ["name", Uint16Array], ["group", Uint16Array],
  ["kind", Uint8Array], ["lane", Uint8Array],
];
const COUNTER_COLUMNS = [["time_ns", Float64Array], ["value", Float64Array], ["step", Int32Array], ["name", Uint16Array]];
const MARK_COLUMNS = [["time_ns", Float64Array], ["step", Int32Array], ["kind", Uint16Array], ["text", Uint16Array]];

const text = new TextDecoder("utf-8", { fatal: true });

/** The bytes are not a whole frame, or batch, of this version. */
export class BrokenBytes extends Error {}

/**
 * The frame at `byteOffset`, a multiple of 8. Its columns are views into `buffer`; times are
 * nanoseconds on the run's clock; -1 in step, micro_batch, stage, sequence and peer: does not apply.
 */
export function decodeFrame(buffer, byteOffset = 0) {
  if (byteOffset % 8) throw new BrokenBytes(`a frame begins at a multiple of 8, not at ${byteOffset}`);
  const available = buffer.byteLength - byteOffset;
  if (available < HEADER_BYTES) throw new BrokenBytes(`${available} bytes are fewer than a header's ${HEADER_BYTES}`);
  const head = new DataView(buffer, byteOffset, HEADER_BYTES);
  if (head.getUint32(0, true) !== FRAME_MAGIC) throw new BrokenBytes("these bytes do not begin as a frame does");
  const frameBytes = head.getUint32(16, true);
  const stringsBytes = head.getUint32(20, true);
  const rows = [head.getUint32(24, true), head.getUint32(28, true), head.getUint32(32, true)];
  const expected = HEADER_BYTES + tableBytes(SPAN_COLUMNS, rows[0]) + tableBytes(COUNTER_COLUMNS, rows[1])
    + tableBytes(MARK_COLUMNS, rows[2]) + padded(stringsBytes);
  if (frameBytes !== expected || frameBytes > available) {
    throw new BrokenBytes(`${available} bytes are there, the header says ${frameBytes}, its counts ${expected}`);
  }
  let at = byteOffset + HEADER_BYTES;
  const table = (layout, count) => {
    const columns = { length: count };
    for (const [name, Type] of layout) {
      columns[name] = new Type(buffer, at, count);
      at += padded(count * Type.BYTES_PER_ELEMENT);
    }
    return columns;
  };
  const spans = table(SPAN_COLUMNS, rows[0]);
  const counters = table(COUNTER_COLUMNS, rows[1]);
  const marks = table(MARK_COLUMNS, rows[2]);
  return {
    rank: head.getUint32(4, true),
    sequence: Number(head.getBigUint64(8, true)),
    frameBytes,
    spans, counters, marks,
    strings: parsed(new Uint8Array(buffer, at, stringsBytes), "the strings of a frame"),
    spansBefore: Number(head.getBigUint64(40, true)),
    spansDropped: Number(head.getBigUint64(48, true)),
    clockOffsetNs: head.getFloat64(56, true),
    clockUncertaintyNs: head.getFloat64(64, true),
    writtenNs: head.getFloat64(72, true),
    final: head.getUint32(36, true) !== 0,
  };
}

/** One answer to a pull: where the next begins, what happened, and frames. */
export function decodeBatch(buffer) {
  if (buffer.byteLength < 8) throw new BrokenBytes(`${buffer.byteLength} bytes are fewer than a batch's head`);
  const head = new DataView(buffer);
  if (head.getUint32(0, true) !== BATCH_MAGIC) throw new BrokenBytes("these bytes do not begin as a batch does");
  const metaBytes = head.getUint32(4, true);
  if (metaBytes % 8 || 8 + metaBytes > buffer.byteLength) throw new BrokenBytes(`a meta of ${metaBytes} bytes does not fit`);
  const meta = parsed(new Uint8Array(buffer, 8, metaBytes), "the meta of a batch");
  const frames = [];
  for (let at = 8 + metaBytes; at < buffer.byteLength; at += frames.at(-1).frameBytes) frames.push(decodeFrame(buffer, at));
  if (frames.length !== meta.frames) throw new BrokenBytes(`${meta.frames} frames were announced, ${frames.length} came`);
  return { cursor: meta.cursor, events: meta.events, complete: meta.complete, merged: meta.merged === true, frames };
}

function parsed(bytes, what) {
  try {
    return JSON.parse(text.decode(bytes));
  } catch (error) {
    throw new BrokenBytes(`${what} cannot be read: ${error.message}`);
  }
}

function padded(size) {
  return Math.ceil(size / 8) * 8;
}

function tableBytes(layout, rows) {
  return layout.reduce((sum, [, Type]) => sum + padded(rows * Type.BYTES_PER_ELEMENT), 0);
}
