/**
 * A checksum of the spans held that does not depend on their order, to compare with what the store
 * holds. Per span, in unsigned arithmetic modulo 2^32, with low(x) and high(x) the 32-bit halves of
 * the whole nanoseconds or bytes:
 *
 *   h = 17
 *   for v in low(start), high(start), low(duration), low(bytes), step, sequence, peer, micro_batch,
 *            stage, kind, lane:
 *     h = (h xor v) × 2654435761;  h = h xor (h >> 15)
 *
 * and per rank the sum of h, modulo 2^32, beside the count.
 */
export function spanDigest(trace) {
  return trace.ranks.map((lanes) => {
    let spans = 0;
    let sum = 0;
    for (const lane of lanes) {
      for (const chunk of lane.chunks) {
        for (let row = 0; row < chunk.spans; row++) sum = (sum + hashOf(chunk, row, lane.lane)) >>> 0;
        spans += chunk.spans;
      }
    }
    return { spans, sum };
  });
}

const TWO_32 = 2 ** 32;
const low = (value) => Math.floor(value) % TWO_32 | 0;
const high = (value) => Math.floor(Math.floor(value) / TWO_32) | 0;

function hashOf(chunk, row, lane) {
  let hash = 17;
  hash = mix(hash, lowOf(chunk.start_ns[row]));
  hash = mix(hash, high(chunk.start_ns[row]));
  hash = mix(hash, lowOf(chunk.duration_ns[row]));
  hash = mix(hash, lowOf(chunk.bytes[row]));
  hash = mix(hash, chunk.step[row]);
  hash = mix(hash, chunk.sequence[row]);
  hash = mix(hash, chunk.peer[row]);
  hash = mix(hash, chunk.micro_batch[row]);
  hash = mix(hash, chunk.stage[row]);
  hash = mix(hash, chunk.kind[row]);
  return mix(hash, lane) >>> 0;
}

/** The low half of a whole number, also of a negative one. */
function lowOf(value) {
  return value >= 0 ? low(value) : low(value - Math.floor(value / TWO_32) * TWO_32);
}

function mix(hash, value) {
  const mixed = Math.imul(hash ^ value, 2654435761);
  return mixed ^ (mixed >>> 15);
}
