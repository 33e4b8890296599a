import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withFixedTimes } from '../../../api/portal/web/lists/fixed_times.ts';
import { filterQuery, spanOf } from '../../../api/portal/web/lists/list_query.ts';
import {
  EMPTY_LIST,
  parseListUrl,
  RANGES,
  sameQuery,
  SORTS,
  withFilter,
  writeListUrl,
  type ListUrl,
  type TimeRange,
} from '../../../api/portal/web/lists/list_url.ts';

/** Text of the characters that a query string gives a meaning, and half of a surrogate pair. */
const hostile = fc.string({
  unit: fc.constantFrom('a', 'é', '&', '=', '%', '+', ',', ':', '"', '-', ' ', '#', '\ud800', '%F0', 'tags'),
});

const NOW_MS = Date.parse('2026-11-20T12:00:00.000Z');
const word = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }).filter((text) => text.trim() !== '');
const column = fc.constantFrom('name', 'cost_usd', 'tags', 'models');
const filter: fc.Arbitrary<[string, string[]]> = fc.oneof(
  fc.tuple(
    fc.constantFrom('agent_id', 'tags', 'not_tags', 'model', 'outcome'),
    fc.array(fc.oneof(word, fc.constantFrom('a,b', String.raw`a\,b`, '\\')), { maxLength: 4 }),
  ),
  fc.tuple(fc.constantFrom('search', 'min_duration_ms', 'max_cost_usd'), fc.tuple(word)),
);
const instant = fc
  .date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true })
  .map((at) => at.toISOString());
const time: fc.Arbitrary<TimeRange> = fc.oneof(
  fc.record({ last: fc.constantFrom(...RANGES) }),
  fc.record({ since: instant, until: fc.option(instant) }),
);
const state: fc.Arbitrary<ListUrl> = fc
  .record({
    filters: fc.array(filter, { maxLength: 4 }),
    time,
    sort: fc.constantFrom(...SORTS),
    cols: fc.option(fc.uniqueArray(column, { minLength: 1, maxLength: 4 })),
    peek: fc.option(word),
    live: fc.boolean(),
    view: fc.option(word),
  })
  .map(({ filters, ...rest }) =>
    filters.reduce<ListUrl>((next, [name, values]) => withFilter(next, name, values), { ...EMPTY_LIST, ...rest }),
  );

describe('the URL of a list', () => {
  it('reads back every state that it writes', () => {
    fc.assert(
      fc.property(state, (written) => {
        expect(parseListUrl(writeListUrl(written))).toEqual(written);
      }),
    );
  });

  it('reads any query string without an error, and writes a canonical one', () => {
    fc.assert(
      fc.property(hostile, (query) => {
        const written = writeListUrl(parseListUrl(query));
        expect(writeListUrl(parseListUrl(written))).toBe(written);
      }),
    );
  });

  it('leaves defaults out and sorts what is left', () => {
    const read = parseListUrl('?t=24h&tags=b&sort=started_at&agent_id=planner&tags=a,b&live=0');
    expect(writeListUrl(read)).toBe('agent_id=planner&tags=a,b');
  });

  it('keeps unknown parameters and does not send them', () => {
    const read = parseListUrl('utm_source=mail&outcome=error&utm_source=chat&not_search=x');
    expect(writeListUrl(read)).toBe('not_search=x&outcome=error&utm_source=chat&utm_source=mail');
    expect(Object.keys(filterQuery(read, NOW_MS))).toEqual(['outcome', 'since']);
  });

  it('takes the default for a range, a sort and a time that it does not know', () => {
    expect(parseListUrl('t=2y&sort=name&since=yesterday')).toEqual(EMPTY_LIST);
  });

  it('prefers fixed times to a relative range', () => {
    const read = parseListUrl('t=7d&since=2026-11-20T10:00:00%2B01:00');
    expect(read.time).toEqual({ since: '2026-11-20T09:00:00.000Z', until: null });
  });

  it('tells a comma between values from one within a value, as the API does', () => {
    const read = parseListUrl(String.raw`tags=a\,b,c`);
    expect(read.filters.get('tags')).toEqual(['a,b', 'c']);
    expect(filterQuery(read, NOW_MS)['tags']).toBe(String.raw`a\,b,c`);
  });

  it('keeps a comma in the text of a search', () => {
    expect(parseListUrl('search=refund,+please').filters.get('search')).toEqual(['refund, please']);
  });

  it('counts what is shown as the same query: columns, the open trace, live', () => {
    const shown = parseListUrl('cols=name&peek=trc_1&live=1&view=v&x=1');
    expect(sameQuery(shown, EMPTY_LIST)).toBe(true);
    expect(sameQuery(parseListUrl('sort=cost_usd'), EMPTY_LIST)).toBe(false);
  });
});

describe('the parameters that a list sends', () => {
  it('are the filters, and the start of the relative range', () => {
    const query = filterQuery(parseListUrl('t=1h&tags=a,b&agent_id=planner&sort=cost_usd&peek=x'), NOW_MS);
    expect(query).toEqual({ agent_id: 'planner', tags: 'a,b', since: '2026-11-20T11:00:00.000Z' });
  });

  it('are the same for two requests within a second', () => {
    expect(spanOf({ last: '24h' }, NOW_MS - 999)).toEqual(spanOf({ last: '24h' }, NOW_MS));
  });
});

describe('the link with fixed times', () => {
  it('has both ends of the range in place of it, and everything else of the address', () => {
    const search = withFixedTimes('?t=1h&tags=a,b&live=1&agent_id=planner', '1h', NOW_MS);
    expect(search).toBe('agent_id=planner&since=2026-11-20T11:00:00.000Z&tags=a,b&until=2026-11-20T12:00:00.000Z');
  });

  it.each(RANGES)('of %s is read as the range of the same length', (last) => {
    const { time } = parseListUrl(withFixedTimes(`t=${last}`, last, NOW_MS));
    expect(spanOf(time, 0)).toEqual({ ...spanOf({ last }, NOW_MS), until_ms: NOW_MS });
  });
});
