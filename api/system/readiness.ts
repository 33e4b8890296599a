// Whether the service can do its work now: the log reachable, ClickHouse answering, every partition owned by a live worker.
// Also knows which workers live, for /metrics.
import { z } from 'zod';
import type { Log } from '../../ops/streams.ts';
import { WatchedBucket } from '../../ops/watched_bucket.ts';

/** A worker whose heartbeat did not move for this long is dead. */
const WORKER_ALIVE_MS = 5000;
const PING_MS_MAX = 1000;

const workerRecord = z.looseObject({ worker_id: z.string(), metrics_url: z.string() });
const partitionRecord = z.looseObject({ partition: z.int(), owner: z.string() });
const anyRecord = z.union([workerRecord, partitionRecord, z.looseObject({})]);
type AnyRecord = z.infer<typeof anyRecord>;

export const readiness = z
  .object({
    status: z.enum(['ready', 'unavailable']),
    checks: z.object({ nats: z.enum(['ok', 'down']), clickhouse: z.enum(['ok', 'down']), consumers: z.enum(['ok', 'down']) }),
  })
  .meta({ id: 'Readiness' });
export type Readiness = z.infer<typeof readiness>;

export interface ReadinessDeps {
  tracked: { readonly connected: boolean };
  /** True when ClickHouse answers and its tables are there. */
  pingClickHouse: () => Promise<boolean>;
  partitions: number;
}

export class ReadinessWatch {
  readonly #bucket: WatchedBucket<AnyRecord>;
  readonly #deps: ReadinessDeps;

  private constructor(bucket: WatchedBucket<AnyRecord>, deps: ReadinessDeps) {
    this.#bucket = bucket;
    this.#deps = deps;
  }

  static async open(log: Log, deps: ReadinessDeps, onProblem: (problem: string, cause: unknown) => void): Promise<ReadinessWatch> {
    const kv = await log.bucket('partitions');
    const bucket = await WatchedBucket.open(log.nc, kv, {
      name: 'partitions',
      parse: (text) => anyRecord.parse(JSON.parse(text)),
      onProblem,
    });
    return new ReadinessWatch(bucket, deps);
  }

  async check(): Promise<Readiness> {
    const nats = this.#deps.tracked.connected;
    const clickhouse = await within(this.#deps.pingClickHouse(), PING_MS_MAX);
    const consumers = nats && this.#consumersRun();
    const word = (ok: boolean) => (ok ? 'ok' : 'down');
    return {
      status: nats && clickhouse && consumers ? 'ready' : 'unavailable',
      checks: { nats: word(nats), clickhouse: word(clickhouse), consumers: word(consumers) },
    };
  }

  /** Metrics addresses of live workers. */
  metricsUrls(): string[] {
    return [...this.#liveWorkers().values()];
  }

  close(): void {
    this.#bucket.close();
  }

  #liveWorkers(): Map<string, string> {
    const alive = new Map<string, string>();
    const since = performance.now() - WORKER_ALIVE_MS;
    for (const [key, { value, moved_at }] of this.#bucket.entries()) {
      const worker = key.startsWith('worker.') && moved_at >= since ? workerRecord.safeParse(value) : null;
      if (worker?.success === true) alive.set(worker.data.worker_id, worker.data.metrics_url);
    }
    return alive;
  }

  #consumersRun(): boolean {
    const alive = this.#liveWorkers();
    for (let partition = 0; partition < this.#deps.partitions; partition++) {
      const record = partitionRecord.safeParse(this.#bucket.get(`partition.${String(partition)}`));
      if (!record.success || !alive.has(record.data.owner)) return false;
    }
    return true;
  }
}

/** False when it rejects or takes too long. */
async function within(work: Promise<boolean>, ms: number): Promise<boolean> {
  const timeout = Promise.withResolvers<boolean>();
  const timer = setTimeout(timeout.resolve, ms, false);
  try {
    return await Promise.race([work, timeout.promise]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
