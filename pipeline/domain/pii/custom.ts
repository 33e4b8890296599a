// One of an org's own patterns over a text of any length. In: a pattern and a text. Out: where it matches.
// The engine finds one match in time linear in what it looks at; finding all of them in a long text could take the square of its
// length. So each search looks at a window, and the number of matches is bounded: what is behind the last of them counts as one.
// Every test and search is paid for in steps before it runs, so the caller's budget ends it; a thread with a deadline pays nothing.
import { compileLinear, PatternError, searchSteps, testSteps, tooLarge } from '../patterns/linear_regex.ts';
import type { Place } from './numbers.ts';
import { beginningOf } from './prefix.ts';

/** Instructions of one own pattern that a policy accepts, and of all of its patterns together. */
export const OWN_SIZE_MAX = 500;
export const OWN_SIZES_MAX = 2000;

/** A match is found whole up to half of this many characters. For ^, $ and \b a window begins and ends as a text does. */
const WINDOW = 2048;
/** Matches of one pattern in one text; with this many the rest of the text is taken for one more. */
const MATCHES_MAX = 5000;

/** Pays for steps; false where they are more than the caller has left, and nothing is to be run. */
export type Pay = (steps: number) => boolean;

export interface CustomFinder {
  /** Instructions of the compiled pattern. */
  readonly size: number;
  /** False for most texts that hold no match, at a fraction of the cost of looking. */
  mayMatch(text: string): boolean;
  /** Finds every match. @returns false when the steps were more than could be paid */
  find(text: string, found: (place: Place) => void, pay: Pay): boolean;
}

/** @throws PatternError when the engine cannot take the pattern, or it matches the empty text */
export function customFinder(pattern: string): CustomFinder {
  const regex = compileLinear(pattern);
  if (regex.test('')) throw new PatternError('the pattern matches the empty text, so it would match everywhere');
  const beginning = beginningOf(pattern);
  const { size } = regex;
  return {
    size,
    mayMatch: (text) => beginning === null || (text.length >= beginning.length && beginning.test(text)),
    find(text, found, pay) {
      // Most texts hold no match, and saying so costs a fraction of looking for the place.
      if (!pay(testSteps(size, text.length))) return false;
      return !regex.test(text) || findAll(text, found, pay);
    },
  };

  function findAll(text: string, found: (place: Place) => void, pay: Pay): boolean {
    let matches = 0;
    let from = 0;
    while (from < text.length) {
      const isLast = text.length - from <= WINDOW;
      const window = isLast ? text.slice(from) : text.slice(from, from + WINDOW);
      let next = isLast ? text.length : from + WINDOW / 2;
      if (!pay(testSteps(size, window.length))) return false;
      // The automaton says of most windows that they hold no match, in a fraction of the time of looking for the place.
      if (!regex.test(window)) {
        from = next;
        continue;
      }
      if (!pay(searchSteps(size, window.length))) return false;
      for (const { start, end } of regex.matches(window)) {
        // Cut by the window's end, or so near to it that it may be: looked at again from its own start.
        if (!isLast && start >= WINDOW / 2) {
          next = from + start;
          break;
        }
        if (++matches > MATCHES_MAX) {
          found([from + start, text.length]);
          return true;
        }
        found([from + start, from + end]);
        next = Math.max(next, from + end);
        if (!pay(searchSteps(size, window.length - end))) return false;
      }
      from = next;
    }
    return true;
  }
}

/**
 * Checks the patterns of a policy that is to be stored.
 * @throws UnusablePattern naming the first that cannot be used, or with which all are too large together
 */
export function checkOwnPatterns(patterns: readonly string[]): void {
  let sizes = 0;
  for (const [index, pattern] of patterns.entries()) {
    try {
      const { size } = customFinder(pattern);
      if (size > OWN_SIZE_MAX) throw tooLarge(size, OWN_SIZE_MAX);
      sizes += size;
    } catch (error) {
      if (error instanceof PatternError) throw new UnusablePattern(index, error.message);
      throw error;
    }
    if (sizes > OWN_SIZES_MAX)
      throw new UnusablePattern(
        index,
        `with this pattern the policy has ${String(sizes)} instructions; takes at most ${String(OWN_SIZES_MAX)} in all patterns together`,
      );
  }
}

/** A pattern that a policy cannot have. */
export class UnusablePattern extends Error {
  /** Place of the pattern among those of the policy, from 0. */
  readonly index: number;

  constructor(index: number, message: string) {
    super(message);
    this.index = index;
  }
}
