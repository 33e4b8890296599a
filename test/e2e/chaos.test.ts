import { expect, it } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';
import { FAULTS } from '../chaos/faults.ts';
import { SMALL } from '../chaos/stack.ts';

/** One fault of each kind; `npm run chaos` runs the others. */
const NAMES = ['kill-api', 'kill-worker', 'kill-nats', 'kill-clickhouse', 'stop-worker'];

it(
  'loses and doubles no event when each process is killed and a worker is paused under load',
  { timeout: 900_000 },
  async () => {
    const result = await runChaos({
      stack: SMALL,
      faults: FAULTS.filter(({ name }) => NAMES.includes(name)),
      rounds: 1,
      rate: 150,
      aroundMs: 300,
      holdMs: 1000,
      checkEach: false,
      seed: 1,
      progress: () => undefined,
    });
    expect(result.evidence).toEqual([]);
    expect(result.checks.filter(({ breach }) => breach)).toEqual([]);
    expect(result.checks.length).toBeGreaterThan(40);
    expect(result.struck.map(({ fault }) => fault)).toEqual(NAMES);
    expect(result.acknowledged).toBeGreaterThan(500);
  },
);
