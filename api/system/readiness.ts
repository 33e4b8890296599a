// Decides whether the service can do its work: NATS is connected, ClickHouse answers, a live worker
// owns every partition, and hard limits can be decided. It also knows the live workers, for
// /metrics.
//
// A process that starts is ready once all of that holds and a worker takes job calls. Afterwards a
// partition may be without a worker for RESTART_MS: ingest and reads continue, so a restart of
// workers is no reason to send callers elsewhere.
import { z } from 'zod';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { HeartbeatListener } from '../../ops/exchange/heartbeats.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { partitionKey, type PartitionRecord } from '../../schemas/records/partition.ts';

/** A worker that was silent for this long counts as dead. */
const WORKER_ALIVE_MS = 5000;
const PING_MS_MAX = 1000;
/** An owner that has not started reading a partition within this time counts as no owner. */
const BRING_UP_MS_MAX = 30_000;

/** Maximum time for a worker to restart, or for other workers to take over its partitions. */
export const RESTART_MS = 10_000;

export const readiness = z
  .object({
    status: z.enum(['ready', 'unavailable']),
    checks: z.object({
      nats: z.enum(['ok', 'down']),
      clickhouse: z.enum(['ok', 'down']),
      consumers: z
        .enum(['ok', 'down'])
        .describe(
          'Every partition has a live worker. Down after a partition has had none for 10 seconds, so a restart of workers is not reported.',
        ),
      budgets: z
        .enum(['ok', 'down'])
        .describe(
          'Hard limits can be decided. Down for at most the first 30 seconds of an API process, while it counts the use that preceded it.',
        ),
    }),
  })
  .meta({ id: 'Readiness' });
export type Readiness = z.infer<typeof readiness>;

/** The pipeline as this process sees it. */
export interface Cluster {
  workers: { worker_id: string; up: boolean; heard_ms: number; metrics_url: string }[];
  partitions: { partition: number; record: PartitionRecord | null; state: 'up' | 'starting' | 'unowned' }[];
}

export interface ReadinessDeps {
  tracked: { readonly connected: boolean };
  /** Resolves with true when ClickHouse answers and its schema exists. */
  pingClickHouse: () => Promise<boolean>;
  partitions: number;
  /** Returns true once every hard limit can be decided in this process, and from then on. */
  budgetsReady: () => boolean;
}

export class ReadinessWatch {
  readonly #bucket: WatchedBucket<PartitionRecord>;
  readonly #heartbeats: HeartbeatListener;
  readonly #deps: ReadinessDeps;
  /** True once every partition was up and a worker took calls to run jobs. */
  #started = false;

  private constructor(bucket: WatchedBucket<PartitionRecord>, heartbeats: HeartbeatListener, deps: ReadinessDeps) {
    this.#bucket = bucket;
    this.#heartbeats = heartbeats;
    this.#deps = deps;
  }

  static async open(log: Log, deps: ReadinessDeps, onProblem: ReportProblem): Promise<ReadinessWatch> {
    return new ReadinessWatch(await watch(log, 'partitions', onProblem), new HeartbeatListener(log.nc), deps);
  }

  async check(): Promise<Readiness> {
    const nats = this.#deps.tracked.connected;
    const clickhouse = await within(this.#deps.pingClickHouse(), PING_MS_MAX);
    const consumers = nats && this.#areConsumed();
    const budgets = this.#deps.budgetsReady();
    const word = (ok: boolean) => (ok ? 'ok' : 'down');
    return {
      status: nats && clickhouse && consumers && budgets ? 'ready' : 'unavailable',
      checks: { nats: word(nats), clickhouse: word(clickhouse), consumers: word(consumers), budgets: word(budgets) },
    };
  }

  /** Returns the metrics URLs of live workers on this machine. */
  metricsUrls(): string[] {
    return this.#liveWorkers()
      .flatMap((worker) => this.#heartbeats.metricsUrl(worker) ?? [])
      .filter((url) => url !== '');
  }

  /** Returns the live workers and the partitions with their owners. */
  cluster(): Cluster {
    const now = performance.now();
    const workers = this.#liveWorkers();
    return {
      workers: workers.map((worker_id) => ({
        worker_id,
        up: this.#heartbeats.isUp(worker_id),
        heard_ms: Math.max(0, Math.round(now - (this.#heartbeats.heardAt(worker_id) ?? now))),
        metrics_url: this.#heartbeats.metricsUrl(worker_id) ?? '',
      })),
      partitions: this.#partitions().map((partition) => {
        const held = this.#bucket.held(partitionKey(partition));
        const record = held?.value ?? null;
        const unowned = this.#unownedSince(partition) !== null;
        return { partition, record, state: unowned ? 'unowned' : record?.up === false ? 'starting' : 'up' };
      }),
    };
  }

  close(): void {
    this.#bucket.close();
    this.#heartbeats.stop();
  }

  #liveWorkers(): string[] {
    return this.#heartbeats.live(performance.now(), WORKER_ALIVE_MS);
  }

  /**
   * Returns the number of partitions that no live worker owns, or whose owner has not started
   * reading them for long.
   */
  unowned(): number {
    return this.#partitions().filter((partition) => this.#unownedSince(partition) !== null).length;
  }

  #partitions(): number[] {
    return Array.from({ length: this.#deps.partitions }, (_, partition) => partition);
  }

  /**
   * Strict until the first success; after that a partition may be without a worker for RESTART_MS.
   */
  #areConsumed(): boolean {
    const before = performance.now() - RESTART_MS;
    const owned = this.#partitions().every((partition) => {
      const since = this.#unownedSince(partition);
      return since === null || (this.#started && since > before);
    });
    if (this.#started || !owned) return owned;
    const allUp = this.#partitions().every(
      (partition) => this.#bucket.held(partitionKey(partition))?.value.up !== false,
    );
    this.#started = allUp && this.#liveWorkers().some((worker) => this.#heartbeats.isUp(worker));
    return this.#started;
  }

  /**
   * Returns since when a partition has had no live owner that reads it, on the monotonic clock.
   * Null: it has one. -Infinity: it never had one.
   */
  #unownedSince(partition: number): number | null {
    const now = performance.now();
    const held = this.#bucket.held(partitionKey(partition));
    if (held === undefined) return -Infinity;
    const { owner, up } = held.value;
    if (owner === '') return held.moved_at;
    const silentSince = (this.#heartbeats.heardAt(owner) ?? -Infinity) + WORKER_ALIVE_MS;
    if (silentSince < now) return Math.max(silentSince, held.moved_at);
    // An owner writes nothing until it reads the partition, so the record is as old as its claim.
    return up === false && held.moved_at < now - BRING_UP_MS_MAX ? -Infinity : null;
  }
}

/** Resolves with false when the work rejects or takes too long. */
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
