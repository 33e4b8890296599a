// Whether the service can do its work now: the log reachable, ClickHouse answering, every partition owned by a live worker.
// Also knows which workers live, for /metrics.
import { z } from 'zod';
import { HeartbeatListener } from '../../ops/heartbeats.ts';
import type { Log } from '../../ops/nats/open_log.ts';
import { WatchedBucket } from '../../ops/watched_bucket.ts';

/** A worker that was not heard for this long is dead. */
const WORKER_ALIVE_MS = 5000;
const PING_MS_MAX = 1000;
/** An owner that has not brought a partition up in this time is as good as none. */
const BRING_UP_MS_MAX = 30_000;

const partitionRecord = z.looseObject({ partition: z.int(), owner: z.string(), up: z.boolean().optional() });
type PartitionRecord = z.infer<typeof partitionRecord>;

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
  readonly #bucket: WatchedBucket<PartitionRecord>;
  readonly #heartbeats: HeartbeatListener;
  readonly #deps: ReadinessDeps;

  private constructor(bucket: WatchedBucket<PartitionRecord>, heartbeats: HeartbeatListener, deps: ReadinessDeps) {
    this.#bucket = bucket;
    this.#heartbeats = heartbeats;
    this.#deps = deps;
  }

  static async open(log: Log, deps: ReadinessDeps, onProblem: (problem: string, cause: unknown) => void): Promise<ReadinessWatch> {
    const kv = await log.bucket('partitions');
    const bucket = await WatchedBucket.open(log.nc, kv, {
      name: 'partitions',
      parse: (text) => partitionRecord.parse(JSON.parse(text)),
      onProblem,
    });
    return new ReadinessWatch(bucket, new HeartbeatListener(log.nc), deps);
  }

  async check(): Promise<Readiness> {
    const nats = this.#deps.tracked.connected;
    const clickhouse = await within(this.#deps.pingClickHouse(), PING_MS_MAX);
    const consumers = nats && this.unowned() === 0;
    const word = (ok: boolean) => (ok ? 'ok' : 'down');
    return {
      status: nats && clickhouse && consumers ? 'ready' : 'unavailable',
      checks: { nats: word(nats), clickhouse: word(clickhouse), consumers: word(consumers) },
    };
  }

  /** Metrics addresses of live workers on this machine. */
  metricsUrls(): string[] {
    return this.#liveWorkers()
      .flatMap((worker) => this.#heartbeats.metricsUrl(worker) ?? [])
      .filter((url) => url !== '');
  }

  close(): void {
    this.#bucket.close();
    this.#heartbeats.stop();
  }

  #liveWorkers(): string[] {
    return this.#heartbeats.live(performance.now(), WORKER_ALIVE_MS);
  }

  /** How many partitions no live worker owns, or one has owned for long and not brought up. */
  unowned(): number {
    const alive = new Set(this.#liveWorkers());
    const claimedBefore = performance.now() - BRING_UP_MS_MAX;
    let count = 0;
    for (let partition = 0; partition < this.#deps.partitions; partition++) {
      const held = this.#bucket.held(`partition.${String(partition)}`);
      // While it is not up its owner writes nothing: the record is as old as the claim.
      const stuck = held?.value.up === false && held.moved_at < claimedBefore;
      if (held === undefined || stuck || !alive.has(held.value.owner)) count++;
    }
    return count;
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
