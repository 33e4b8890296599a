// `npm run dev` restarts the service's own processes when a source file changes, and leaves the
// stores running.
import { utimesSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { startService } from '../support/service.ts';
import { eventually } from '../support/wait.ts';

const SOURCE = path.resolve(import.meta.dirname, '../../api/main.ts');

it('npm run dev restarts the API and the worker on the same port when a source file changes, but not the stores', async () => {
  const service = await startService({ command: ['ops/launch/start.ts', '--watch'] });
  const before = { api: service.pidOf('api'), pipeline: service.pidOf('pipeline') };
  const stores = [service.pidOf('nats'), service.pidOf('clickhouse')];
  utimesSync(SOURCE, new Date(), new Date());
  await eventually(() => service.pidOf('api') !== before.api && service.pidOf('pipeline') !== before.pipeline, {
    withinMs: 60_000,
    what: 'a new API and a new worker',
  });
  await eventually(async () => (await fetch(`${service.baseUrl}/readyz`)).status === 200, {
    withinMs: 60_000,
    what: 'readiness',
  });
  expect([service.pidOf('nats'), service.pidOf('clickhouse')]).toEqual(stores);
  expect(service.stdout()).toContain('api/main.ts changed: restarting the API and the worker.');
  await service.stop();
});
