import { describe, expect, it } from 'vitest';
import { rareTerms, type Term, windowStart } from '../../../api/telemetry/spans/search.ts';
import { searchQuery } from '../../../api/telemetry/spans/schema.ts';

const DAY_MS = 86_400_000;
const term = (df: number): Term => ({ word: `w${df}`, hash: df, stop: false, df, idf: 1 });

describe('a search plan', () => {
  it('a search plan takes the rarest words that fit the bound together', () => {
    expect(rareTerms([term(1), term(5), term(100)], 106)).toBe(3);
    expect(rareTerms([term(1), term(5), term(100)], 105)).toBe(2);
    expect(rareTerms([term(200)], 105)).toBe(0);
  });

  it('a search plan begins the newest window where its share of all documents begins', () => {
    const days = [0, 1, 2, 3].map((day) => ({ day_ms: day * DAY_MS, documents: 100, words: 1000 }));
    expect(windowStart(days, 400, 100)).toBe(3 * DAY_MS);
    expect(windowStart(days, 400, 150)).toBe(2.5 * DAY_MS);
    expect(windowStart(days, 200, 20)).toBe(3.6 * DAY_MS);
    expect(windowStart(days, 400, 400)).toBe(0);
  });
});

describe('the query of a search', () => {
  it('the query of a search counts each word once', () => {
    expect(searchQuery.parse({ q: 'The the CAR' }).q.words.map(({ word, stop }) => [word, stop])).toEqual([
      ['the', true],
      ['car', false],
    ]);
  });

  it.each([
    ['0', 0],
    ['0.5', 0.5],
    ['.5', 0.5],
    ['5.', 5],
    ['1e-05', 0.00001],
    ['1E+3', 1000],
    ['1e9', 1e9],
  ])('the query of a search accepts a cost as clients write floats: %s', (text, cost) => {
    expect(searchQuery.parse({ q: 'x', min_cost_usd: text, max_cost_usd: text })).toMatchObject({
      min_cost_usd: cost,
      max_cost_usd: cost,
    });
  });

  it.each([
    ['q', undefined],
    ['q', ''],
    ['q', '?!'],
    ['q', 'x'.repeat(1001)],
    ['min_cost_usd', '-1'],
    ['min_cost_usd', '1e999'],
    ['min_cost_usd', '.'],
    ['min_cost_usd', '0x10'],
    ['min_cost_usd', ''],
    ['max_cost_usd', 'NaN'],
    ['since', 'now'],
    ['limit', '0'],
  ])('the query of a search rejects %s=%s', (name, value) => {
    const result = searchQuery.safeParse({ q: 'x', [name]: value });
    expect(result.error?.issues[0]?.path).toEqual([name]);
  });
});
