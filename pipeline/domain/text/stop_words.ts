// The words that nearly every text contains. Their repeats are stored apart from other words', so
// that a search without them reads a fraction of the numbers. The list is part of the stored
// format: a change requires rewriting old rows.

const STOP_WORDS =
  'a an the and or but not no if then than so as at by for from in into of on to with without ' +
  'is are was were be been being am has have had do does did will would can could should may ' +
  'i you he she it we they me my your his her its our their this that these those there what which who';

const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;
/** A power of two, large enough that most hashes meet an empty slot at once. */
const SLOTS = 1024;
const table = new Uint32Array(SLOTS);

/** Returns FNV-1a 32 over the UTF-16 code units of a text; unsigned. */
export function fnvOfCodeUnits(text: string): number {
  let hash = FNV_OFFSET;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), FNV_PRIME);
  return hash >>> 0;
}

for (const word of STOP_WORDS.split(' ')) {
  const hash = fnvOfCodeUnits(word);
  let slot = hash & (SLOTS - 1);
  while (table[slot] !== 0) slot = (slot + 1) & (SLOTS - 1);
  table[slot] = hash;
}

/** Returns true when the hash (unsigned 32 bits) is a stop word's. */
export function isStopHash(hash: number): boolean {
  let slot = hash & (SLOTS - 1);
  while (table[slot] !== 0) {
    if (table[slot] === hash) return true;
    slot = (slot + 1) & (SLOTS - 1);
  }
  return false;
}
