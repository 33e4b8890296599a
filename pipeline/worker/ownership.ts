// Who owns which partition: heartbeats of workers, and a record for each partition in a KV bucket.
// A worker beats; one that was not heard for TTL_MS, by the listener's own monotonic clock, is dead. Live workers share the
// partitions evenly by their sorted ids. A record changes only by CAS on its revision, and a new owner raises its epoch:
// an owner that was paused finds its next write refused. What keeps it from landing rows meanwhile is the fence in the
// store, not this clock.
import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { HeartbeatListener, sendBeat } from '../../ops/exchange/heartbeats.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { partitionKey, partitionRecord, type PartitionRecord } from '../../schemas/records/partition.ts';

export interface OwnershipOptions {
  nc: NatsConnection;
  kv: KV;
  workerId: string;
  partitions: number;
  metricsUrl: string;
  /** Whether the whole worker has started: its beats say so. Unset: it has. */
  isUp?: () => boolean;
  /** Epochs begin after this one: where the log is newer than the store, the store knows fences of an older log. Unset: 0. */
  epochBase?: number;
  log: Logger;
  /** Brings partitions up; resolves when they are being read. After a rejection it is asked again, also for those that are up already. */
  acquire(records: PartitionRecord[]): Promise<void>;
  /** Finishes a partition that is to be given back: no more is read, what was read has landed and is checkpointed. */
  release(partitions: number[]): Promise<void>;
  /** A partition was taken by another worker: drop it at once, write nothing. */
  lose(partition: number): void;
}

interface Held {
  record: PartitionRecord;
  revision: number;
}

/** A record by which this worker owns the partition. */
interface Own extends Held {
  /** Whether acquire is through with it. Until then every tick asks again. */
  acquired: boolean;
}

export const BEAT_MS = 500;
export const TTL_MS = 2000;
/** A worker that was silent for this long is forgotten. */
const FORGET_MS = 60_000;
/** Membership must be unchanged for this long before partitions are given back to a newcomer. */
const SETTLE_MS = 750;
const WATCH_AGAIN_MS = 250;

