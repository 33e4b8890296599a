// An org's own patterns over a text of any length. In: a pattern and a text. Out: where it matches.
// The engine finds one match in time linear in what it looks at; finding all of them in a long text could take the square of its
// length. So each search looks at a window, and the number of matches is bounded: what is behind the last of them counts as one.
import { compileLinear, PatternError } from './linear_regex.ts';
import type { Place } from './pii_numbers.ts';
import { beginningOf } from './pii_prefix.ts';

/** A match is found whole up to half of this many characters. For ^, $ and \b a window begins and ends as a text does. */
const WINDOW = 2048;
/** Matches of one pattern in one text; with this many the rest of the text is taken for one more. */
const MATCHES_MAX = 5000;

export interface CustomFinder {
  readonly label: string;
  /** Whether the text holds a match. */
  test(text: string): boolean;
  /** Finds nothing where test says that there is none. */
  find(text: string, found: (place: Place) => void): void;
}

/** @throws PatternError when the engine cannot take the pattern, or it matches the empty text */
export function customFinder(label: string, pattern: string): CustomFinder {
  const regex = compileLinear(pattern);
  if (regex.test('')) throw new PatternError('the pattern matches the empty text, so it would match everywhere');
  const beginning = beginningOf(pattern);
  return {
    label,
    // Most texts hold none, and saying so costs a fraction of looking for the place.
    test: (text) => (beginning === null || (text.length >= beginning.length && beginning.test(text))) && regex.test(text),
    find(text, found) {
      let matches = 0;
      let from = 0;
      while (from < text.length) {
        const isLast = text.length - from <= WINDOW;
        const window = isLast ? text.slice(from) : text.slice(from, from + WINDOW);
        let next = isLast ? text.length : from + WINDOW / 2;
        for (const { start, end } of regex.matches(window)) {
          // Cut by the window's end, or so near to it that it may be: looked at again from its own start.
          if (!isLast && start >= WINDOW / 2) {
            next = from + start;
            break;
          }
          if (++matches > MATCHES_MAX) {
            found([from + start, text.length]);
            return;
          }
          found([from + start, from + end]);
          next = Math.max(next, from + end);
        }
        from = next;
      }
    },
  };
}
