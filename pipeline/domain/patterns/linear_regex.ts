// Regular expressions whose time is linear in the text, whatever the pattern: RE2's syntax, without
// look-around and back-references. The only module that knows which engine runs them. In: a pattern
// of an organization. Out: a compiled one, or a PatternError that says in plain words what the
// engine cannot take.
import { RE2JS, RE2JSException } from 're2js';

/** Maximum characters of a pattern. */
export const PATTERN_LENGTH_MAX = 2000;
/** Maximum instructions of a compiled pattern. */
export const PROGRAM_SIZE_MAX = 1000;

/**
 * Returns the maximum steps of one test of a text: a deterministic bound on its cost. A step took
 * up to 25 ns for adversarial pairs of pattern and text; usual patterns take some 5 ns a character,
 * whatever their size. The engine's automaton, which tests run on, builds a state for a character
 * in up to 2 µs: 48 steps in addition to those of the instructions, fewer for patterns so small
 * that they have few states.
 */
export const testSteps = (size: number, chars: number): number => (chars + 1) * Math.min(3 * size, size + 48);

/**
 * Returns the maximum steps of one search for the position of a match in `chars` characters; it
 * does not use the automaton.
 */
export const searchSteps = (size: number, chars: number): number => (chars + 1) * (size + 4);

export type PatternFlag = 'i' | 'm' | 's';

const FLAGS: Record<PatternFlag, number> = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };

export class PatternError extends Error {}

export interface FoundMatch {
  /** Positions in the text in UTF-16 units; `end` is exclusive. */
  start: number;
  end: number;
  text: string;
}

export interface LinearRegex {
  /** Instructions of the compiled pattern. */
  readonly size: number;
  /**
   * Returns true when any part of the text matches, in at most testSteps steps, which the caller
   * bounds.
   */
  readonly test: (text: string) => boolean;
  /**
   * Yields the non-empty, non-overlapping matches from left to right. Each search is linear in the
   * rest of the text, so all of them take up to their number times that length; the caller bounds
   * their number.
   */
  matches(text: string): Generator<FoundMatch>;
  /** Returns the text with up to `limit` matches replaced, from left to right. */
  replace(text: string, replacement: (match: FoundMatch) => string, limit?: number): string;
}

/**
 * Compiles a pattern.
 * @param flags i: ignore case; m: ^ and $ match at lines; s: . matches line ends too
 * @throws PatternError when the pattern is invalid, has look-around or back-references, or is too
 * long or too large
 */
export function compileLinear(pattern: string, flags: readonly PatternFlag[] = []): LinearRegex {
  const compiled = compile(pattern, flags);
  const size = Math.max(1, compiled.programSize());
  function* matches(text: string): Generator<FoundMatch> {
    const matcher = compiled.matcher(text);
    while (matcher.find()) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (end > start) yield { start, end, text: text.slice(start, end) };
    }
  }
  return {
    size,
    test: (text) => compiled.test(text),
    matches,
    replace(text, replacement, limit = Infinity) {
      const pieces: string[] = [];
      let at = 0;
      let left = limit;
      for (const match of matches(text)) {
        if (left <= 0) break;
        pieces.push(text.slice(at, match.start), replacement(match));
        at = match.end;
        left -= 1;
      }
      return pieces.length === 0 ? text : pieces.join('') + text.slice(at);
    },
  };
}

function compile(pattern: string, flags: readonly PatternFlag[]): RE2JS {
  if (pattern.length > PATTERN_LENGTH_MAX)
    throw new PatternError(`a pattern has at most ${PATTERN_LENGTH_MAX} characters`);
  const bits = flags.reduce((sum, flag) => sum | FLAGS[flag], 0);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern, bits);
  } catch (error) {
    if (error instanceof RE2JSException) throw new PatternError(error.message);
    throw error;
  }
  const size = compiled.programSize();
  if (size > PROGRAM_SIZE_MAX) throw tooLarge(size, PROGRAM_SIZE_MAX);
  return compiled;
}

/** Returns the error for a pattern with too many instructions, which says what would pass. */
export function tooLarge(size: number, max: number): PatternError {
  return new PatternError(
    `the pattern has ${size} instructions once its repetitions are written out; it must have at most ${max}. ` +
      'Use smaller counts in {} (a{1,20} has 41), + or * in their place, or fewer alternatives',
  );
}
