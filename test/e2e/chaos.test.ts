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
  expect(result.checks.filter(({ breach }) => breach)).toEqual([]);
  expect(result.kills).toHaveLength(4);
  expect(result.acknowledged).toBeGreaterThan(500);
});