const encode = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #held = new Map<number, Own>();
  /** All records as the watch shows them. */
  readonly #records = new Map<number, Held>();
  readonly #heartbeats: HeartbeatListener;
  #membersSince = 0;
  #members = '';
  #lastTickAt = performance.now();
  /** Since when whoever lives must have been heard. */
  #listeningSince = 0;
  #stopped = false;
  #working: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | null = null;
  #beats: NodeJS.Timeout | null = null;
  #stopWatch: (() => void) | null = null;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#heartbeats = new HeartbeatListener(options.nc);
  }

  /** Partitions held, with their epochs. */
  get owned(): [partition: number, epoch: number][] {
    return [...this.#held.values()].map(({ record }) => [record.partition, record.epoch]);
  }

  /** Epoch under which a partition is held; undefined when it is not. */
  epochOf(partition: number): number | undefined {
    return this.#held.get(partition)?.record.epoch;
  }

  isOwner(partition: number): boolean {
    return this.#held.has(partition);
  }

  /** JetStream sequence up to which every partition, whoever owns it, has landed; 0 while some are unknown. */
  get landedByAll(): number {
    if (this.#records.size < this.#options.partitions) return 0;
    return Math.min(...[...this.#records.values()].map(({ record }) => record.checkpoint));
  }

  /** True for one live worker at a time (as far as it can know): it does the work that belongs to no partition. */
  get isLeader(): boolean {
    return this.#held.size > 0 && this.#liveWorkers(performance.now())[0] === this.#options.workerId;
  }

  async start(): Promise<void> {
    await this.#watch();
    void this.#followConnection();
    this.#listeningSince = performance.now();
    this.#beat();
    // Beats must go on while a rebalance waits for a recovery, the first one too.
    this.#beats = setInterval(() => {
      this.#beat();
    }, BEAT_MS);
    // The own heartbeat comes back before the flush is confirmed, so the first round can take what is free.
    await this.#options.nc.flush();
    const tick = async (): Promise<void> => {
      this.#working = this.#rebalance().catch((error: unknown) => {
        this.#options.log.warn({ err: error }, 'partitions could not be rebalanced; trying again');
      });
      await this.#working;
    };
    const loop = (): void => {
      if (this.#stopped) return;
      this.#timer = setTimeout(() => void tick().finally(loop), BEAT_MS);
    };
    await tick();
    loop();
  }

  /**
   * Writes how far a partition has come.
   * @returns false when the partition is another's by now; it has been dropped then.
   */
  async checkpoint(partition: number, checkpoint: number, completedThrough: number): Promise<boolean> {
    const held = this.#held.get(partition);
    if (held === undefined) return false;
    return this.#write(held, { ...held.record, checkpoint, completed_through: completedThrough, up: true });
  }

  /** The store knows a newer owner. It is dropped; where the record still names this worker, the next tick claims it anew. */
  fenced(partition: number): void {
    if (this.#held.has(partition)) this.#drop(partition);
  }

  /** Gives everything back in order and says that this worker ends. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    await this.#working;
    if (this.#beats !== null) clearInterval(this.#beats);
    await this.#giveBack([...this.#held.keys()]);
    this.#stopWatch?.();
    this.#heartbeats.stop();
    this.#beat(true);
  }

  /** Shows every record as it is now, and each change from then on. */
  async #watch(): Promise<void> {
    const watch = await this.#options.kv.watch();
    this.#stopWatch?.();
    if (this.#stopped) {
      watch.stop();
      return;
    }
    const stop = (): void => {
      watch.stop();
    };
    this.#stopWatch = stop;
    void (async () => {
      for await (const entry of watch) this.#see(entry);
      if (this.#stopWatch === stop) await this.#watchAgain();
    })();
  }

  /** Tries until it works: without a watch, what others give back is never seen. */
  async #watchAgain(): Promise<void> {
    while (!this.#stopped && !this.#options.nc.isClosed()) {
      try {
        await this.#watch();
        return;
      } catch (error) {
        this.#options.log.warn({ err: error }, 'partitions could not be watched; trying again');
        await new Promise((resolve) => setTimeout(resolve, WATCH_AGAIN_MS));
      }
    }
  }

  /**
   * Watches anew after a lost connection. The client does so only when a later change shows a gap, or after a minute without a sign of
   * the server: a change that was lost on its way, and was the last one, would never be shown.
   */
  async #followConnection(): Promise<void> {
    for await (const { type } of this.#options.nc.status()) {
      if (this.#stopped) return;
      if (type === 'reconnect') await this.#watchAgain();
    }
  }

  #see(entry: KvEntry): void {
    if (!entry.key.startsWith('partition.') || entry.operation !== 'PUT') return;
    const record = partitionRecord.parse(entry.json());
    this.#records.set(record.partition, { record, revision: entry.revision });
    const held = this.#held.get(record.partition);
    if (held !== undefined && record.epoch > held.record.epoch) this.#drop(record.partition);
  }

  #drop(partition: number): void {
    this.#held.delete(partition);
    this.#options.log.warn({ partition }, 'partition was taken by another worker');
    this.#options.lose(partition);
  }

  #beat(ended = false): void {
    const { nc, workerId, metricsUrl, isUp } = this.#options;
    sendBeat(nc, { worker_id: workerId, metrics_url: metricsUrl, ended, up: isUp?.() ?? true });
  }

  /** Live workers, or none when not even this one's own heartbeats come back. */
  #liveWorkers(now: number): string[] {
    const own = this.#heartbeats.heardAt(this.#options.workerId) ?? -Infinity;
    return now - own > TTL_MS ? [] : this.#heartbeats.live(now, TTL_MS);
  }

  /** After a time in which nothing could be heard (the log was away, or this process was paused) the others' silence says nothing. */
  #excuseSilence(now: number): void {
    const own = this.#heartbeats.heardAt(this.#options.workerId) ?? now;
    const deaf = now - own > TTL_MS / 2 || now - this.#lastTickAt > TTL_MS;
    this.#lastTickAt = now;
    if (!deaf) return;
    this.#heartbeats.excuseAll(now);
    this.#listeningSince = now;
  }

  async #rebalance(): Promise<void> {
    const { workerId, partitions } = this.#options;
    const now = performance.now();
    this.#excuseSilence(now);
    this.#heartbeats.forget(now, FORGET_MS);
    const live = this.#liveWorkers(now);
    if (this.#stopped || !live.includes(workerId)) return;
    if (live.join() !== this.#members) {
      this.#members = live.join();
      this.#membersSince = now;
    }
    const mine = (partition: number): boolean => live[partition % live.length] === workerId;
    const all = Array.from({ length: partitions }, (_, partition) => partition);
    if (now - this.#membersSince >= SETTLE_MS) {
      await this.#giveBack([...this.#held.keys()].filter((partition) => !mine(partition)));
      await Promise.all(
        all
          .filter((partition) => !mine(partition) && !this.#held.has(partition))
          .map((partition) => this.#free(partition)),
      );
    }
    const isFree = (partition: number): boolean => {
      const owner = this.#records.get(partition)?.record.owner ?? '';
      const dead = !live.includes(owner) && now - this.#listeningSince > TTL_MS;
      return owner === '' || dead || owner === workerId;
    };
    await this.#take(all.filter((partition) => mine(partition) && !this.#held.has(partition) && isFree(partition)));
    await this.#bringUp();
  }

  async #take(partitions: number[]): Promise<void> {
    await Promise.all(partitions.map((partition) => this.#claim(partition)));
    const taken = partitions.filter((partition) => this.#held.has(partition));
    if (taken.length > 0) this.#options.log.info({ partitions: taken }, 'partitions taken');
  }

  /** Brings up whatever is held and not up: just claimed, or left by a round that failed. */
  async #bringUp(): Promise<void> {
    const down = [...this.#held.values()].filter(({ acquired }) => !acquired);
    if (down.length === 0) return;
    try {
      await this.#options.acquire(down.map(({ record }) => record));
    } catch (error) {
      this.#options.log.warn({ err: error }, 'partitions could not be brought up; trying again');
      return;
    }
    for (const own of down) own.acquired = true;
  }

  async #claim(partition: number): Promise<void> {
    const { workerId, epochBase = 0 } = this.#options;
    const known = this.#records.get(partition);
    const record: PartitionRecord = {
      partition,
      owner: workerId,
      epoch: (known?.record.epoch ?? epochBase) + 1,
      checkpoint: known?.record.checkpoint ?? 0,
      completed_through: known?.record.completed_through ?? 0,
      up: false,
      at: new Date().toISOString(),
    };
    await this.#attempt(partition, async () => {
      const revision = await this.#put(record, known?.revision);
      this.#held.set(partition, { record, revision, acquired: false });
    });
  }

  /**
   * Marks free what names this worker though it does not hold it: the answer to a claim or a hand-over was lost. Nobody would take it,
   * as this worker lives.
   */
  async #free(partition: number): Promise<void> {
    const known = this.#records.get(partition);
    if (known?.record.owner !== this.#options.workerId) return;
    await this.#attempt(partition, async () => {
      await this.#put({ ...known.record, owner: '', at: new Date().toISOString() }, known.revision);
    });
  }

  /** A write that fails keeps nobody from the other partitions; the next tick decides anew by what the record says then. */
  async #attempt(partition: number, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      this.#options.log.debug({ err: error, partition }, 'the record of a partition was not written');
      // Our view of the record may be old; the watch brings the new one, or this look does.
      await this.#reread(partition).catch((cause: unknown) => {
        this.#options.log.warn({ err: cause, partition }, 'partition could not be looked at; trying again');
      });
    }
  }

  /** Writes over the revision that was read, or where there is no record. @returns the revision written */
  async #put(record: PartitionRecord, revision: number | undefined): Promise<number> {
    const { kv } = this.#options;
    const [key, value] = [partitionKey(record.partition), encode(record)];
    const written = revision === undefined ? await kv.create(key, value) : await kv.update(key, value, revision);
    this.#records.set(record.partition, { record, revision: written });
    return written;
  }

  async #reread(partition: number): Promise<Held | null> {
    const entry = await this.#options.kv.get(partitionKey(partition));
    if (entry?.operation !== 'PUT') return null;
    const held = { record: partitionRecord.parse(entry.json()), revision: entry.revision };
    this.#records.set(partition, held);
    return held;
  }

  async #giveBack(partitions: number[]): Promise<void> {
    if (partitions.length === 0) return;
    await this.#options.release(partitions);
    await Promise.all(partitions.map((partition) => this.#disown(partition)));
    this.#options.log.info({ partitions }, 'partitions given back');
  }

  /** Lets go of a partition that is released. Where that cannot be written, #free tries again, as the record names this worker still. */
  async #disown(partition: number): Promise<void> {
    const held = this.#held.get(partition);
    if (held === undefined) return;
    await this.#write(held, { ...held.record, owner: '' }).catch((error: unknown) => {
      this.#options.log.warn(
        { err: error, partition },
        'partition could not be marked free; trying again, and others take it when this worker is gone',
      );
    });
    this.#held.delete(partition);
  }

  async #write(held: Held, record: PartitionRecord): Promise<boolean> {
    const { partition } = record;
    const next = { ...record, at: new Date().toISOString() };
    const put = async (revision: number): Promise<void> => {
      held.revision = await this.#put(next, revision);
      held.record = next;
    };
    try {
      await put(held.revision);
      return true;
    } catch (error) {
      // Refused, or the answer got lost: the record itself tells which.
      const now = await this.#reread(partition);
      if (now?.record.epoch === held.record.epoch && now.record.owner === this.#options.workerId) {
        await put(now.revision);
        return true;
      }
      if (now === null) throw error;
      if (this.#held.get(partition) === held) this.#drop(partition);
      return false;
    }
  }
}
