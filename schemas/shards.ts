// The setting SERVICE_CLICKHOUSE_SHARDS: which ClickHouse servers form the store, and which partitions
// of the ingest log land in each. Pure.
import { z } from 'zod';

/** Shards that a store may have: the numbers of their documents leave room for no more (document_numbers.ts). */
export const SHARDS_MAX = 64;

/** A shard of the store. */
export interface ShardSetting {
  /** Name in logs and records; it stays the same when the server moves. */
  name: string;
  /** First and last partition whose rows land in the shard. */
  from: number;
  to: number;
  /** http(s)://user:password@host:port/database, at least one: rows land at the first, reads may begin at any. */
  urls: readonly string[];
}

/** A text that does not describe shards. */
export class ShardsError extends Error {}

const ENTRY = /^([a-z0-9_-]{1,32}):(\d{1,3})-(\d{1,3})=(\S+)$/;
const FORM = 'name:first-last=http://user:password@host:port/database';

/**
 * Returns the shards of a setting: entries `name:first-last=url[,url]`, separated by white space, in which
 * first and last are partitions. Other URLs of an entry are replicas.
 * @throws ShardsError that names the entry, without its URL
 */
export function parseShards(text: string): ShardSetting[] {
  const shards = text.trim().split(/\s+/).map(shardOf);
  if (shards.length > SHARDS_MAX)
    throw new ShardsError(`has ${shards.length} shards; at most ${SHARDS_MAX} are possible`);
  for (const [index, { name, from, to }] of shards.entries()) {
    if (shards.findIndex((other) => other.name === name) !== index)
      throw new ShardsError(`names the shard ${name} twice`);
    const before = shards[index - 1]?.to ?? -1;
    if (from !== before + 1 || to < from)
      throw new ShardsError(
        `gives the shard ${name} the partitions ${from} to ${to}; each range begins where the one before ends, the first at 0`,
      );
  }
  return shards;
}

/** The setting as settings are parsed. */
export const shardsSetting = z.string().transform((text, context) => {
  try {
    return parseShards(text);
  } catch (error) {
    if (!(error instanceof ShardsError)) throw error;
    context.addIssue({ code: 'custom', message: error.message });
    return z.NEVER;
  }
});

function shardOf(entry: string): ShardSetting {
  const [, name, from, to, urls] = ENTRY.exec(entry) ?? [];
  if (name === undefined || from === undefined || to === undefined || urls === undefined)
    throw new ShardsError(`must consist of entries ${FORM}; got "${entry.replace(/=.*/s, '=…')}"`);
  const all = urls.split(',');
  const wrong = all.find((url) => !['http:', 'https:'].includes(URL.parse(url)?.protocol ?? ''));
  if (wrong !== undefined)
    throw new ShardsError(`has a URL of the shard ${name} that does not begin with http:// or https://`);
  return { name, from: Number(from), to: Number(to), urls: all };
}

/**
 * Checks that shards take every partition of the log.
 * @throws ShardsError if they take more or fewer
 */
export function checkRanges(shards: readonly ShardSetting[], partitions: number): void {
  const taken = (shards.at(-1)?.to ?? -1) + 1;
  if (taken !== partitions)
    throw new ShardsError(`takes the partitions 0 to ${taken - 1}; the ingest log has 0 to ${partitions - 1}`);
}
