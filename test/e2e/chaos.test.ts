import { expect, it } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';
import { FAULTS } from '../chaos/faults.ts';
import { SMALL } from '../chaos/stack.ts';
import { thisVersion } from '../chaos/versions.ts';

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
      takeoverMsMax: null,
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

it(
  'fails no request, and loses and doubles no event, while every worker and API process is drained and replaced under load',
  { timeout: 900_000 },
  async () => {
    // The older version is this one too, because a shallow clone has no other.
    const version = thisVersion();
    const result = await runChaos({
      stack: { ...SMALL, apis: 2 },
      faults: FAULTS.filter(({ name }) => name === 'rolling-upgrade'),
      versions: { older: version, newer: version },
      rounds: 1,
      rate: 100,
      aroundMs: 300,
      holdMs: 500,
      takeoverMsMax: null,
      checkEach: false,
      seed: 1,
      progress: () => undefined,
    });
    expect(result.evidence).toEqual([]);
    expect(result.struck.map(({ calls }) => calls?.failed)).toEqual([[]]);
    expect(result.struck[0]?.calls?.made).toBeGreaterThan(500);
    expect(result.checks.filter(({ breach }) => breach)).toEqual([]);
  },
);
