// How many tokens a text has, where the vendor did not say: counted with the o200k tokenizer, within a bound.
// In: text. Out: a number of tokens; exact for short prose, an estimate for long text and for other vendors' models.
// The tokenizer's work grows with the square of an unbroken run of letters, so text is cut into short pieces, and of a long
// text evenly spread samples are counted: no text can hold up the worker.
import { createRequire } from 'node:module';

/** A text longer than this is sampled. */
const SAMPLED_CHARS = 4096;
const SAMPLES = 8;
/** A piece ends at white space where it has any, else here. */
const PIECE_CHARS = 128;

interface Tokenizer {
  countTokens(text: string, options: { disallowedSpecial: Set<string> }): number;
}

/** Text that looks like a control token is text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

const load = createRequire(import.meta.url);
let tokenizer: Tokenizer | null = null;

/** Tokens of a text, estimated. The first call loads the tokenizer (about 0.2 s, 75 MB): nearly all usage comes counted. */
export function estimateTokens(text: string): number {
  if (text === '') return 0;
  tokenizer ??= load('gpt-tokenizer/encoding/o200k_base') as Tokenizer;
  if (text.length <= SAMPLED_CHARS) return countPieces(tokenizer, text, 0, text.length);
  const sample = SAMPLED_CHARS / SAMPLES;
  const stride = (text.length - sample) / (SAMPLES - 1);
  let tokens = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const start = Math.floor(i * stride);
    tokens += countPieces(tokenizer, text, start, start + sample);
  }
  return Math.round((tokens * text.length) / SAMPLED_CHARS);
}

function countPieces(counter: Tokenizer, text: string, from: number, to: number): number {
  let tokens = 0;
  let start = from;
  while (start < to) {
    let end = Math.min(start + PIECE_CHARS, to);
    if (end < to) {
      const space = text.lastIndexOf(' ', end);
      if (space > start) end = space;
    }
    tokens += counter.countTokens(text.slice(start, end), AS_TEXT);
    start = end;
  }
  return tokens;
}

/** How many characters of a text make `tokensMax` tokens when all of it makes `tokens`. Never between surrogates. */
export function charsForTokens(text: string, tokens: number, tokensMax: number): number {
  const chars = Math.floor((text.length * tokensMax) / Math.max(1, tokens));
  if (chars >= text.length) return text.length;
  const last = text.charCodeAt(chars - 1);
  return chars > 0 && last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars;
}
