// The codec of query strings: it reads anything, writes one canonical form, and loses nothing.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  choice,
  codec,
  decimal,
  flag,
  integer,
  list,
  moment,
  optionalChoice,
  text,
} from '../../../api/portal/web/url/search_params.ts';

const example = codec({
  search: text(),
  tags: list(),
  outcome: optionalChoice(['success', 'error', 'timeout']),
  sort: choice(['started_at', 'cost_usd'], 'started_at'),
  zoom: integer(0, 100),
  min_cost_usd: decimal(0),
  live: flag(),
  since: moment(),
});
const DEFAULTS = example.parse('');

const item = fc.string({ minLength: 1, maxLength: 12 }).filter((one) => !one.includes(','));
const state = fc.record({
  search: fc.string(),
  tags: fc.uniqueArray(item, { maxLength: 5 }),
  outcome: fc.constantFrom('success', 'error', 'timeout', null),
  sort: fc.constantFrom('started_at', 'cost_usd'),
  zoom: fc.option(fc.integer({ min: 0, max: 100 })),
  min_cost_usd: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }).map((value) => value + 0)),
  live: fc.boolean(),
  since: fc.option(
    fc
      .date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString()),
  ),
});

const query = fc
  .array(fc.tuple(fc.constantFrom(...Object.keys(DEFAULTS), 'other', '%', ''), fc.string({ maxLength: 12 })), {
    maxLength: 6,
  })
  .map((pairs) => pairs.map(([name, value]) => `${name}=${value}`).join('&'));

describe('the codec of query strings', () => {
  it('reads back every state that it wrote', () => {
    fc.assert(
      fc.property(state, (given) => {
        expect(example.parse(example.write(given))).toEqual(given);
      }),
    );
  });

  it('reads any text without an error, and writes a form that it reads and writes the same', () => {
    fc.assert(
      fc.property(query, (given) => {
        const written = example.write(example.parse(given), given);
        expect(example.write(example.parse(written), written)).toBe(written);
      }),
    );
  });

  it('takes a value that it does not accept for an absent one', () => {
    expect(example.parse('?outcome=maybe&zoom=101&min_cost_usd=-1&since=soon&sort=name')).toEqual(DEFAULTS);
  });

  it('leaves defaults out and sorts by name', () => {
    expect(example.write({ ...DEFAULTS, zoom: 3, live: true, tags: ['b', 'a'], sort: 'started_at' })).toBe(
      'live=1&tags=b,a&zoom=3',
    );
  });

  it('keeps parameters that it does not know and changes only what is asked', () => {
    expect(example.change('?other=1&zoom=3&search=x', { zoom: null, tags: ['a'] })).toBe('other=1&search=x&tags=a');
  });
});
