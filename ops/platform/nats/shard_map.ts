// Which shard of the store has the rows of each partition, as a record in the bucket `service` says. Every
// process follows the record: rows of a partition that two processes land in different shards would be
// counted twice. The ranges of the setting are a wish, which a worker writes into the record (`move`).
import type { KV, KvEntry } from '@nats-io/kv';
import {
  firstRecord,
  movedRecord,
  namedRecord,
  type PartitionPlace,
  type ShardSetting,
  ShardsError,
  type ShardsRecord,
  shardsRecord,
} from '../../../schemas/shards.ts';
import { isLostWrite, waitAfterLostWrite } from './conflict.ts';
import { followKey } from './follow_key.ts';
import { LOG_PLACE_KEY, type Log, settle } from './open_log.ts';

/** Key of the record in the bucket `service`. */
export const SHARDS_KEY = 'shards';
/** Maximum writes of the record against other processes. */
const TRIES_MAX = 20;

export class ShardMap {
  readonly #kv: KV;
  readonly #settings: readonly ShardSetting[];
  readonly #listeners = new Set<(moved: number[]) => void>();
  readonly #onUnknown: (error: ShardsError) => void;
  #record: ShardsRecord;
  #revision = 0;

  private constructor(
    kv: KV,
    settings: readonly ShardSetting[],
    record: ShardsRecord,
    onUnknown: (error: ShardsError) => void,
  ) {
    this.#kv = kv;
    this.#settings = settings;
    this.#record = record;
    this.#onUnknown = onUnknown;
  }

  /**
   * Takes the shards of the record, which are those of the settings when the log is new.
   * @param settings undefined for a single server
   * @param onUnknown called if the record later names a shard that the settings do not have
   * @throws ShardsError if the settings lack a shard of the record, or name shards for a store of one server
   */
  static async open(
    log: Pick<Log, 'nc' | 'bucket'>,
    settings: readonly ShardSetting[] | undefined,
    partitions: number,
    onUnknown: (error: ShardsError) => void,
  ): Promise<ShardMap> {
    const kv = await log.bucket('service');
    const shards = settings ?? [];
    const decided = await settle<unknown>(log, SHARDS_KEY, async () => {
      // A store that has rows of this log and no record has a single server.
      const before = await kv.get(LOG_PLACE_KEY);
      return settings === undefined || before?.operation === 'PUT' ? [] : firstRecord(shards, partitions);
    });
    const record = shardsRecord.parse(decided);
    if ((record.names.length === 0) !== (settings === undefined))
      throw new ShardsError(
        `SERVICE_CLICKHOUSE_SHARDS: the store of this log has ${textOf(record)}, and the setting names ${shards.length === 0 ? 'none' : shards.map(({ name }) => name).join(', ')}; a store with rows stays one server or several`,
      );
    checkKnown(record, shards);
    const map = new ShardMap(kv, shards, record, onUnknown);
    if (settings === undefined) return map;
    // Fails here, not in the first move, if the settings take other partitions than the log has.
    movedRecord(record, shards);
    await map.#write(namedRecord);
    followKey({ nc: log.nc, kv }, SHARDS_KEY, (entry) => {
      map.#see(entry);
    });
    return map;
  }

  /** Revision of the record that this process knows; 0 for a single server. */
  get revision(): number {
    return this.#revision;
  }

  /** True while the ranges of the settings differ from where the partitions are. */
  get isToMove(): boolean {
    return this.#settings.length > 0 && movedRecord(this.#record, this.#settings) !== this.#record;
  }

  /** Names of the shards in the order in which they came; empty for a single server. */
  get names(): readonly string[] {
    return this.#record.names;
  }

  /** Number of partitions; 0 for a single server. */
  get partitions(): number {
    return this.#record.places.length;
  }

  /** Returns where the rows of a partition are; the name is empty for a single server. */
  placeOf(partition: number): PartitionPlace {
    return this.#record.places[partition] ?? { now: '', before: [] };
  }

  /**
   * Calls back with the partitions that have moved, as soon as they have.
   * @returns a function that stops it
   */
  onChange(listener: (moved: number[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Reads the record, which another process has changed. */
  async catchUp(): Promise<void> {
    const entry = await this.#kv.get(SHARDS_KEY);
    if (entry !== null) this.#see(entry);
  }

  /** Moves the partitions to the shards of the settings. Every shard of them must be able to take rows. */
  async move(): Promise<void> {
    await this.#write(movedRecord);
  }

  /** Writes the record as a change of it says, unless it is so already. */
  async #write(change: (record: ShardsRecord, shards: readonly ShardSetting[]) => ShardsRecord): Promise<void> {
    for (let tries = 1; ; tries++) {
      await this.catchUp();
      const wanted = change(this.#record, this.#settings);
      if (wanted === this.#record) return;
      try {
        this.#take(wanted, await this.#kv.update(SHARDS_KEY, JSON.stringify(wanted), this.#revision));
        return;
      } catch (error) {
        if (!isLostWrite(error) || tries >= TRIES_MAX) throw error;
        await waitAfterLostWrite(tries);
      }
    }
  }

  #see(entry: KvEntry): void {
    if (entry.operation === 'PUT') this.#take(shardsRecord.parse(entry.json()), entry.revision);
  }

  #take(record: ShardsRecord, revision: number): void {
    if (revision <= this.#revision) return;
    try {
      checkKnown(record, this.#settings);
    } catch (error) {
      this.#onUnknown(error as ShardsError);
      return;
    }
    const before = this.#record.places;
    this.#record = record;
    this.#revision = revision;
    const moved = record.places.flatMap(({ now }, partition) => (before[partition]?.now === now ? [] : [partition]));
    if (moved.length > 0) for (const listener of this.#listeners) listener(moved);
  }
}

/** @throws ShardsError if the settings do not say where a shard is */
function checkKnown({ places }: ShardsRecord, shards: readonly ShardSetting[]): void {
  const known = new Set(shards.map(({ name }) => name));
  const unknown = places.flatMap(({ now, before }) => [now, ...before]).find((name) => !known.has(name));
  if (unknown !== undefined)
    throw new ShardsError(
      `SERVICE_CLICKHOUSE_SHARDS: the store of this log has rows in the shard ${unknown}, which the setting does not name`,
    );
}

const textOf = ({ names }: ShardsRecord): string => (names.length === 0 ? 'a single server' : names.join(', '));
