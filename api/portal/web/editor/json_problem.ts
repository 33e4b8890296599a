// The first syntax error of a JSON text, with its place. JSON.parse decides; the tokens
// of the text say where. A blank text has no error, as it stands for no value. Pure.
import { jsonErrorPlace } from './json_tokens.ts';

const WORD_CHARS_MAX = 20;

export interface JsonProblem {
  /** Offsets of the characters that are underlined, at least one. */
  from: number;
  to: number;
  text: string;
}

/** Returns the first syntax error of the text as JSON; null without one. */
export function jsonProblem(text: string): JsonProblem | null {
  if (text.trim() === '') return null;
  try {
    JSON.parse(text);
    return null;
  } catch {
    const { from, to } = jsonErrorPlace(text);
    const lineStart = text.lastIndexOf('\n', from - 1) + 1;
    const line = text.slice(0, lineStart).split('\n').length;
    const end = Math.min(text.length, Math.max(to, from + 1));
    return {
      from: Math.min(from, end - 1),
      to: end,
      text: `Line ${line}, column ${from - lineStart + 1}: ${wordsOf(text, from, to)}`,
    };
  }
}

function wordsOf(text: string, from: number, to: number): string {
  const rest = text.slice(from).trimStart();
  if (rest === '') return 'the JSON ends too early.';
  const word = text.slice(from, Math.min(to, from + WORD_CHARS_MAX)).trim();
  return word === ''
    ? `something is missing before ${JSON.stringify(rest.slice(0, 1))}.`
    : `${JSON.stringify(word)} is not accepted here.`;
}
