// A pipeline worker in its own process that reads events published directly to the ingest log, for
// tests that kill, pause and restart it.
import { type ChildProcess, fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { fixedPartitions, openLog, type Log } from '../../ops/platform/nats/open_log.ts';
import { ingestSubject } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER, ingestBatchCodec, type IngestEvent, type SourceFormat } from '../../schemas/codec.ts';
import { createTestDatabase, type TestDatabase } from './clickhouse.ts';
import { startTestNats, type TestNats } from './nats.ts';

export const PARTITIONS = 4;

export interface TestWorker {
  readonly child: ChildProcess;
  /** Resolves when the worker owns its partitions. */
  ready: Promise<void>;
  kill(signal: NodeJS.Signals): void;
  exited: Promise<number | null>;
}

/** Starts a worker. Its output is kept for the error message of a failure. */
export function startWorker(env: {
  natsUrl: string;
  /** Absent where `more` names shards. */
  clickhouseUrl?: string;
  more?: Record<string, string>;
}): TestWorker {
  const child = fork(new URL('../../pipeline/main.ts', import.meta.url), [], {
    silent: true,
    env: {
      ...process.env,
      SERVICE_NATS_URL: env.natsUrl,
      ...(env.clickhouseUrl === undefined ? {} : { SERVICE_CLICKHOUSE_URL: env.clickhouseUrl }),
      SERVICE_PARTITIONS: String(PARTITIONS),
      SERVICE_LOG_LEVEL: 'info',
      ...env.more,
    },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-20_000)));
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const ready = new Promise<void>((resolve, reject) => {
    child.on('message', (message) => {
      // Until it is ready, the worker reports that it is starting.
      if (typeof message === 'object' && 'ready' in message) resolve();
    });
    void exited.then((code) => {
      reject(new Error(`the worker ended with ${String(code)} before it was ready:\n${output}`));
    });
  });
  ready.catch(() => undefined);
  return {
    child,
    ready,
    exited,
    kill: (signal) => {
      child.kill(signal);
    },
  };
}

/** A worker with its own log and its own database. */
export interface TestPipeline {
  readonly database: TestDatabase;
  readonly nats: TestNats;
  readonly log: TestLog;
  /**
   * Kills the worker and starts another, which has no state in memory. Resolves when the new worker
   * is ready.
   */
  replaceWorker(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a log, a database and a worker.
 * @param more additional environment variables of its workers
 */
export async function startTestPipeline(more: Record<string, string> = {}): Promise<TestPipeline> {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const log = await openTestLog(nats.url);
  const start = async (): Promise<TestWorker> => {
    const started = startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more });
    await started.ready;
    return started;
  };
  let worker = await start();
  const kill = async (): Promise<void> => {
    worker.kill('SIGKILL');
    await worker.exited;
  };
  return {
    database,
    nats,
    log,
    async replaceWorker() {
      await kill();
      worker = await start();
    },
    async close() {
      await kill();
      await log.close();
      await nats.remove();
      await database.drop();
    },
  };
}

export interface TestLog {
  log: Log;
  /**
   * Publishes events to the log, one message per partition. Resolves when JetStream has stored
   * them.
   */
  publish(events: readonly IngestEvent[], partitionOf: (event: IngestEvent) => number): Promise<void>;
  /** Publishes raw bytes to the log. */
  publishRaw(partition: number, data: Uint8Array, fingerprint?: string): Promise<void>;
  close(): Promise<void>;
}

export async function openTestLog(natsUrl: string): Promise<TestLog> {
  const nc = await connectNats({ url: natsUrl, name: 'test', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: 256 * 1024 * 1024 });
  await fixedPartitions(log, PARTITIONS);
  const publishRaw = async (partition: number, data: Uint8Array, fingerprint?: string): Promise<void> => {
    const head = headers();
    if (fingerprint !== undefined) head.set(FINGERPRINT_HEADER, fingerprint);
    await log.js.publish(ingestSubject(partition), data, { headers: head });
  };
  return {
    log,
    publishRaw,
    async publish(events, partitionOf) {
      for (const [partition, batch] of Map.groupBy(events, partitionOf))
        await publishRaw(partition, ingestBatchCodec.encode({ events: batch }), ingestBatchCodec.fingerprint);
    },
    close: () => nc.close(),
  };
}

/** Returns a log event with the given body and the id that ingest would assign. */
export function logged(
  format: SourceFormat,
  body: Record<string, unknown>,
  over: Partial<IngestEvent> = {},
): IngestEvent {
  const text = JSON.stringify(body);
  const hex = createHash('sha256').update(text).digest('hex').slice(0, 16);
  return {
    org_id: 'org_a',
    format,
    event_hex: hex,
    trace_id: typeof body['trace_id'] === 'string' ? body['trace_id'] : `trc_${hex}`,
    received_at: Date.now(),
    body: text,
    ...over,
  };
}
