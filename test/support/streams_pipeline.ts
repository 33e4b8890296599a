// A log with several streams, a database and workers that tests kill. Events are published as an API
// process does it, so small ones travel in mixed messages, and each acknowledged event is counted.
import { setTimeout as pause } from 'node:timers/promises';
import { AckInbox } from '../../api/intake/ingest/ack_inbox.ts';
import { type OutgoingEvent, Publisher } from '../../api/intake/ingest/publisher.ts';
import { connectNats, trackConnected } from '../../ops/platform/nats/connect.ts';
import { fixedPartitions, type Log, openLog } from '../../ops/platform/nats/open_log.ts';
import { partitionOf } from '../../pipeline/domain/traces/ids.ts';
import { createTestDatabase, type TestDatabase } from './clickhouse.ts';
import { startTestNats, type TestNats } from './nats.ts';
import { logged, startWorker, type TestWorker } from './pipeline.ts';
import { eventually } from './wait.ts';

export const STREAM_PARTITIONS = 8;
/** 250 events a second at most. */
const LOAD = { events: 5, pauseMs: 20 };
const LOG_BYTES_MAX = 512 * 1024 * 1024;

export class StreamsPipeline {
  readonly database: TestDatabase;
  readonly nats: TestNats;
  readonly log: Log;
  readonly #publisher: Publisher;
  readonly #workers: TestWorker[] = [];
  #events = 0;

  private constructor(database: TestDatabase, nats: TestNats, log: Log) {
    this.database = database;
    this.nats = nats;
    this.log = log;
    this.#publisher = new Publisher({
      port: new AckInbox(log.nc, trackConnected(log.nc), (name, seq) => log.streams.layout.named(name)?.position(seq)),
      partitions: STREAM_PARTITIONS,
      streams: log.streams.layout.open,
      now: () => performance.now(),
      observe: () => undefined,
    });
    log.streams.onChange(({ open }) => {
      this.#publisher.changeStreams(open);
    });
  }

  static async start(streams: number): Promise<StreamsPipeline> {
    const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
    const log = await openLog(await connectNats({ url: nats.url, name: 'test', waitMs: 5000 }), {
      replicas: 1,
      logBytesMax: LOG_BYTES_MAX,
      streams: { count: streams, partitions: STREAM_PARTITIONS },
    });
    await fixedPartitions(log, STREAM_PARTITIONS);
    return new StreamsPipeline(database, nats, log);
  }

  /** Starts a worker that wants this number of streams. */
  worker(streams: number, more: Record<string, string> = {}): TestWorker {
    const worker = startWorker({
      natsUrl: this.nats.url,
      clickhouseUrl: this.database.url,
      more: {
        SERVICE_PARTITIONS: String(STREAM_PARTITIONS),
        SERVICE_LOG_STREAMS: String(streams),
        SERVICE_LOG_MAX_BYTES: String(LOG_BYTES_MAX),
        ...more,
      },
    });
    this.#workers.push(worker);
    return worker;
  }

  /** Number of events that the log has acknowledged. */
  get acknowledged(): number {
    return this.#events;
  }

  /**
   * Publishes events of as many traces, over all partitions. Resolves once the log has stored them;
   * events that it did not acknowledge are sent again.
   */
  async publish(count: number): Promise<void> {
    const from = this.#events;
    this.#events += count;
    const events = Array.from({ length: count }, (_, at): OutgoingEvent => {
      const trace_id = `trace-${from + at}`;
      const event = logged('custom', { name: `step ${from + at}`, outcome: 'success', duration_ms: 1, trace_id });
      return {
        event,
        partition: partitionOf(event.org_id, trace_id, STREAM_PARTITIONS),
        bytes: Buffer.byteLength(event.body),
      };
    });
    for (;;) {
      const stored = await this.#publisher.publish(events).then(
        () => true,
        () => false,
      );
      if (stored) return;
    }
  }

  /** Publishes a few events at a time until it is stopped. @returns what stops it, and resolves once all are stored */
  load(): () => Promise<void> {
    const stopping = new AbortController();
    const running = (async () => {
      while (!stopping.signal.aborted) {
        await this.publish(LOAD.events);
        await pause(LOAD.pauseMs);
      }
    })();
    return async () => {
      stopping.abort();
      await running;
    };
  }

  /** Waits until every acknowledged event has landed. */
  async landed(withinMs = 60_000): Promise<void> {
    await eventually(
      async () => Number(await this.database.run('SELECT uniqExact(event_key) FROM spans')) >= this.#events,
      {
        withinMs,
        what: `${this.#events} events in the store`,
      },
    );
  }

  /** Returns how often rows of events, of their use and of their traces are in the store. */
  async counts(): Promise<{ rows: number; events: number; positions: number; used: number; traces: number }> {
    const text = await this.database.run(`SELECT
      toUInt32(count()) AS rows, toUInt32(uniqExact(event_key)) AS events,
      toUInt32(uniqExact(partition, log_seq, log_index, log_sub)) AS positions,
      (SELECT toUInt32(sum(events)) FROM usage_events) AS used, (SELECT toUInt32(sum(sign * spans)) FROM traces) AS traces
      FROM spans FORMAT JSONEachRow`);
    return JSON.parse(text) as Awaited<ReturnType<StreamsPipeline['counts']>>;
  }

  async close(): Promise<void> {
    for (const worker of this.#workers) worker.kill('SIGKILL');
    await Promise.all(this.#workers.map(({ exited }) => exited));
    await this.log.nc.close();
    await this.nats.remove();
    await this.database.drop();
  }
}
