// Webhooks for tests: writes endpoints directly into their bucket, publishes events directly to
// their stream, and starts a webhook worker in this process or in its own process, which a test can
// kill.
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { KV } from '@nats-io/kv';
import { createLogger } from '../../ops/platform/logger.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { Sealer } from '../../ops/platform/sealing.ts';
import { type Log, openLog } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import {
  startWebhooks,
  WEBHOOK_TIMINGS,
  type Webhooks,
  type WebhooksOptions,
} from '../../pipeline/delivery/webhooks.ts';
import { serviceEventsCodec } from '../../schemas/codec.ts';
import { webhookKey, type WebhookRecord, webhookSealContext } from '../../schemas/records/webhook.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import { eventually } from './wait.ts';

export const SEALING_KEY = Buffer.alloc(32, 5);
/** No process listens there. */
export const NO_CLICKHOUSE = 'http://app:secret@127.0.0.1:9/millrace';

/** The production timings, divided by a hundred. */
export const FAST = {
  ...WEBHOOK_TIMINGS,
  firstMs: 10,
  maxMs: 200,
  timeoutMs: 1500,
  ackWaitMs: 4000,
  retryAfterMaxMs: 5000,
};

export interface TestWebhooks {
  log: Log;
  webhooks: Webhooks;
  /** Stops the worker and closes its connections. */
  stop(): Promise<void>;
}

export async function openWebhookLog(natsUrl: string): Promise<Log> {
  return openLog(await connectNats({ url: natsUrl, name: 'test', waitMs: 5000 }), {
    replicas: 1,
    logBytesMax: 64 * 1024 * 1024,
  });
}

/** Starts a worker in this process. */
export async function startTestWebhooks(
  natsUrl: string,
  options: Partial<Omit<WebhooksOptions, 'clickhouse' | 'log'>> & { clickhouseUrl?: string } = {},
): Promise<TestWebhooks> {
  const { clickhouseUrl = NO_CLICKHOUSE, ...rest } = options;
  const log = await openWebhookLog(natsUrl);
  const clickhouse = createClickHouse({ url: clickhouseUrl });
  const webhooks = await startWebhooks({
    log,
    logger: createLogger('webhooks-test', 'silent'),
    clickhouse,
    sealer: new Sealer(SEALING_KEY),
    publicOnly: false,
    now: () => Date.now(),
    timings: FAST,
    ...rest,
  });
  return {
    log,
    webhooks,
    async stop() {
      await webhooks.stop();
      await log.nc.close();
      await clickhouse.close();
    },
  };
}

/** Starts a worker in its own process. It exits when this process does. */
export async function forkWebhooks(natsUrl: string): Promise<ChildProcess> {
  const child = fork(new URL('./webhook_worker.ts', import.meta.url), [], {
    env: { ...process.env, TEST_NATS_URL: natsUrl },
    silent: true,
  });
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => {
      resolve();
    });
    child.once('exit', (code) => {
      reject(new Error(`the worker ended with ${String(code)}`));
    });
  });
  return child;
}

/**
 * Writes an endpoint as the API does. Resolves once every worker that watches the bucket has
 * received it, because earlier events are not sent to it.
 */
export async function putEndpoint(
  log: Log,
  over: Partial<WebhookRecord> & { url: string },
  secret = 'whsec_test',
): Promise<WebhookRecord> {
  const { org_id = 'org_a', webhook_id = `wh_${randomBytes(6).toString('hex')}` } = over;
  const created_at = new Date().toISOString();
  const sealed = new Sealer(SEALING_KEY).seal(secret, webhookSealContext(org_id, webhook_id));
  const record: WebhookRecord = {
    org_id,
    webhook_id,
    events: ['trace.completed'],
    description: '',
    enabled: true,
    created_at,
    secrets: [{ sealed, created_at, expires_at: null }],
    ...over,
  };
  const bucket = await log.bucket('webhooks');
  await bucket.put(webhookKey(org_id, webhook_id), JSON.stringify(record));
  await eventually(() => haveWatchersHeard(log, bucket), { what: 'the endpoint at every watch' });
  return record;
}

/**
 * Returns true once the server has sent the whole bucket to every watcher. Later messages to a
 * watcher arrive after it.
 */
async function haveWatchersHeard(log: Log, bucket: KV): Promise<boolean> {
  const { config } = (await bucket.status()).streamInfo;
  for await (const { push_bound, num_pending } of log.jsm.consumers.list(config.name))
    if (push_bound && num_pending > 0) return false;
  return true;
}

/** Publishes events of one kind in one batch, as a pipeline worker does, and returns their ids. */
export async function publishEvents(
  log: Log,
  count = 1,
  over: { org_id?: string; event?: string } = {},
): Promise<string[]> {
  const { org_id = 'org_a', event = 'trace.completed' } = over;
  const events = Array.from({ length: count }, () => {
    const event_id = `evt_${randomBytes(8).toString('hex')}`;
    return {
      event_id,
      event,
      org_id,
      created_at: Date.now(),
      payload: JSON.stringify({ event, trace_id: `trc_${event_id.slice(4)}`, note: 'ü' }),
    };
  });
  const msgID = randomBytes(8).toString('hex');
  await publishRecord(log, EVENTS_SUBJECT, serviceEventsCodec, { events }, { msgID, timeoutMs: 5000 });
  return events.map(({ event_id }) => event_id);
}
