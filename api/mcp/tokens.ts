// Counts and cuts texts in tokens, so that an answer fits the budget of its tool whatever the texts are.
import { charsForTokens, estimateTokens } from '../../pipeline/domain/text/tokens.ts';

/** Characters that are counted exactly at a time; longer texts would be sampled. */
const PIECE_CHARS = 4096;
/** No text has more characters for a token than this; longer texts are cut before they are counted. */
const CHARS_PER_TOKEN_MAX = 12;
const TRIES_MAX = 8;

/** Returns the tokens of a text: exact for prose, slightly too many for others. */
export function tokensOf(text: string): number {
  let tokens = 0;
  for (let from = 0; from < text.length; from += PIECE_CHARS)
    tokens += estimateTokens(text.slice(from, from + PIECE_CHARS));
  return tokens;
}

/** Returns the longest beginning of a text, roughly, that has at most `tokensMax` tokens and `charsMax` characters. */
export function cutToTokens(text: string, tokensMax: number, charsMax: number): string {
  let cut = whole(text, Math.min(charsMax, Math.max(0, tokensMax) * CHARS_PER_TOKEN_MAX));
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const tokens = tokensOf(cut);
    if (tokens <= tokensMax) return cut;
    // A text whose beginning is denser than its end needs another try.
    cut = cut.slice(0, charsForTokens(cut, tokens, Math.floor(tokensMax * 0.98)));
  }
  return whole(cut, tokensMax);
}

/** Returns the first characters of a text without splitting a surrogate pair. */
export function whole(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const last = text.charCodeAt(chars - 1);
  return text.slice(0, chars > 0 && last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars);
}

/** Returns a text on one line, at most `chars` characters long, with … where it is cut. */
export function clip(text: string | null | undefined, chars: number): string {
  if (text === null || text === undefined) return '';
  // No more is read than can be shown: texts are megabytes long.
  const line = whole(text, chars * 4)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= chars && text.length <= chars * 4 ? line : `${whole(line, chars - 1)}…`;
}
