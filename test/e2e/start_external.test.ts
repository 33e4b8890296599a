// `npm start` with a running NATS and ClickHouse: it uses them, starts none of its own, and leaves
// them running.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestDatabase, createTestDatabase } from '../support/clickhouse.ts';
import { type TestNats, startTestNats } from '../support/nats.ts';
import { startService } from '../support/service.ts';
import { eventually } from '../support/wait.ts';

let nats: TestNats;
let db: TestDatabase;
beforeAll(async () => {
  [nats, db] = await Promise.all([startTestNats(), createTestDatabase({ empty: true })]);
});
afterAll(async () => {
  await nats.remove();
  await db.drop();
});

it('uses an external NATS and ClickHouse, lands an event there, and does not stop them', async () => {
  const service = await startService({ env: { SERVICE_NATS_URL: nats.url, SERVICE_CLICKHOUSE_URL: db.url } });
  const running = readdirSync(path.join(service.dataDir, 'run')).filter((name) => name.endsWith('.pid.json'));
  expect(running.toSorted()).toEqual(['api.pid.json', 'pipeline.pid.json']);
  expect(service.stdout()).not.toContain('analysts');

  const res = await fetch(`${service.baseUrl}/orgs/${service.orgId}/ingest/custom`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-org-api-key': service.secrets.api_key,
      'x-org-id': service.orgId,
    },
    body: JSON.stringify({ events: [{ name: 'step', outcome: 'success', duration_ms: 1, trace_id: 'trc_external' }] }),
  });
  expect(res.status).toBe(200);
  await eventually(async () => (await db.run("SELECT count() FROM spans WHERE trace_id = 'trc_external'")) === '1\n');

  expect(await service.stop()).toEqual({ code: 0, signal: null });
  expect(await db.run('SELECT 1')).toBe('1\n');
  expect(nats.server.child.exitCode).toBeNull();
});
