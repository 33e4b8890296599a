// The own patterns of a policy, run within bounds: in place while the steps of an event last, else where a deadline ends them.
// In: the patterns as they are stored, and texts. Out: for each text the places of all matches, or that they could not be looked for
// within the bounds; the caller then replaces the text as a whole, so nothing that a pattern was to hide gets through.
import type { CustomPattern } from '../../../schemas/records/pii_policy.ts';
import { type CustomFinder, customFinder, type Pay } from './custom.ts';

/** A match of the pattern of this rank, [start, end) in UTF-16 units. */
export type OwnFind = readonly [rank: number, start: number, end: number];

/** exceeded: the text was not looked at to its end. */
export type OwnFinds = readonly OwnFind[] | 'exceeded';

const NONE: OwnFinds = [];

/**
 * Steps that the own patterns of an org may take in place for one event. At 25 ns a step, which takes a pattern and a text made for
 * each other, they are 25 ms; usual patterns on usual events take microseconds.
 */
export const EVENT_STEPS_MAX = 1_000_000;

const STEP_MS = 25e-6;

/** What bounds the own patterns of one org in this process. */
export interface OwnBounds {
  /** Steps that an event may take in place now: EVENT_STEPS_MAX, or 0 for an org that has had its share of time. */
  steps(): number;
  /** Takes down what patterns took in place, milliseconds. */
  took(ms: number): void;
  /** Looks for patterns where a deadline ends it; never rejects. @returns for each text its finds */
  search(patterns: readonly CustomPattern[], texts: readonly string[]): Promise<readonly OwnFinds[]>;
}

/** Bounds where no other thread is at hand: what is too much in place is not looked for. */
export const IN_PLACE: OwnBounds = {
  steps: () => EVENT_STEPS_MAX,
  took: () => undefined,
  search: (_patterns, texts) => Promise.resolve(texts.map(() => 'exceeded' as const)),
};

export class OwnPatterns {
  readonly patterns: readonly CustomPattern[];
  /** null for a pattern that cannot be compiled: no text can be said to hold no match of it. */
  readonly #finders: readonly (CustomFinder | null)[];
  /** Steps for each character where all patterns have to look at a text. */
  readonly weight: number;

  /** Takes every policy that was ever stored: a pattern that cannot be used is a reason to replace texts, not to fail. */
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

  /** Labels of the patterns that cannot be used: texts are replaced as a whole in their place. */
  get unusable(): string[] {
    return this.patterns.flatMap(({ label }, index) => (this.#finders[index] === null ? [label] : []));
  }

  /** False for most texts that hold no match, at little cost. */
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

/** The own patterns over the texts of one event: what they may still take, and the texts that were too much. */
export class OwnSearch {
  readonly #own: OwnPatterns;
  readonly #known: ReadonlyMap<string, OwnFinds>;
  readonly #exceeded = new Set<string>();
  #steps: number;
  /** What they took in place, milliseconds. */
  ms = 0;

  /** @param known what another thread has found in texts that were too much before */
  constructor(own: OwnPatterns, steps: number, known: ReadonlyMap<string, OwnFinds>) {
    this.#own = own;
    this.#steps = steps;
    this.#known = known;
  }

  /** Texts that could not be looked at within the steps. */
  get exceeded(): readonly string[] {
    return [...this.#exceeded];
  }

  /** Whether a text may hold a match: what need not be looked at costs nothing. */
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
    // On a busy machine the clock goes on while this process waits.
    this.ms += Math.min(performance.now() - began, (before - this.#steps) * STEP_MS);
    if (finds === 'exceeded') this.#exceeded.add(text);
    return finds;
  }

  /** A text that is too much takes nothing from those after it. */
  #pay(steps: number): boolean {
    if (steps > this.#steps) return false;
    this.#steps -= steps;
    return true;
  }
}
