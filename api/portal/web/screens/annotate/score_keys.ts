// The choices of a score with their keys, and what an answer of a person is made of. Pure.
import type { components } from '../../client/contract.d.ts';

export type ScoreSpec = components['schemas']['AnnotationQueue']['scores'][number];
/** Values of an answer by the name of the score. */
export type Values = Record<string, string | number | boolean>;

export interface Choice {
  key: string;
  label: string;
  value: string | number | boolean;
}

/** Largest number of steps of a numeric score that is chosen by digit. */
const DIGITS_MAX = 9;

/** Returns the choices of a score; null for a number that is typed. */
export function choicesOf(spec: ScoreSpec): Choice[] | null {
  switch (spec.type) {
    case 'categorical':
      return spec.options.map((option, at) => ({ key: String(at + 1), label: option, value: option }));
    case 'boolean':
      return [
        { key: '1', label: 'true', value: true },
        { key: '2', label: 'false', value: false },
      ];
    case 'preference':
      return [
        { key: '1', label: 'Left is better', value: 'left' },
        { key: '2', label: 'Right is better', value: 'right' },
        { key: '0', label: 'Equal', value: 'equal' },
      ];
    case 'numeric': {
      const { min, max } = spec.range;
      if (!Number.isInteger(min) || !Number.isInteger(max) || min < 0 || max > DIGITS_MAX) return null;
      return Array.from({ length: max - min + 1 }, (_, at) => {
        const value = min + at;
        return { key: String(value), label: String(value), value };
      });
    }
  }
}

/** Returns the score that a digit acts on: the one that was reached last, or the first without a value. */
export function activeScore(
  specs: readonly ScoreSpec[],
  values: Values,
  reached: string | null,
): ScoreSpec | undefined {
  return (
    specs.find(({ name }) => name === reached) ?? specs.find(({ name }) => values[name] === undefined) ?? specs.at(-1)
  );
}

/** Returns the name of the first required score without a value; null when the answer is whole. */
export function missingScore(specs: readonly ScoreSpec[], values: Values): string | null {
  const missing = specs.find(({ name, required }) => required && values[name] === undefined);
  if (missing !== undefined) return missing.name;
  return Object.keys(values).length === 0 ? (specs[0]?.name ?? null) : null;
}

/** Words for the options of a score, as a form takes them: one option after each comma. */
export const optionsOf = (text: string): string[] =>
  [...new Set(text.split(',').map((part) => part.trim()))].filter((part) => part !== '');
