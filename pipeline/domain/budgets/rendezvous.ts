// Rendezvous hashing: chooses the process that decides about a key without communication. Each
// process ranks the members by a hash of key and member; the first one is the decider. When a
// member leaves, only its keys move, each to the next member in its order. Pure.

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * FNV-1a over UTF-16 units, finished by MurmurHash3's fmix32, since FNV alone barely changes the
 * high bits of short texts.
 */
function hash32(text: string): number {
  let hash = FNV_OFFSET;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * Returns the members in the order in which they are asked about the key; equal for all processes
 * that know the same members.
 */
export function rankedFor(key: string, members: readonly string[]): string[] {
  return members
    .map((member) => ({ member, weight: hash32(`${key} ${member}`) }))
    .sort((a, b) => b.weight - a.weight || (a.member < b.member ? -1 : 1))
    .map(({ member }) => member);
}
