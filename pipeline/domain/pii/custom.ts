// Runs one own pattern of an organization over a text of any length. In: a pattern and a text. Out:
// the positions of its matches.
//
// The engine finds one match in time linear in what it reads; finding all matches in a long text
// could take the square of its length. So each search reads a window, and the number of matches is
// bounded: everything after the last one counts as one more match. Each test and search is paid for
// in steps before it runs, so the caller's budget ends it; a thread with a deadline pays nothing.
import { compileLinear, PatternError, searchSteps, testSteps, tooLarge } from '../patterns/linear_regex.ts';
import type { Place } from './numbers.ts';
import { beginningOf } from './prefix.ts';

/** Maximum instructions of one own pattern, and of all own patterns of a policy together. */
export const OWN_SIZE_MAX = 500;
export const OWN_SIZES_MAX = 2000;

/**
 * Characters of a window. A match of up to half of it is found whole. For ^, $ and \b a window
 * begins and ends as a text does.
 */
const WINDOW = 2048;
/**
 * Maximum matches of one pattern in one text; at this number the rest of the text counts as one
 * more match.
 */
const MATCHES_MAX = 5000;

/** Pays for steps. Returns false when the caller has fewer left, in which case nothing may run. */
export type Pay = (steps: number) => boolean;

export interface CustomFinder {
  /** Instructions of the compiled pattern. */
  readonly size: number;
  /** Returns false for most texts without a match, at a fraction of the cost of a search. */
  mayMatch(text: string): boolean;
  /** Finds every match. @returns false when the budget of steps did not suffice */
  find(text: string, found: (place: Place) => void, pay: Pay): boolean;
}

/** @throws PatternError when the pattern is invalid or matches the empty text */
export function customFinder(pattern: string): CustomFinder {
  const regex = compileLinear(pattern);
  if (regex.test('')) throw new PatternError('the pattern matches the empty text, so it would match everywhere');
  const beginning = beginningOf(pattern);
  const { size } = regex;
  return {
    size,
    mayMatch: (text) => beginning === null || (text.length >= beginning.length && beginning.test(text)),
    find(text, found, pay) {
      // Most texts have no match, and a test costs a fraction of a search for positions.
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
      // The automaton rules out most windows in a fraction of the time of a search for positions.
      if (!regex.test(window)) {
        from = next;
        continue;
      }
      if (!pay(searchSteps(size, window.length))) return false;
      for (const { start, end } of regex.matches(window)) {
        // The match is cut by the window's end, or near enough that it may be: searched again from
        // its own start.
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
 * Validates the patterns of a policy before it is stored.
 * @throws UnusablePattern naming the first invalid pattern, or the one with which all together
 * become too large
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
        `with this pattern the policy has ${sizes} instructions; it must have at most ${OWN_SIZES_MAX} in all patterns together`,
      );
  }
}

/** A pattern that a policy cannot contain. */
export class UnusablePattern extends Error {
  /** Index of the pattern in the policy, from 0. */
  readonly index: number;

  constructor(index: number, message: string) {
    super(message);
    this.index = index;
  }
}
