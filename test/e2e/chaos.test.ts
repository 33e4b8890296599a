import { expect, it } from 'vitest';
import { runChaos } from '../chaos/chaos.ts';

it('loses and doubles nothing when each process is killed and a worker is paused under load', { timeout: 180_000 }, async () => {
  const result = await runChaos({
    rounds: 1,
    processes: ['api', 'worker', 'nats', 'clickhouse'],
    rate: 400,
    pauseMs: 4000,
    progress: () => undefined,
  });
  // How long a takeover takes is measured by npm run chaos; a test asserts no wall-clock time.
  expect(result.checks.filter(({ breach, what }) => breach && !what.startsWith('takeovers slower'))).toEqual([]);
  expect(result.kills).toHaveLength(4);
  expect(result.acknowledged).toBeGreaterThan(500);
});
