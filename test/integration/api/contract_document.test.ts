// The document from which the portal's types are generated, without a server, is the one that the API serves.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contractDocument } from '../../support/portal_contract.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { call, startTestApi, type TestApi } from './an_api.ts';

let nats: TestNats;
let api: TestApi;
beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url });
});
afterAll(async () => {
  await api.close();
  await nats.remove();
});

/** Paths that take telemetry, pass calls on or concern the process; no page of the portal calls them. */
const OTHER =
  /^\/(api\/public\/(otel|ingestion)|langsmith\/runs|orgs\/\{org_id\}\/ingest\/|v1\/(otlp|logs|metrics|chat|responses|embeddings|messages|models)|healthz|readyz|metrics|openapi|docs)/;

test('the document of the types equals the served one, operation by operation', async () => {
  const served = (await call(api, 'GET', '/openapi.json')).json as { paths: Record<string, Record<string, unknown>> };
  const { paths: made } = JSON.parse(JSON.stringify(await contractDocument())) as typeof served;
  const missing = Object.keys(served.paths).filter((path) => !(path in made) && !OTHER.test(path));
  expect(missing).toEqual([]);
  expect(Object.keys(made).length).toBeGreaterThan(50);
  for (const [path, operations] of Object.entries(made))
    for (const [method, operation] of Object.entries(operations))
      expect([path, method, served.paths[path]?.[method]]).toEqual([path, method, operation]);
});
