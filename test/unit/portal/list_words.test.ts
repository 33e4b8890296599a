import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldTime, timeOfField } from '../../../api/portal/web/lists/field_time.ts';
import { PreviewLoader } from '../../../api/portal/web/lists/preview_loader.ts';
import { previewRequests, PREVIEWS_MAX } from '../../../api/portal/web/lists/preview_requests.ts';
import { suggestionsFor } from '../../../api/portal/web/lists/suggestions.ts';
import { changeOf, numbersOf, percentileOf, pointsOf } from '../../../api/portal/web/screens/home/day_numbers.ts';
import { gapWords } from '../../../api/portal/web/screens/sessions/gap_words.ts';

describe('the pause between two turns', () => {
  const start = Date.UTC(2026, 10, 20);
  const after = (minutes: number): string | null =>
    gapWords(new Date(start).toISOString(), new Date(start + minutes * 60_000).toISOString());

  it.each([
    [9, null],
    [12, '12 min later'],
    [240, '4 h later'],
    [60 * 25, '1 day later'],
    [60 * 72, '3 days later'],
  ])('of %i minutes is said as %s', (minutes, words) => {
    expect(after(minutes)).toBe(words);
  });
});

describe('the suggestions of the query field', () => {
  const values = [
    { name: 'agent_id', value: 'planner', traces: 12 },
    { name: 'tags', value: 'two words', traces: 1 },
  ];

  it('are names of filters for the begin of a name', () => {
    expect(suggestionsFor('refund age', values).map(({ text }) => text)).toEqual(['refund agent_id:']);
  });

  it('are values after the colon, with quotation marks where a value has spaces', () => {
    expect(suggestionsFor('-agent_id:pl', values)).toMatchObject([
      { text: '-agent_id:planner', aside: '12 traces', complete: true },
    ]);
    expect(suggestionsFor('tags:', values)).toMatchObject([{ text: 'tags:"two words"', aside: '1 trace' }]);
  });

  it('are filters for a word that is a value', () => {
    expect(suggestionsFor('plan', values)[0]).toMatchObject({ text: 'agent_id:planner', complete: true });
  });
});

describe('a time field', () => {
  it('reads back what it shows, to the second, in UTC and in the local zone', () => {
    const seconds = fc.integer({ min: 0, max: 4_000_000_000 });
    fc.assert(
      fc.property(seconds, (second) => {
        const time = new Date(second * 1000).toISOString();
        expect(timeOfField(fieldTime(time, 'utc'), 'utc')).toBe(time);
      }),
    );
    expect(timeOfField('', 'local')).toBeNull();
  });
});

describe('the numbers of a day', () => {
  const series = {
    traces: [3, 1],
    errors: [1, 0],
    timeouts: [0, 1],
    cost_usd: [0.5, 0.25],
    p95_duration_ms: [100, 300],
  };

  it('are sums, and the mean of the percentiles by traces', () => {
    expect(numbersOf(series)).toEqual({ traces: 4, failed: 2, failed_share: 0.5, cost_usd: 0.75, p95_ms: 150 });
  });

  it('are points of a line for a few buckets together', () => {
    const points = pointsOf(series, 1);
    expect(points.traces).toEqual([...series.traces]);
    const all = pointsOf(series, series.traces.length);
    expect(all).toEqual({
      failed_share: [0.5],
      p95_ms: [Math.max(...points.p95_ms.map((one) => one ?? 0))],
      traces: [4],
    });
    expect(pointsOf(undefined, 4)).toEqual({ failed_share: [], p95_ms: [], traces: [] });
  });

  it('change against the day before, where there is one', () => {
    expect(changeOf(3, 2)).toBe(0.5);
    expect(changeOf(3, 0)).toBeNull();
    expect(changeOf(null, 2)).toBeNull();
  });
});

describe('the loader of the visible rows', () => {
  it('asks for each row once, several together', async () => {
    const asked: string[][] = [];
    const loader = new PreviewLoader<string>((ids) => {
      asked.push([...ids]);
      return Promise.resolve(new Map(ids.map((id) => [id, `preview of ${id}`])));
    }, 2);
    const there = ['a', 'b', 'c', 'a'].map(
      (id) =>
        new Promise<void>((resolve) => {
          loader.subscribe(id, resolve);
        }),
    );
    await Promise.all(there);
    expect(asked).toEqual([['a', 'b'], ['c']]);
    expect(loader.get('a')).toBe('preview of a');
  });
});

describe('the requests for previews', () => {
  it('are at most 50 ids long and have each id once', () => {
    const ids = Array.from({ length: 120 }, (_, at) => `trc_${at}`);
    const requests = previewRequests([...ids, ...ids]);
    expect(requests.map((request) => request.length)).toEqual([PREVIEWS_MAX, PREVIEWS_MAX, 20]);
    expect(requests.flat()).toEqual(ids);
  });

  it('leave out ids that the API refuses, and are none without an accepted id', () => {
    expect(previewRequests(['', 'a,b', 'x'.repeat(129), 'x'.repeat(128)])).toEqual([['x'.repeat(128)]]);
    expect(previewRequests(['', 'a,b'])).toEqual([]);
  });
});

describe('the 95th percentile of the home page', () => {
  const estimate = { now: 900, before: 800 };

  it('is that of all traces where it is known, and an estimate that says so where it is not', () => {
    expect(percentileOf({ now: 1000, before: null }, estimate)).toEqual({ now: 1000, before: null, estimated: false });
    expect(percentileOf(undefined, estimate)).toEqual({ ...estimate, estimated: true });
  });
});
