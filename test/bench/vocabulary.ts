// Pseudo-text with the statistics of real text: 300,000 distinct words whose frequency follows
// Zipf's law, the most common of them English function words. Deterministic: the same seed gives
// the same words and texts. ASCII, and safe inside JSON.

export const VOCABULARY_SIZE = 300_000;
const EXPONENT = 1.03;
/** Ranks between the function words and this are short words, later ones long. */
const LONG_FROM = 6400;
const SENTENCE_WORDS = 13;

const FUNCTION_WORDS =
  'the of and a to in is you that it he was for on are as with his they i at be this have from or had by not but what all were we when your can said there an which she do how their if will up other about out';
const ONSETS = ['b', 'd', 'f', 'g', 'h', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z', 'ch'];
const VOWELS = ['a', 'e', 'i', 'o', 'u'];
const CODAS = 'nrst';
const SYLLABLES = ONSETS.flatMap((onset) => VOWELS.map((vowel) => onset + vowel));

/** Returns random numbers in [0, 2^32). */
export type Random = () => number;

/** mulberry32: small, fast and good enough for texts. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return (value ^ (value >>> 14)) >>> 0;
  };
}

const functionWords = FUNCTION_WORDS.split(' ');
const syllable = (index: number): string => SYLLABLES[index % SYLLABLES.length] ?? '';

/** Returns the word of a rank, 0 being the most common. Each rank has its own word. */
export function wordOf(rank: number): string {
  const common = functionWords[rank];
  if (common !== undefined) return common;
  // Neighbours in rank should not look alike: multiplication by a number coprime to the range
  // scatters them.
  if (rank < LONG_FROM) {
    const id = (rank * 367) % (SYLLABLES.length * SYLLABLES.length);
    return syllable(Math.floor(id / SYLLABLES.length)) + syllable(id) + (CODAS[rank % CODAS.length] ?? '');
  }
  const id = (rank * 7919) % SYLLABLES.length ** 3;
  return (
    syllable(Math.floor(id / SYLLABLES.length ** 2)) +
    syllable(Math.floor(id / SYLLABLES.length)) +
    syllable(id) +
    syllable(rank)
  );
}

/** Draws words by Zipf's law in constant time (Vose's alias method). */
export class Vocabulary {
  readonly words: readonly string[];
  readonly #probability: Float64Array;
  readonly #alias: Uint32Array;

  constructor(size = VOCABULARY_SIZE) {
    this.words = Array.from({ length: size }, (_, rank) => wordOf(rank));
    const weights = Float64Array.from({ length: size }, (_, rank) => (rank + 1) ** -EXPONENT);
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / size;
    this.#probability = weights.map((weight) => weight / mean);
    this.#alias = new Uint32Array(size);
    const small: number[] = [];
    const large: number[] = [];
    for (const [rank, weight] of this.#probability.entries()) (weight < 1 ? small : large).push(rank);
    for (
      let low = small.pop(), high = large.at(-1);
      low !== undefined && high !== undefined;
      low = small.pop(), high = large.at(-1)
    ) {
      this.#alias[low] = high;
      const left = (this.#probability[high] ?? 0) + (this.#probability[low] ?? 0) - 1;
      this.#probability[high] = left;
      if (left < 1) {
        large.pop();
        small.push(high);
      }
    }
    for (const rank of [...small, ...large]) this.#probability[rank] = 1;
  }

  /** Returns the rank of a drawn word. */
  draw(random: Random): number {
    const slot = random() % this.words.length;
    return random() / 2 ** 32 < (this.#probability[slot] ?? 1) ? slot : (this.#alias[slot] ?? 0);
  }

  /** Returns a text of `count` words, in sentences. */
  text(count: number, random: Random): string {
    let text = '';
    for (let i = 0; i < count; i += 1) {
      const word = this.words[this.draw(random)] ?? '';
      if (i % SENTENCE_WORDS === 0) text += `${i === 0 ? '' : '. '}${word.charAt(0).toUpperCase()}${word.slice(1)}`;
      else text += ` ${word}`;
    }
    return text;
  }
}
