// The setting SERVICE_CLICKHOUSE_SHARDS: which ClickHouse servers form the store, and which partitions
// of the ingest log land in each. Pure.
import { z } from 'zod';

/** Shards that a store may have: the numbers of their documents leave room for no more (document_numbers.ts). */
export const SHARDS_MAX = 64;

/** A shard of the store. */
export interface ShardSetting {
  /** Name in logs and records; it stays the same when the server moves. */
  name: string;
  /** First and last partition whose rows land in the shard; null for a shard that gets partitions later. */
  range: { from: number; to: number } | null;
  /** http(s)://user:password@host:port/database, at least one: rows land at the first, reads may begin at any. */
  urls: readonly string[];
}

/** A text that does not describe shards. */
export class ShardsError extends Error {}

const ENTRY = /^([a-z0-9_-]{1,32})(?::(\d{1,3})-(\d{1,3}))?=(\S+)$/;
const FORM = 'name:first-last=http://user:password@host:port/database';

/**
 * Returns the shards of a setting: entries `name:first-last=url[,url]`, separated by white space, in which
 * first and last are partitions. An entry without them names a shard that has none yet. Other URLs of an
 * entry are replicas.
 * @throws ShardsError that names the entry, without its URL
 */
export function parseShards(text: string): ShardSetting[] {
  const shards = text.trim().split(/\s+/).map(shardOf);
  if (shards.length > SHARDS_MAX)
    throw new ShardsError(`has ${shards.length} shards; at most ${SHARDS_MAX} are possible`);
  let next = 0;
  for (const [index, { name, range }] of shards.entries()) {
    if (shards.findIndex((other) => other.name === name) !== index)
      throw new ShardsError(`names the shard ${name} twice`);
    if (range === null) continue;
    if (range.from !== next || range.to < range.from)
      throw new ShardsError(
        `gives the shard ${name} the partitions ${range.from} to ${range.to}; each range begins where the one before ends, the first at 0`,
      );
    next = range.to + 1;
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
  if (name === undefined || urls === undefined)
    throw new ShardsError(`must consist of entries ${FORM}; got "${entry.replace(/=.*/s, '=…')}"`);
  const all = urls.split(',');
  const wrong = all.find((url) => !['http:', 'https:'].includes(URL.parse(url)?.protocol ?? ''));
  if (wrong !== undefined)
    throw new ShardsError(`has a URL of the shard ${name} that does not begin with http:// or https://`);
  const range = from === undefined || to === undefined ? null : { from: Number(from), to: Number(to) };
  return { name, range, urls: all };
}

/**
 * Returns the shard of each partition by its name.
 * @throws ShardsError if the shards take more or fewer partitions than the log has
 */
export function shardsOfPartitions(shards: readonly ShardSetting[], partitions: number): string[] {
  const names = shards.flatMap(({ name, range }) =>
    range === null ? [] : Array.from({ length: range.to - range.from + 1 }, () => name),
  );
  if (names.length !== partitions)
    throw new ShardsError(`takes the partitions 0 to ${names.length - 1}; the ingest log has 0 to ${partitions - 1}`);
  return names;
}

/** Where the rows of a partition are. */
export interface PartitionPlace {
  /** Name of the shard in which its rows land. */
  now: string;
  /** Shards in which rows of it landed before, the newest first. */
  before: readonly string[];
}

const ranges = z.array(z.object({ name: z.string(), from: z.int(), to: z.int() }));
const placesRecord = z.object({
  /** Every shard that was ever named, in the order in which they came: the numbers of documents depend on it. */
  names: z.array(z.string()),
  /** By partition. */
  places: z.array(z.object({ now: z.string(), before: z.array(z.string()) })),
});
export type ShardsRecord = z.output<typeof placesRecord>;

/**
 * The record of the shards in the bucket `service`. A list of ranges, which versions that cannot move partitions
 * read too, until the first partition moves or a shard without partitions is named.
 */
export const shardsRecord = z.union([placesRecord, ranges.transform((list) => firstPlaces(list))]);

/** Returns the record of shards that are new, in the form that is written. */
export function firstRecord(
  shards: readonly ShardSetting[],
  partitions: number,
): z.input<typeof ranges> | ShardsRecord {
  const names = shardsOfPartitions(shards, partitions);
  const listed = shards.flatMap(({ name, range }) => (range === null ? [] : [{ name, ...range }]));
  if (listed.length === shards.length) return listed;
  return { names: shards.map(({ name }) => name), places: names.map((now) => ({ now, before: [] })) };
}

const firstPlaces = (list: z.output<typeof ranges>): ShardsRecord => ({
  names: list.map(({ name }) => name),
  places: list.flatMap(({ name, from, to }) =>
    Array.from({ length: to - from + 1 }, () => ({ now: name, before: [] as string[] })),
  ),
});

/** Returns the record with the names of all shards of a setting; the same record if it has them. */
export function namedRecord(record: ShardsRecord, shards: readonly ShardSetting[]): ShardsRecord {
  const names = [...new Set([...record.names, ...shards.map(({ name }) => name)])];
  return names.length === record.names.length ? record : { ...record, names };
}

/** Returns the record with the partitions in the shards of a setting; the same record if they are there. */
export function movedRecord(record: ShardsRecord, shards: readonly ShardSetting[]): ShardsRecord {
  const wanted = shardsOfPartitions(shards, record.places.length);
  const { names } = namedRecord(record, shards);
  const places = record.places.map(({ now, before }, partition) => {
    const next = wanted[partition] ?? now;
    return next === now ? { now, before } : { now: next, before: [now, ...before.filter((name) => name !== next)] };
  });
  const isSame =
    names.length === record.names.length && places.every((place, at) => place.now === record.places[at]?.now);
  return isSame ? record : { names, places };
}
