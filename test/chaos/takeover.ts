// Observes how long the partitions of a silent worker stay without landings: from the strike until each of them has a
// new owner and rows that landed after it.
import { HeartbeatListener } from '../../ops/exchange/heartbeats.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type PartitionRecord, partitionRecord } from '../../schemas/records/partition.ts';
import type { RunSql } from '../bench/store.ts';
import { pause } from './client.ts';

export interface TakeoverSources {
  log: Log;
  runSql: RunSql;
  /** True if the worker drains before it falls silent. */
  drains: boolean;
}

/** How long the partitions of a silent worker stayed without landings. */
export interface Takeover {
  /** Milliseconds from the strike until rows landed again in all of them, or until the watch ended before that. */
  ms: number;
  /** False if the load ended before rows landed again in all of them. */
  complete: boolean;
}

/**
 * Bound of a takeover of the partitions of a killed or paused worker, in milliseconds. On two cores that
 * also hold the load it takes 2 to 3 s, and on such a machine that runs other things beside up to three
 * times as long. A takeover that waits for a timeout of the service, such as the 30 s after which a
 * partition counts as unowned that is not up, takes longer than this on every machine.
 */
export const TAKEOVER_MS_MAX = 15_000;

/** A worker that is not heard for this long after the strike is silent: live ones are heard every 500 ms. */
const SILENT_MS = 1000;
/** A heartbeat that was sent before the strike may arrive this much later. */
const STRAY_MS = 100;
/** A worker that drains is silent after this time at the latest. */
const DRAIN_MS_MAX = 25_000;
const LOOK_MS = 50;
const LOOK_MS_MAX = 60_000;

/**
 * Follows the partitions of the workers that the strike silenced, from a moment right after it, until rows landed
 * again in all of them or `isOver` becomes true. Resolves with null if no worker fell silent.
 */
export async function watchTakeover(
  { log, runSql, drains }: TakeoverSources,
  isOver: () => boolean,
): Promise<Takeover | null> {
  const began = performance.now();
  const listener = new HeartbeatListener(log.nc);
  const records = new FollowedRecords();
  try {
    await records.follow(log);
    const before = new Map(records.byPartition);
    /** The partitions of workers that have announced their end, or were not heard since the strike. */
    const silenced = (): PartitionRecord[] =>
      [...before.values()].filter(({ owner }) => owner !== '' && (listener.heardAt(owner) ?? 0) < began + STRAY_MS);
    /** Newest position of each partition when its new owner was seen first, which is before that owner lands. */
    const from = new Map<number, number>();
    const newest = await newestRows(runSql, 0);
    const look = async (): Promise<void> => {
      const claimed = [...before.values()].filter(
        ({ partition, epoch }) => !from.has(partition) && (records.byPartition.get(partition)?.epoch ?? 0) > epoch,
      );
      const least = Math.min(...[...before.keys()].map((partition) => newest.get(partition) ?? 0));
      for (const [partition, position] of await newestRows(runSql, least)) newest.set(partition, position);
      for (const { partition } of claimed) from.set(partition, newest.get(partition) ?? 0);
    };
    const until = began + STRAY_MS + SILENT_MS;
    while (
      performance.now() < until ||
      (drains && silenced().length === 0 && performance.now() - began < DRAIN_MS_MAX)
    ) {
      if (isOver()) return null;
      await look();
      await pause(LOOK_MS);
    }
    const waiting = new Set(silenced().map(({ partition }) => partition));
    if (waiting.size === 0) return null;
    for (;;) {
      const now = performance.now();
      for (const partition of waiting) {
        const first = from.get(partition);
        const owner = before.get(partition)?.owner ?? '';
        if (first !== undefined && (newest.get(partition) ?? 0) > first) waiting.delete(partition);
        // Its owner is back before another worker has taken it over.
        else if (first === undefined && (listener.heardAt(owner) ?? 0) >= began + STRAY_MS) waiting.delete(partition);
      }
      if (waiting.size === 0) return from.size === 0 ? null : { ms: now - began, complete: true };
      if (isOver() || now - began > LOOK_MS_MAX) return { ms: now - began, complete: false };
      await pause(LOOK_MS);
      await look();
    }
  } catch {
    // NATS or the store is away, so this strike says nothing about a takeover.
    return null;
  } finally {
    records.stop();
    listener.stop();
  }
}

/** The records of all partitions, followed by a watch: reading each again and again loads the measured servers. */
class FollowedRecords {
  readonly byPartition = new Map<number, PartitionRecord>();
  #stop: () => void = () => undefined;

  /** Resolves once every record is known. */
  async follow(log: Log): Promise<void> {
    const watch = await (await log.bucket('partitions')).watch();
    this.#stop = () => {
      watch.stop();
    };
    await new Promise<void>((resolve, reject) => {
      void (async () => {
        for await (const entry of watch) {
          if (entry.operation === 'PUT') {
            const record = partitionRecord.parse(entry.json());
            this.byPartition.set(record.partition, record);
          }
          if (entry.delta === 0) resolve();
        }
        reject(new Error('the watch ended'));
      })().catch(reject);
    });
  }

  stop(): void {
    this.#stop();
  }
}

/** Returns the newest log position of each partition that has rows from a position on. */
async function newestRows(runSql: RunSql, from: number): Promise<Map<number, number>> {
  const text = await runSql(
    `SELECT partition, max(log_seq) FROM spans WHERE log_seq >= ${from} GROUP BY partition FORMAT TSV`,
  );
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line): [number, number] => {
        const [partition = '', position = ''] = line.split('\t');
        return [Number(partition), Number(position)];
      }),
  );
}
