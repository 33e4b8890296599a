// Two API processes, one of them with a clock three minutes ahead, and a lander of their audit log.
// Importing this module starts them before the tests of a file and stops them afterwards.
import { afterAll, beforeAll, beforeEach } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { type Log, openLog } from '../../../ops/platform/nats/open_log.ts';
import { AUDIT_STREAM, EVENTS_STREAM } from '../../../schemas/streams.ts';
import { createAuditLander } from '../../../pipeline/delivery/audit_lander.ts';
import type { BatchConsumer } from '../../../pipeline/queues/batch_consumer.ts';
import { type AuditEntry, FINGERPRINT_HEADER, serviceEventsCodec, type ServiceEvent } from '../../../schemas/codec.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { runStatement, startTestEngine, type TestEngine } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, call, ORG, startTestApi, type TestApi } from './an_api.ts';

export const MINUTE_MS = 60_000;
export const operator = { 'X-Org-Api-Key': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };

export let nats: TestNats;
export let engine: TestEngine;
export let clickhouse: ClickHouse;
export let api: TestApi;
/** The same service with a clock three minutes ahead, which is longer than any request lasts. */
export let later: TestApi;
export let log: Log;
export let lander: BatchConsumer<AuditEntry>;

export interface Shown {
  audit_id: string;
  actor: { type: string; id: string };
  action: string;
  target: { type: string; id: string };
  changes: Record<string, unknown>;
  request_id: string | null;
  outcome: string;
}

export const connect = async (): Promise<Log> =>
  openLog(await connectNats({ url: nats.url, name: 'audit-test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });

export const startLander = (on: Log, onLanded: (rows: number) => void = () => undefined): BatchConsumer<AuditEntry> => {
  const queue = createAuditLander({
    log: on,
    logger: createLogger('audit-test', 'silent'),
    clickhouse,
    now: Date.now,
    observe: () => undefined,
    onLanded,
    onPublished: () => undefined,
  });
  queue.start();
  return queue;
};

beforeAll(async () => {
  [nats, engine] = await Promise.all([startTestNats(), startTestEngine()]);
  clickhouse = createClickHouse({ url: engine.url });
  await migrate(clickhouse, {});
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url });
  later = await startTestApi({ natsUrl: nats.url, clickhouseUrl: engine.url, now: () => Date.now() + 3 * MINUTE_MS });
  log = await connect();
  lander = startLander(log);
});
afterAll(async () => {
  await lander.stop();
  await Promise.all([api.close(), later.close()]);
  await log.nc.close();
  await clickhouse.close();
  await Promise.all([nats.remove(), engine.remove()]);
});

/** Resolves once every published audit record has landed. */
export const landed = () =>
  eventually(async () => (await log.jsm.streams.info(AUDIT_STREAM)).state.messages === 0, {
    what: 'an empty audit queue',
  });
/**
 * Redelivers unacknowledged messages at once by deleting the consumer. With the old consumer, a
 * message whose acknowledgement was lost would be redelivered only after a wait.
 */
export const redeliver = () => log.jsm.consumers.delete(AUDIT_STREAM, 'audit');
export const read = (query = '', on = api, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
  call(on, 'GET', `/orgs/${ORG}/audit-log${query}`, { headers });
export const shown = ({ json }: Answer): Shown[] => json?.['data'] as Shown[];
export const makeKey = (name: string, headers: Record<string, string | undefined> = {}): Promise<Answer> =>
  call(api, 'POST', `/orgs/${ORG}/api-keys`, { body: { name, scopes: ['traces:read'] }, headers });
export const byRequest = async (answer: Answer, on = later): Promise<Shown[]> =>
  shown(await read('?limit=200', on)).filter(({ request_id }) => request_id === answer.headers.get('x-request-id'));

/** Every test starts with an empty audit log. */
beforeEach(async () => {
  await landed();
  await runStatement(engine.url, 'TRUNCATE TABLE audit_log');
});

export async function events(): Promise<ServiceEvent[]> {
  const found: ServiceEvent[] = [];
  const { state } = await log.jsm.streams.info(EVENTS_STREAM);
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await log.jsm.streams.getMessage(EVENTS_STREAM, { seq });
    if (message !== null)
      found.push(...serviceEventsCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events);
  }
  return found;
}

/** Returns the distinct event ids of the events of one kind whose payload contains `about`. */
export async function eventIds(event: string, about: string): Promise<string[]> {
  return [
    ...new Set(
      (await events())
        .filter((told) => told.event === event && told.payload.includes(about))
        .map(({ event_id }) => event_id),
    ),
  ];
}

/** Starts a lander to replace one that has stopped. */
export function replaceLander(): void {
  lander = startLander(log);
}
