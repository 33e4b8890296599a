// The shards of the store, as the first process that started with this log has named them. Every process
// must land in the same shard: rows of a partition in two shards would be doubled or missed.
import { type ShardSetting, ShardsError } from '../../../schemas/shards.ts';
import { LOG_PLACE_KEY, type Log, settle } from './open_log.ts';

const KEY = 'shards';

/** Shard in the record: what must not change. Addresses may. */
type FixedShard = Pick<ShardSetting, 'name' | 'from' | 'to'>;

/**
 * Fixes the shards of the store for as long as the log exists, or compares them with those that are fixed.
 * @param shards of the settings; undefined for a single server
 * @throws ShardsError if the settings name others
 */
export async function fixShards(log: Pick<Log, 'bucket'>, shards: readonly ShardSetting[] | undefined): Promise<void> {
  const wanted = (shards ?? []).map(({ name, from, to }): FixedShard => ({ name, from, to }));
  const fixed = await settle<FixedShard[]>(log, KEY, async () => {
    const before = await (await log.bucket('service')).get(LOG_PLACE_KEY);
    // A store that has rows of this log and no record has a single server.
    return before?.operation === 'PUT' ? [] : wanted;
  });
  if (textOf(fixed) !== textOf(wanted))
    throw new ShardsError(
      `SERVICE_CLICKHOUSE_SHARDS: the store of this log has ${textOf(fixed)}, and the setting ${textOf(wanted)}; shards and ranges stay as they were when the log was created`,
    );
}

const textOf = (shards: readonly FixedShard[]): string =>
  shards.length === 0 ? 'a single server' : shards.map(({ name, from, to }) => `${name}:${from}-${to}`).join(' ');
