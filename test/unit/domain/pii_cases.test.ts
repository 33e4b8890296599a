// The share of labelled cases that the finder gets right. The bars lie a little below what was
// measured when they were set.
import { describe, expect, it } from 'vitest';
import { PII_KINDS } from '../../../schemas/records/pii_policy.ts';
import { piiCases, scorePii } from '../../support/pii_cases.ts';

describe('the finder of personal data', () => {
  const cases = piiCases('tuned');

  it('the finder of personal data is measured on 500 cases and more of every kind, half of them without anything personal', () => {
    expect(cases.length).toBeGreaterThanOrEqual(500);
    const empty = cases.filter(({ labels }) => labels.length === 0).length;
    expect(empty / cases.length).toBeGreaterThan(0.4);
    for (const kind of PII_KINDS) {
      const labelled = cases.flatMap(({ labels }) => labels).filter((label) => label.startsWith(`${kind}:`));
      expect([kind, labelled.length]).toEqual([kind, expect.any(Number)]);
      expect(labelled.length).toBeGreaterThanOrEqual(30);
    }
  });

  it.each(scorePii(cases).map((score) => [score.kind, score] as const))(
    'the finder has precision and recall of 0.97 and more: %s',
    (_kind, score) => {
      expect(score).toEqual(expect.objectContaining({ kind: score.kind }));
      expect(score.precision).toBeGreaterThanOrEqual(0.97);
      expect(score.recall).toBeGreaterThanOrEqual(0.97);
    },
  );

  it('the finder finds most of what it was not developed with', () => {
    const all = scorePii(piiCases('unseen')).find(({ kind }) => kind === 'all');
    expect(all?.precision).toBeGreaterThanOrEqual(0.82);
    expect(all?.recall).toBeGreaterThanOrEqual(0.9);
  });
});
