// The PII policy as a form holds it. Pure.
import type { components } from '../../client/contract.d.ts';

export type PiiPolicy = components['schemas']['PiiPolicy'];

export const KINDS = [
  ['email', 'E-mail addresses'],
  ['phone', 'Phone numbers'],
  ['card', 'Card numbers'],
  ['ip', 'IP addresses'],
  ['ssn', 'US social security numbers'],
] as const;
export const PATTERNS_MAX = 20;

/** Returns true if two policies redact the same. */
export function isSame(a: PiiPolicy, b: PiiPolicy): boolean {
  const shape = ({ enabled, kinds, custom, mode }: PiiPolicy): string =>
    JSON.stringify([enabled, kinds.toSorted(), custom.map(({ label, pattern }) => [label, pattern]), mode]);
  return shape(a) === shape(b);
}

/** Returns the rank and the words of a refused pattern: `custom[2].pattern: …`; null for another error. */
export function patternError(
  detail: string | null,
): { index: number; field: 'label' | 'pattern'; words: string } | null {
  const [, rank = '', field = '', words = ''] =
    /^(?:policy\.)?custom(?:\[|\.)(\d{1,2})\]?\.(label|pattern): (.+)$/s.exec(detail ?? '') ?? [];
  if (rank === '' || (field !== 'label' && field !== 'pattern')) return null;
  return { index: Number(rank), field, words: `${words.charAt(0).toUpperCase()}${words.slice(1)}` };
}
