import { describe, expect, it } from 'vitest';
import { searchQuery } from '../../../api/telemetry/spans/schema.ts';

describe('the query of a search', () => {
  it('the query of a search counts each word once', () => {
    expect(searchQuery.parse({ q: 'The the CAR' }).q.words).toEqual(['the', 'car']);
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
