import { describe, expect, it } from 'vitest';
import { readCommand, UsageError } from '../../bench/options.ts';
import { us } from '../../bench/report.ts';
import { comparedRow } from '../../bench/scale.ts';

const optionsOf = (...args: string[]) => {
  const asked = readCommand(args);
  if (asked.command !== 'run') throw new Error(`read as ${asked.command}`);
  return asked.options;
};

describe('options of the scale benchmark', () => {
  it('scale sends 4,000 events a second for 30 seconds once to each set-up by default', () => {
    expect(optionsOf('scale').scale).toEqual({ seconds: 30, rate: 4000, rounds: 1 });
  });

  it('scale takes other seconds, rates and rounds', () => {
    const { scale } = optionsOf('scale', '--seconds', '5', '--rate', '800', '--rounds', '3');
    expect(scale).toEqual({ seconds: 5, rate: 800, rounds: 3 });
  });

  it('all leaves scale out, and scale beside all runs both', () => {
    expect(optionsOf('all').parts).not.toContain('scale');
    expect(optionsOf('all', 'scale').parts).toContain('scale');
  });

  it.each([
    [['--rate', 'max'], '--rate of scale takes a number of events a second'],
    [['--rounds', '1.5'], '--rounds takes a whole number'],
  ])('scale rejects %j with its reason', (args, message) => {
    expect(() => optionsOf('scale', ...args)).toThrow(UsageError);
    expect(() => optionsOf('scale', ...args)).toThrow(message);
  });
});

describe('rows of the scale benchmark', () => {
  it('a row shows the median of each set-up and the ratio of the second to the first', () => {
    const sides = [
      { name: '1 shard', values: [100, 90, 130] },
      { name: '2 shards', values: [150, 120, 110] },
    ] as const;
    expect(comparedRow({ what: 'CPU time an event', unit: 'us', text: us }, sides, 'a note')).toEqual({
      what: 'CPU time an event',
      value: '100.0 µs → 120.0 µs (× 1.20)',
      note: 'a note',
      measures: [
        { name: '1 shard', value: 100, unit: 'us', samples: 3 },
        { name: '2 shards', value: 120, unit: 'us', samples: 3 },
        { name: 'ratio', value: 1.2, unit: 'share' },
      ],
    });
  });
});
