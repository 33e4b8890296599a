import { describe, expect, it } from 'vitest';
import { compareSeries, turnsOf } from '../../bench/compare_stats.ts';
import { readCommand } from '../../bench/options.ts';
import { parseSizes, whyNot, type SizeAsked } from '../../bench/sizes.ts';

describe('a comparison', () => {
  const latency = (a: number[], b: number[]) =>
    compareSeries({ metric: 'p50', unit: 'ms', more_is_better: false, a, b }, 0.1);
  const throughput = (a: number[], b: number[]) =>
    compareSeries({ metric: 'rate', unit: '/s', more_is_better: true, a, b }, 0.1);

  it('a comparison finds what is surely worse beyond the tolerance, in either direction of the number', () => {
    expect(latency([10, 11, 10], [14, 15, 14])).toMatchObject({ verdict: 'worse', a: 10, b: 14, cost: 1.4, rounds: 3 });
    expect(throughput([100, 101, 99], [80, 79, 81])).toMatchObject({ verdict: 'worse', cost: 1.25 });
  });

  it('a comparison finds what is better, and ignores small changes', () => {
    expect(latency([14, 15, 14], [10, 11, 10]).verdict).toBe('better');
    expect(throughput([100, 101, 99], [130, 131, 129]).verdict).toBe('better');
    expect(latency([100, 101, 102], [105, 106, 107]).verdict).toBe('same');
    expect(latency([10, 10, 10], [10, 10, 10])).toMatchObject({ verdict: 'same', cost: 1, low: 1, high: 1 });
  });

  it('a comparison is not sure where the rounds of both sides overlap', () => {
    const { verdict, low, high } = latency([10, 20, 12], [16, 11, 18]);
    expect(verdict).toBe('perhaps worse');
    expect(low).toBeLessThan(1);
    expect(high).toBeGreaterThan(1);
  });

  it('a comparison is never sure with fewer than three rounds', () => {
    expect(latency([10], [20]).verdict).toBe('perhaps worse');
    expect(latency([10, 11], [20, 21]).verdict).toBe('perhaps worse');
    expect(latency([20, 21], [10, 11]).verdict).toBe('same');
  });

  it('a comparison gives the same interval each time, around the ratio', () => {
    const [first, second] = [latency([10, 12, 11], [13, 12, 14]), latency([10, 12, 11], [13, 12, 14])];
    expect(second).toEqual(first);
    expect(first.low).toBeLessThanOrEqual(first.cost);
    expect(first.high).toBeGreaterThanOrEqual(first.cost);
  });

  it('a comparison rejects a side without numbers', () => {
    expect(() => latency([], [1])).toThrow('p50: nothing to compare');
  });

  it('a comparison alternates so that neither side always goes first', () => {
    expect(turnsOf(3).join('')).toBe('abbaab');
  });
});

describe('the sizes of a run', () => {
  const asked: SizeAsked = {
    have: 1_000_000,
    want: 10_000_000,
    cost: { bytes_per_span: 600, seconds_per_span: 60e-6, read_seconds: 120 },
    free_bytes: 100e9,
    seconds_left: Infinity,
  };

  it('the sizes of a run are filled where disk and time allow', () => {
    expect(whyNot(asked)).toBeNull();
    expect(whyNot({ ...asked, seconds_left: 9e6 * 60e-6 + 120 })).toBeNull();
  });

  it('sizes are omitted with the reason before the disk is full', () => {
    // 9 million spans of 600 B, half as much for merges, and 4 GiB of reserve.
    expect(whyNot({ ...asked, free_bytes: 12.3e9 })).toBe(
      'needs 12.4 GB of free disk (600 B a span, half as much again for merges, 4.3 GB left over); 12.3 GB are free',
    );
  });

  it('sizes are omitted when the time ends sooner', () => {
    expect(whyNot({ ...asked, seconds_left: 600 })).toBe('needs about 11 min; 10 min of --minutes are left');
  });

  it('sizes cost only what is missing', () => {
    expect(whyNot({ ...asked, have: 10_000_000, free_bytes: 5e9, seconds_left: 120 })).toBeNull();
  });

  it('sizes are read as numbers, ascending, each once', () => {
    expect(parseSizes('1e7,1e6,1000000')).toEqual([1_000_000, 10_000_000]);
    for (const wrong of ['', '1e6,', 'many', '-5', '0', '1.5'])
      expect(() => parseSizes(wrong)).toThrow('--sizes takes numbers of spans');
  });
});

describe('the command line', () => {
  it('the command line runs everything at two sizes by default', () => {
    const all = readCommand([]);
    expect(all).toMatchObject({
      command: 'run',
      options: { sizes: [1e6, 1e7], minutes: Infinity, seconds: 60, rate: 10_000 },
    });
    expect(readCommand(['reads'])).toMatchObject({ options: { parts: ['reads'], sizes: [1e7] } });
  });

  it('the command line compares two commits', () => {
    expect(readCommand(['compare', 'a1', 'b2', '--parts', 'reads,ingest', '--tolerance', '0.2'])).toMatchObject({
      command: 'compare',
      options: { commits: ['a1', 'b2'], parts: ['ingest', 'reads'], rounds: 5, tolerance: 0.2 },
    });
  });

  it.each([
    [['nothing'], 'there is no benchmark nothing'],
    [['reads', '--sizes', 'x'], '--sizes takes'],
    [['reads', '--minutes', '0'], '--minutes takes a number above 0'],
    [['compare', 'a1'], 'compare takes two commits'],
    [['compare', 'a1', 'b2', '--parts', 'judges'], '--parts takes ingest, single, reads'],
    [['compare', 'a1', 'b2', '--rounds', '1.5'], '--rounds takes a whole number'],
    [['table'], 'table takes one file of results'],
  ])('the command line rejects %j with its reason', (args, message) => {
    expect(() => readCommand(args)).toThrow(message);
  });
});
