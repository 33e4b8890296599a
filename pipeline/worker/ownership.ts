// Ownership of partitions: heartbeats of workers, and a record for each partition in a KV bucket.
//
// Live workers (live_workers.ts) share the partitions evenly, and move as few as they can when a worker
// joins or leaves (shares.ts). A record changes only by compare-and-set on its revision, and each new owner
// raises its epoch, so that the next write of a paused former owner is rejected. The fence in the
// store, not a clock, keeps a former owner from landing rows.
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { sendBeat, showPresence } from '../../ops/exchange/heartbeats.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import { BEAT_MS, LiveWorkers } from './live_workers.ts';
import type { PartitionHolder } from './partition_holder.ts';
import { PartitionRecords, type RecordRevision } from './partition_records.ts';
import { divide, divideByIds } from './shares.ts';

export interface OwnershipOptions {
  nc: NatsConnection;
  kv: KV;
  workerId: string;
  partitions: number;
  metricsUrl: string;
  /**
   * Returns whether the whole worker has started, which its heartbeats report. Defaults to true.
   */
  isUp?: () => boolean;
  /** Returns the stream of the log that takes the messages of a partition, as a number. */
  streamOf: (partition: number) => number;
  /**
   * Epochs start above this one: if the log is newer than the store, the store has fences of a
   * former log. Defaults to 0.
   */
  epochBase?: number;
  /** The shards' record as this worker knows it. Without it the store has one server. */
  places?: { readonly revision: number; catchUp: () => Promise<void> };
  /** Silence after which a worker is considered dead, in milliseconds. The default is that of LiveWorkers. */
  leaseMs?: number;
  logger: Logger;
}

/** The record by which this worker owns a partition. */
interface OwnedPartition extends RecordRevision {
  /**
   * True once the holder has acquired the partition. Until then every tick asks the holder again.
   */
  acquired: boolean;
  /** See formerOf. */
  former: string | null;
}

