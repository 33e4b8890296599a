// The records of all partitions in the bucket `partitions`: watched into memory, and written by compare-and-set on their
// revisions. The watch is renewed until `close`, however often it breaks.
import type { KV, KvEntry } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../../ops/platform/logger.ts';
import { partitionKey, type PartitionRecord, partitionRecord } from '../../schemas/records/partition.ts';

/** The record of a partition at a revision of the bucket. */
export interface RecordRevision {
  record: PartitionRecord;
  revision: number;
}

const WATCH_AGAIN_MS = 250;

const encode = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

export class PartitionRecords {
  readonly #nc: NatsConnection;
  readonly #kv: KV;
  readonly #logger: Logger;
  readonly #onRecord: (record: PartitionRecord) => void;
  readonly #records = new Map<number, RecordRevision>();
  #closed = false;
  #stopWatch: (() => void) | null = null;

  /** @param onRecord called with each record that the watch reports */
  constructor(
    { nc, kv, logger }: { nc: NatsConnection; kv: KV; logger: Logger },
    onRecord: (record: PartitionRecord) => void,
  ) {
    this.#nc = nc;
    this.#kv = kv;
    this.#logger = logger;
    this.#onRecord = onRecord;
  }

  /** Number of known records. */
  get size(): number {
    return this.#records.size;
  }

  get(partition: number): RecordRevision | undefined {
    return this.#records.get(partition);
  }

  all(): PartitionRecord[] {
    return [...this.#records.values()].map(({ record }) => record);
  }

  /** Starts the watch, which reports every record and each change from then on. */
  async watch(): Promise<void> {
    await this.#watch();
    void this.#followConnection();
  }

  close(): void {
    this.#closed = true;
    this.#stopWatch?.();
  }

  /**
   * Writes over the revision that was read, or creates the record.
   *
   * @returns the revision written
   */
  async put(record: PartitionRecord, revision: number | undefined): Promise<number> {
    const [key, value] = [partitionKey(record.partition), encode(record)];
    const written =
      revision === undefined ? await this.#kv.create(key, value) : await this.#kv.update(key, value, revision);
    this.#records.set(record.partition, { record, revision: written });
    return written;
  }

  /** Reads a record from the bucket; null if there is none. */
  async reread(partition: number): Promise<RecordRevision | null> {
    const entry = await this.#kv.get(partitionKey(partition));
    if (entry?.operation !== 'PUT') return null;
    const current = { record: partitionRecord.parse(entry.json()), revision: entry.revision };
    this.#records.set(partition, current);
    return current;
  }

  async #watch(): Promise<void> {
    const watch = await this.#kv.watch();
    this.#stopWatch?.();
    if (this.#closed) {
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

  /** Retries until it works. Without a watch, this worker would never see partitions that others release. */
  async #watchAgain(): Promise<void> {
    while (!this.#closed && !this.#nc.isClosed()) {
      try {
        await this.#watch();
        return;
      } catch (error) {
        this.#logger.warn({ err: error }, 'partitions could not be watched; trying again');
        await new Promise((resolve) => setTimeout(resolve, WATCH_AGAIN_MS));
      }
    }
  }

  /**
   * Starts a new watch after a reconnect. The client does so only when a later change reveals a
   * gap, or after a minute of silence, so a lost change that was the last one would never be shown.
   */
  async #followConnection(): Promise<void> {
    for await (const { type } of this.#nc.status()) {
      if (this.#closed) return;
      if (type === 'reconnect') await this.#watchAgain();
    }
  }

  #see(entry: KvEntry): void {
    if (!entry.key.startsWith('partition.') || entry.operation !== 'PUT') return;
    const record = partitionRecord.parse(entry.json());
    this.#records.set(record.partition, { record, revision: entry.revision });
    this.#onRecord(record);
  }
}
