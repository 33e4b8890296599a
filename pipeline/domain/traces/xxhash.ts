// xxHash32 as ClickHouse computes it, so that what is kept in memory can be rebuilt from the store.

const PRIME_1 = 0x9e3779b1;
const PRIME_2 = 0x85ebca77;
const PRIME_3 = 0xc2b2ae3d;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

const rotate = (value: number, bits: number): number => (value << bits) | (value >>> (32 - bits));
const round = (lane: number, word: number): number =>
  Math.imul(rotate((lane + Math.imul(word, PRIME_2)) | 0, 13), PRIME_1);

/**
 * Returns xxHash32 with seed 0 (github.com/Cyan4973/xxHash, doc/xxhash_spec.md), equal to
 * ClickHouse's xxHash32.
 */
export function xxHash32(bytes: Buffer): number {
  let at = 0;
  let hash: number;
  if (bytes.length >= 16) {
    let [a, b, c, d] = [(PRIME_1 + PRIME_2) | 0, PRIME_2 | 0, 0, -PRIME_1 | 0];
    for (; at <= bytes.length - 16; at += 16) {
      a = round(a, bytes.readInt32LE(at));
      b = round(b, bytes.readInt32LE(at + 4));
      c = round(c, bytes.readInt32LE(at + 8));
      d = round(d, bytes.readInt32LE(at + 12));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  } else {
    hash = PRIME_5 | 0;
  }
  hash = (hash + bytes.length) | 0;
  for (; at <= bytes.length - 4; at += 4)
    hash = Math.imul(rotate((hash + Math.imul(bytes.readInt32LE(at), PRIME_3)) | 0, 17), PRIME_4);
  for (; at < bytes.length; at += 1)
    hash = Math.imul(rotate((hash + Math.imul(bytes.readUInt8(at), PRIME_5)) | 0, 11), PRIME_1);
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
