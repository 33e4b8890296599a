import { describe, expect, it } from 'vitest';
import { readCommand, UsageError } from '../../bench/options.ts';
import { failedRow, figureRow, p50p95, taskRow, timesRow } from '../../bench/portal_rows.ts';

const portalOf = (...args: string[]) => {
  const asked = readCommand(args);
  if (asked.command !== 'run') throw new Error(`read as ${asked.command}`);
  return asked.options.portal;
};

describe('rows of the portal benchmark', () => {
  it('p50 and p95 carry their number of measurements and their own bars', () => {
    const times = Array.from({ length: 101 }, (_, index) => index);
    expect(p50p95(times, { p95: 90 })).toEqual([
      { name: 'p50', value: 50, unit: 'ms', samples: 101 },
      { name: 'p95', value: 95, unit: 'ms', samples: 101, bar: { sense: 'at_most', value: 90 } },
    ]);
  });

  it('a row of times shows both percentiles and both bars as text', () => {
    expect(timesRow('rows there', [20, 20, 20], { p50: 15, p95: 30 })).toMatchObject({
      value: 'p50 20 ms, p95 20 ms (n=3)',
      bar: 'p50 ≤ 15 ms, p95 ≤ 30 ms',
    });
  });

  it('the longest task of several runs counts, and a task below 50 ms is shown as the limit of the browser', () => {
    expect(taskRow('tasks', [0, 0], 50)).toMatchObject({ value: 'under 50 ms', measures: [{ value: 0, samples: 2 }] });
    expect(taskRow('tasks', [60, 120, 80], 50)).toMatchObject({
      value: '120 ms',
      measures: [{ value: 120, bar: { sense: 'at_most', value: 50 } }],
    });
  });

  it('a number without a bar promises nothing', () => {
    const { measures } = figureRow('heap', { value: 7, unit: 'bytes', words: '7 B' });
    expect(measures).toEqual([{ name: 'value', value: 7, unit: 'bytes' }]);
  });

  it('a part that failed becomes a row with the first line of its reason', () => {
    expect(failedRow('find', new Error('the page is gone\nat line 3'))).toEqual({
      what: 'find',
      value: 'not run',
      note: 'failed: the page is gone',
    });
  });
});

describe('options of the portal benchmark', () => {
  it('opens traces of 1,000, 10,000 and 50,000 spans in 30 runs unless told otherwise', () => {
    expect(portalOf('portal')).toEqual({
      spans: [1000, 10_000, 50_000],
      runs: 30,
      stored: 0,
      ingest: false,
      login: null,
    });
    expect(portalOf('portal', '--spans', '1000,2000', '--runs', '3', '--ingest', '--stored', '1e7')).toEqual({
      spans: [1000, 2000],
      runs: 3,
      stored: 10_000_000,
      ingest: true,
      login: null,
    });
  });

  it('leaves --spans of the other parts alone when all parts run', () => {
    expect(portalOf('all', '--spans', '2000000').spans).toEqual([1000, 10_000, 50_000]);
  });

  it.each([
    [['--spans', '1000,60000'], /between 100 and 50000.*got 1000,60000/],
    [['--spans', '1000,many'], /--spans takes a number above 0; got many/],
    [['--runs', '2.5'], /--runs takes a whole number/],
    [['--stored', 'many'], /--stored takes a number of spans; got many/],
    [['--url', 'http://127.0.0.1:1', '--key', 'k'], /--login/],
  ])('refuses %j with the accepted values', (args, words) => {
    expect(() => portalOf('portal', ...args)).toThrow(UsageError);
    expect(() => portalOf('portal', ...args)).toThrow(words);
  });
});
