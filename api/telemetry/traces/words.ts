// Finds the traces whose texts have the words of a search, from postings that the API process holds in
// memory. Where few traces have them, statements take their keys in place of the words. Where many
// have them, a page and its total are read without the words, and other traces are left out here.
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import { readTemplate, renderTemplate } from '../../../sql/client/template.ts';
import { READ_TIMEOUT_MS } from '../../../sql/client/query.ts';
import type { ListFilters } from './filters.ts';
import type { TraceRow } from './store.ts';

/** Traces up to which a statement takes their keys, 20 bytes each, in place of the words. */
const KEYS_MAX = 4000;

/** Keys of traces, each a UInt64 in two halves. */
export interface TraceKeys {
  readonly size: number;
  has(low: number, high: number): boolean;
  /** Returns the keys as decimal text. */
  keys(): string[];
  /** Returns the keys as 8 bytes each, the lower half first. */
  packed(): Buffer;
}

/** Returns the traces that have a text with all of the words; null where that would take too much. */
export type FindByWords = (
  query: { org_id: string; words: readonly string[]; since: number | undefined; until: undefined },
  signal: AbortSignal,
) => Promise<TraceKeys | null>;

export interface WordsDeps {
  clickhouse: ClickHouse;
  findByWords: FindByWords;
  /** Traces up to which a statement takes their keys; KEYS_MAX unless given. */
  keysMax?: number;
}

export interface Worded {
  /** Without words where few traces have them. */
  filters: ListFilters;
  /** Traces that have the words, where they are many and known. */
  among: TraceKeys | null;
}

/** Finds the traces that have the words of the filters. */
export async function tracesWithWords(
  { findByWords, keysMax = KEYS_MAX }: WordsDeps,
  filters: ListFilters,
  signal: AbortSignal,
): Promise<Worded> {
  const { org_id, words, since_ms } = filters;
  if (words === undefined) return { filters, among: null };
  // No span starts before its trace, but one may start long after it.
  const found = await findByWords({ org_id, words, since: since_ms, until: undefined }, signal);
  if (found === null || found.size > keysMax) return { filters, among: found };
  return { filters: { ...filters, words: undefined, trace_keys: found.keys() }, among: null };
}

/** Characters of a parameter of a statement: the engine takes 128 KiB. */
const PART_CHARS = 120_000;

/** Returns keys as the parameter `trace_set` of filters takes them. */
export function keyParts(keys: TraceKeys): { part: string }[] {
  const text = keys.packed().toString('base64');
  return Array.from({ length: Math.ceil(text.length / PART_CHARS) }, (_, index) => ({
    part: text.slice(index * PART_CHARS, (index + 1) * PART_CHARS),
  }));
}

const HALF = 0xffff_ffffn;

/** Returns those of the rows whose traces are among the keys. */
export function rowsAmong<Row extends Pick<TraceRow, 'trace_key'>>(keys: TraceKeys, rows: readonly Row[]): Row[] {
  return rows.filter(({ trace_key }) => {
    const key = BigInt(trace_key);
    return keys.has(Number(key & HALF), Number(key >> 32n));
  });
}

const KEY_ROWS = readTemplate('traces/keys.sql');
/** A key of 8 bytes and a sign of one. */
const KEY_ROW_BYTES = 9;

/** Returns the number of traces within the filters, their words aside, that are among the keys. */
export async function countAmong(
  clickhouse: ClickHouse,
  filters: ListFilters,
  keys: TraceKeys,
  { signal }: QueryOptions,
): Promise<number> {
  const statement = renderTemplate(KEY_ROWS, { ...filters, words: undefined });
  let total = 0;
  await clickhouse.records(
    { name: 'trace_keys', timeoutMs: READ_TIMEOUT_MS, signal, ...statement },
    KEY_ROW_BYTES,
    (rows) => {
      for (let at = 0; at < rows.length; at += KEY_ROW_BYTES)
        if (keys.has(rows.readUInt32LE(at), rows.readUInt32LE(at + 4))) total += rows.readInt8(at + 8);
    },
  );
  return total;
}
