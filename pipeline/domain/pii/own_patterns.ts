// Runs the own patterns of a policy within bounds: in place while the event's budget of steps
// lasts, otherwise where a deadline ends them. In: the stored patterns, and texts. Out: for each
// text the positions of all matches, or `exceeded` when the bounds did not suffice. The caller then
// replaces the whole text, so nothing that a pattern should hide remains.
import type { CustomPattern } from '../../../schemas/records/pii_policy.ts';
import { type CustomFinder, customFinder, type Pay } from './custom.ts';

/** A match of the pattern with this rank, [start, end) in UTF-16 units. */
export type OwnFind = readonly [rank: number, start: number, end: number];

/** `exceeded`: the text was not searched to its end. */
export type OwnFinds = readonly OwnFind[] | 'exceeded';

const NONE: OwnFinds = [];

/**
 * Maximum steps that an organization's own patterns may take in place for one event. They are 25 ms
 * at 25 ns a step, which takes an adversarial pair of pattern and text; usual patterns on usual
 * events take microseconds.
 */
export const EVENT_STEPS_MAX = 1_000_000;

const STEP_MS = 25e-6;

/** Bounds of an organization's own patterns in this process. */
export interface OwnBounds {
  /**
   * Steps that an event may take in place now: EVENT_STEPS_MAX, or 0 when the organization has used
   * up its share of time.
   */
  steps(): number;
  /** Records the milliseconds that patterns took in place. */
  took(ms: number): void;
  /** Searches under a deadline; never rejects. @returns the finds of each text */
  search(patterns: readonly CustomPattern[], texts: readonly string[]): Promise<readonly OwnFinds[]>;
}

/** Bounds without a second thread: what exceeds the steps in place is not searched. */
export const IN_PLACE: OwnBounds = {
  steps: () => EVENT_STEPS_MAX,
  took: () => undefined,
  search: (_patterns, texts) => Promise.resolve(texts.map(() => 'exceeded' as const)),
};

export class OwnPatterns {
  readonly patterns: readonly CustomPattern[];
  /** Null for a pattern that does not compile: no text can be declared free of its matches. */
  readonly #finders: readonly (CustomFinder | null)[];
  /** Steps for each character when all patterns have to search a text. */
  readonly weight: number;

  /**
   * Accepts every policy ever stored: an invalid pattern makes texts be replaced as a whole, but
   * never fails.
   */
  constructor(patterns: readonly CustomPattern[]) {
    this.patterns = patterns;
    this.#finders = patterns.map(({ pattern }) => {
      try {
        return customFinder(pattern);
      } catch {
        return null;
      }
    });
    this.weight = this.#finders.reduce((sum, finder) => sum + (finder === null ? 0 : 2 * finder.size + 52), 0);
  }

  /** Labels of the invalid patterns, because of which texts are replaced as a whole. */
  get unusable(): string[] {
    return this.patterns.flatMap(({ label }, index) => (this.#finders[index] === null ? [label] : []));
  }

  /** Returns false for most texts without a match, at little cost. */
  mayMatch(text: string): boolean {
    return text !== '' && this.#finders.some((finder) => finder === null || finder.mayMatch(text));
  }

  find(text: string, pay: Pay): OwnFinds {
    const finds: OwnFind[] = [];
    for (const [rank, finder] of this.#finders.entries()) {
      if (finder === null) return 'exceeded';
      if (!finder.mayMatch(text)) continue;
      const isWhole = finder.find(
        text,
        ([start, end]) => {
          finds.push([rank, start, end]);
        },
        pay,
      );
      if (!isWhole) return 'exceeded';
    }
    return finds;
  }
}

/**
 * The own patterns on the texts of one event, with the remaining budget and the texts that exceeded
 * it.
 */
export class OwnSearch {
  readonly #own: OwnPatterns;
  readonly #known: ReadonlyMap<string, OwnFinds>;
  readonly #exceeded = new Set<string>();
  #steps: number;
  /** Milliseconds spent in place. */
  ms = 0;

  /** @param known what another thread found in texts that exceeded the budget before */
  constructor(own: OwnPatterns, steps: number, known: ReadonlyMap<string, OwnFinds>) {
    this.#own = own;
    this.#steps = steps;
    this.#known = known;
  }

  /** Texts that could not be searched within the budget. */
  get exceeded(): readonly string[] {
    return [...this.#exceeded];
  }

  /** Returns true when a text may have a match; a text that cannot costs nothing. */
  mayMatch(text: string): boolean {
    return this.#own.patterns.length > 0 && this.#own.mayMatch(text);
  }

  find(text: string): OwnFinds {
    if (this.#own.patterns.length === 0 || !this.#own.mayMatch(text)) return NONE;
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    if (this.#exceeded.has(text)) return 'exceeded';
    const began = performance.now();
    const before = this.#steps;
    const finds = this.#own.find(text, (steps) => this.#pay(steps));
    // On a busy machine the clock continues while this process waits, so the steps bound the time.
    this.ms += Math.min(performance.now() - began, (before - this.#steps) * STEP_MS);
    if (finds === 'exceeded') this.#exceeded.add(text);
    return finds;
  }

  /** A text that exceeds the budget takes nothing from those after it. */
  #pay(steps: number): boolean {
    if (steps > this.#steps) return false;
    this.#steps -= steps;
    return true;
  }
}