/** Fields by which heartbeats tell this version from older ones. */
const ABILITIES = { present: true, sticky: true };
/** The live workers, and what is to be released, must be unchanged for this long before partitions are released. */
const SETTLE_MS = 750;

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #owned = new Map<number, OwnedPartition>();
  readonly #records: PartitionRecords;
  readonly #workers: LiveWorkers;
  readonly #endPresence: () => void;
  /** null until `start`. Before, no partition is owned. */
  #holder: PartitionHolder | null = null;
  /** The live workers and the partitions to release, as a mark, and since when they are unchanged. */
  #settling = { mark: '', since: 0 };
  #stopped = false;
  #working: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #beats: NodeJS.Timeout | null = null;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#records = new PartitionRecords(options, (record) => {
      this.#see(record);
    });
    this.#workers = new LiveWorkers(options);
    this.#endPresence = showPresence(options.nc, options.workerId);
  }

  /** Owned partitions with their epochs. */
  get owned(): [partition: number, epoch: number][] {
    return [...this.#owned.values()].map(({ record }) => [record.partition, record.epoch]);
  }

  /** Returns the epoch under which this worker owns a partition; undefined if it does not. */
  epochOf(partition: number): number | undefined {
    return this.#owned.get(partition)?.record.epoch;
  }

  isOwner(partition: number): boolean {
    return this.#owned.has(partition);
  }

  /**
   * Position up to which each partition has landed, whichever worker owns it; 0 while the record of
   * a partition is unknown.
   */
  get checkpoints(): number[] {
    return Array.from(
      { length: this.#options.partitions },
      (_, partition) => this.#records.get(partition)?.record.checkpoint ?? 0,
    );
  }

  /**
   * True for one live worker at a time, as far as that worker can know. The leader does the work
   * that belongs to no partition.
   */
  get isLeader(): boolean {
    return this.#owned.size > 0 && this.#workers.live(performance.now())[0] === this.#options.workerId;
  }

  /** Returns the owner before, if that was another worker and it had read the partition; null otherwise. */
  formerOf = (partition: number): string | null => this.#owned.get(partition)?.former ?? null;
  /** Returns whether a worker lives, as far as this worker knows. */
  isLive = (worker: string): boolean => this.#workers.isLive(worker, performance.now());

  async start(holder: PartitionHolder): Promise<void> {
    this.#holder = holder;
    await this.#records.watch();
    this.#workers.start();
    this.#beat();
    // Heartbeats continue while a rebalance waits for a takeover, including the first one.
    this.#beats = setInterval(() => {
      this.#beat();
    }, BEAT_MS);
    // The worker receives its own heartbeat before the flush is confirmed, so the first round can
    // already claim free partitions.
    await this.#options.nc.flush();
    const tick = async (): Promise<void> => {
      this.#working = this.#rebalance().catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, 'partitions could not be rebalanced; trying again');
      });
      await this.#working;
    };
    const loop = (): void => {
      if (this.#stopped) return;
      this.#timer = setTimeout(() => void tick().finally(loop), this.#workers.lookAfterMs(performance.now()));
    };
    await tick();
    loop();
  }

  /**
   * Writes the checkpoint of a partition that this worker owns under an epoch.
   *
   * @returns false if it does not any more; the partition has been dropped if another worker owns it
   */
  async checkpoint(
    { partition, epoch }: { partition: number; epoch: number },
    checkpoint: number,
    completedThrough: number,
  ): Promise<boolean> {
    const own = this.#owned.get(partition);
    if (own?.record.epoch !== epoch) return false;
    return this.#write(own, { ...own.record, checkpoint, completed_through: completedThrough, up: true });
  }

  /**
   * Drops a partition for which the store has a newer fence. If its record still names this worker,
   * the next tick claims it again.
   */
  fenced(partition: number): void {
    if (this.#owned.has(partition)) this.#drop(partition);
  }

  /** Gives a partition up, if this worker owns it; the next tick claims it again under a new epoch. */
  renew(partition: number): void {
    this.#owned.delete(partition);
  }

  /** Releases all partitions in order, and announces that this worker ends. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#working;
    // Heartbeats continue, so that the other workers wait for a landing that outlasts the lease.
    await this.#handOver([...this.#owned.keys()], true);
    if (this.#beats !== null) clearInterval(this.#beats);
    this.#records.close();
    this.#workers.stop();
    this.#endPresence();
    this.#beat(true);
  }

  #see({ partition, epoch }: PartitionRecord): void {
    const own = this.#owned.get(partition);
    if (own !== undefined && epoch > own.record.epoch) this.#drop(partition);
  }

  #drop(partition: number): void {
    this.#owned.delete(partition);
    this.#options.logger.warn({ partition }, 'another worker has taken the partition over');
    this.#holder?.lose(partition);
  }

  #beat(ended = false): void {
    const { nc, workerId, metricsUrl, isUp } = this.#options;
    sendBeat(nc, { worker_id: workerId, metrics_url: metricsUrl, ended, up: isUp?.() ?? true, ...ABILITIES });
  }

  async #rebalance(): Promise<void> {
    const { workerId } = this.#options;
    const now = performance.now();
    const live = await this.#workers.look(now);
    if (this.#stopped || !live.includes(workerId)) return;
    this.#workers.keepGone(new Set(this.#records.all().map(({ owner }) => owner)));
    const { surplus } = this.#divide(live, now);
    if (this.#isSettled(`${live.join()} ${surplus.join()}`, now)) {
      await this.#handOver(surplus.filter((partition) => this.#owned.has(partition)));
      await Promise.all(
        surplus.filter((partition) => !this.#owned.has(partition)).map((partition) => this.#free(partition)),
      );
    }
    await this.#takeAll(() => this.#divide(live, now).free);
    await this.#bringUp(surplus);
  }

  /**
   * Divides the partitions as the records are now. Returns those in the name of this worker that are not its
   * share, and those of its share that it can claim. An owner that was not heard yet and is not known to be
   * dead gets a share too.
   */
  #divide(live: readonly string[], now: number): { surplus: number[]; free: number[] } {
    const { workerId, partitions, streamOf } = this.#options;
    const all = Array.from({ length: partitions }, (_, partition) => partition);
    const owners = all.map((partition) => {
      const owner = this.#records.get(partition)?.record.owner ?? '';
      return owner === '' || this.#workers.isDead(owner, live, now) ? null : owner;
    });
    const streams = all.map(streamOf);
    const present = [...new Set([...live, ...owners.filter((owner) => owner !== null)])].toSorted();
    const shares = this.#workers.areSticky(live)
      ? divide({ workers: present, owners, streams })
      : divideByIds({ workers: live, owners, streams });
    const isMine = (partition: number): boolean => this.#owned.has(partition) || owners[partition] === workerId;
    return {
      surplus: all.filter((partition) => shares[partition] !== workerId && isMine(partition)),
      free: all.filter(
        (partition) =>
          shares[partition] === workerId &&
          !this.#owned.has(partition) &&
          (owners[partition] === null || owners[partition] === workerId),
      ),
    };
  }

  /**
   * Returns whether partitions may be released: the reasons, as `mark` names them, have been the same for long
   * enough. None is released while it is not known whether an absent worker has died.
   */
  #isSettled(mark: string, now: number): boolean {
    if (mark !== this.#settling.mark) this.#settling = { mark, since: now };
    return now - this.#settling.since >= SETTLE_MS && !this.#workers.isSuspecting;
  }

  /**
   * Claims each free partition once. An owner frees the partitions that it releases one after the other, so
   * those that become free while others are claimed are claimed too, to be brought up with them.
   */
  async #takeAll(free: () => number[]): Promise<void> {
    const tried = new Set<number>();
    const untried = (): number[] => free().filter((partition) => !tried.has(partition));
    for (let partitions = untried(); partitions.length > 0; partitions = untried()) {
      for (const partition of partitions) tried.add(partition);
      await Promise.all(partitions.map((partition) => this.#claim(partition)));
    }
    const taken = [...tried].filter((partition) => this.#owned.has(partition));
    if (taken.length > 0) this.#options.logger.info({ partitions: taken }, 'partitions taken');
  }

  /**
   * Brings up every owned partition that is not up: those just claimed, and those of a round that
   * failed. One that is being released is left alone.
   */
  async #bringUp(surplus: readonly number[]): Promise<void> {
    const own = [...this.#owned.values()];
    const down = own.filter(({ acquired, record }) => !acquired && !surplus.includes(record.partition));
    if (down.length === 0) return;
    const began = performance.now();
    const up = await this.#holder?.acquire(down.map(({ record }) => record)).catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, 'partitions could not be brought up; trying again');
      return undefined;
    });
    if (up === undefined || up.length === 0) return;
    for (const one of down) one.acquired = up.includes(one.record.partition);
    this.#options.logger.info({ partitions: up, ms: Math.round(performance.now() - began) }, 'partitions are read');
  }

  async #claim(partition: number): Promise<void> {
    const { workerId, epochBase = 0, places } = this.#options;
    const known = this.#records.get(partition);
    // The owner before knew of a move that this worker does not know of: its rows would land in the wrong shard.
    const seen = known?.record.shards_at ?? 0;
    if (places !== undefined && seen > places.revision) {
      await places.catchUp();
      if (seen > places.revision) return;
    }
    const record: PartitionRecord = {
      partition,
      owner: workerId,
      epoch: (known?.record.epoch ?? epochBase) + 1,
      checkpoint: known?.record.checkpoint ?? 0,
      completed_through: known?.record.completed_through ?? 0,
      up: false,
      ...(places !== undefined && places.revision > 0 && { shards_at: places.revision }),
      at: new Date().toISOString(),
    };
    const owner = known?.record.up === true ? known.record.owner : '';
    const former = owner === '' || owner === workerId ? null : owner;
    await this.#attempt(partition, async () => {
      const revision = await this.#records.put(record, known?.revision);
      this.#owned.set(partition, { record, revision, acquired: false, former });
    });
  }

  /**
   * Clears the owner of a record that names this worker although it does not own the partition: the
   * answer to a claim or to a release was lost. No other worker would claim it while this one
   * lives.
   */
  async #free(partition: number): Promise<void> {
    const known = this.#records.get(partition);
    if (known?.record.owner !== this.#options.workerId) return;
    await this.#attempt(partition, async () => {
      await this.#records.put({ ...known.record, owner: '', at: new Date().toISOString() }, known.revision);
    });
  }

  /**
   * Runs a write whose failure must not affect other partitions. The next tick decides again from
   * the record as it is then.
   */
  async #attempt(partition: number, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#options.logger.debug({ err: error, partition }, 'the record of a partition was not written');
      // The known record may be stale. The watch brings the new one, or else this read does.
      await this.#records.reread(partition).catch((cause: unknown) => {
        this.#options.logger.warn(
          { err: cause, partition },
          'the record of a partition could not be read; trying again',
        );
      });
    }
  }

  async #handOver(partitions: number[], isLast = false): Promise<void> {
    if (partitions.length === 0) return;
    for (const partition of partitions) {
      const own = this.#owned.get(partition);
      // One that is released later than this call waits for it must not count as read.
      if (own !== undefined) own.acquired = false;
    }
    const released = (await this.#holder?.release(partitions, isLast)) ?? [];
    await Promise.all(released.map((partition) => this.#disown(partition)));
    if (released.length > 0) this.#options.logger.info({ partitions: released }, 'partitions released');
  }

  /**
   * Clears the owner of a released partition. If the write fails, the record still names this
   * worker, and #free retries.
   */
  async #disown(partition: number): Promise<void> {
    const own = this.#owned.get(partition);
    if (own === undefined) return;
    await this.#write(own, { ...own.record, owner: '' }).catch((error: unknown) => {
      this.#options.logger.warn(
        { err: error, partition },
        'a partition could not be marked free; trying again, and others take it over when the lease of this worker expires',
      );
    });
    this.#owned.delete(partition);
  }

  async #write(own: RecordRevision, record: PartitionRecord): Promise<boolean> {
    const { partition } = record;
    const next = { ...record, at: new Date().toISOString() };
    const put = async (revision: number): Promise<void> => {
      own.revision = await this.#records.put(next, revision);
      own.record = next;
    };
    try {
      await put(own.revision);
      return true;
    } catch (error) {
      // The write was rejected, or its answer was lost. The record tells which.
      const now = await this.#records.reread(partition);
      if (now?.record.epoch === own.record.epoch && now.record.owner === this.#options.workerId) {
        await put(now.revision);
        return true;
      }
      if (now === null) throw error;
      if (this.#owned.get(partition) === own) this.#drop(partition);
      return false;
    }
  }
}
