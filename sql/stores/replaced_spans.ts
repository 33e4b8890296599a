// Reads and corrects the rows of spans whose model call another span counts by now. Like a repricing
// this changes landed rows, by a mutation in the engine's background. A row is corrected to constants,
// so a correction may be repeated.
import { z } from 'zod';
import { SPAN_FLAGS } from '../../pipeline/domain/traces/span_flags.ts';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';

const TIMEOUT_MS = 110_000;
/** Maximum spans corrected by one mutation. */
export const REPLACED_MAX = 500;
const UTC = (ms: number): string => new Date(ms).toISOString().slice(0, -1).replace('T', ' ');

const replacingSpans = defineQuery({
  name: 'replacing_spans',
  file: 'landing/replacing_spans.sql',
  timeoutMs: TIMEOUT_MS,
  params: z.object({ since: z.int(), replaces: z.int(), rows: z.int() }),
  row: z.object({
    org_id: z.string(),
    trace_id: z.string(),
    span_id: z.string(),
    replaces: z.array(z.string()),
    received_ms: z.coerce.number(),
  }),
});
type ReplacingSpan = Awaited<ReturnType<typeof replacingSpans>>[number];

const replacedSpans = defineQuery({
  name: 'replaced_spans',
  file: 'landing/replaced_spans.sql',
  timeoutMs: TIMEOUT_MS,
  params: z.object({
    orgs: z.array(z.string()),
    traces: z.array(z.string()),
    spans: z.array(z.string()),
    duplicate: z.int(),
  }),
  row: z.object({
    org_id: z.string(),
    trace_id: z.string(),
    span_id: z.string(),
    started_ms: z.coerce.number(),
    partition: z.int(),
    log_seq: z.string(),
    log_index: z.int(),
    log_sub: z.int(),
  }),
});

/** A row that still counts, with the span that counts in its place. */
interface ReplacedRow {
  org_id: string;
  started_ms: number;
  /** Position in the log, as text. */
  place: string;
  by: string;
}

/** Returns spans received since a time, in milliseconds, that replace others; at most REPLACED_MAX. */
export const readReplacing = (client: ClickHouse, since: number): Promise<ReplacingSpan[]> =>
  replacingSpans(client, { since, replaces: SPAN_FLAGS.replaces, rows: REPLACED_MAX });

/** Returns the rows that these spans replace and that still count. */
export async function readReplaced(client: ClickHouse, replacing: readonly ReplacingSpan[]): Promise<ReplacedRow[]> {
  const by = new Map(
    replacing.flatMap(({ org_id, trace_id, span_id, replaces }) =>
      replaces.map((replaced) => [JSON.stringify([org_id, trace_id, replaced]), span_id] as const),
    ),
  );
  const unique = (values: readonly string[]): string[] => [...new Set(values)];
  const rows = await replacedSpans(client, {
    orgs: unique(replacing.map(({ org_id }) => org_id)),
    traces: unique(replacing.map(({ trace_id }) => trace_id)),
    spans: unique(replacing.flatMap(({ replaces }) => replaces)),
    duplicate: SPAN_FLAGS.duplicate | SPAN_FLAGS.replaces,
  });
  return rows.flatMap(({ org_id, trace_id, span_id, started_ms, partition, log_seq, log_index, log_sub }) => {
    const found = by.get(JSON.stringify([org_id, trace_id, span_id]));
    if (found === undefined || found === span_id) return [];
    return [{ org_id, started_ms, place: `${partition}:${log_seq}:${log_index}:${log_sub}`, by: found }];
  });
}

const PLACE = "concat(toString(partition), ':', toString(log_seq), ':', toString(log_index), ':', toString(log_sub))";
const DUPLICATE_OF = `toJSONString(transform(${PLACE}, {places:Array(String)}, {by:Array(String)}, ''))`;
const UPDATES: readonly (readonly [table: string, set: string])[] = [
  [
    'spans',
    `input_tokens = 0, output_tokens = 0, cached_input_tokens = 0, cache_write_tokens = 0, reasoning_tokens = 0, cost_usd = 0, price_source = '',
      price_input_usd_per_mtok = NULL, price_output_usd_per_mtok = NULL, price_cached_input_usd_per_mtok = NULL, flags = bitOr(flags, ${SPAN_FLAGS.duplicate}),
      attributes = concat('{"duplicate_of":', ${DUPLICATE_OF}, if(attributes = '{}', '}', concat(',', substring(attributes, 2))))`,
  ],
  ['span_texts_recent', 'cost_usd = 0'],
  ['span_texts', 'cost_usd = 0'],
];

/** Makes rows duplicates. Resolves when they are. */
export async function markReplaced(client: ClickHouse, rows: readonly ReplacedRow[]): Promise<void> {
  const started = rows.map(({ started_ms }) => started_ms);
  const params = {
    orgs: [...new Set(rows.map(({ org_id }) => org_id))],
    from: UTC(Math.min(...started)),
    to: UTC(Math.max(...started)),
    places: rows.map(({ place }) => place),
    by: rows.map(({ by }) => by),
  };
  for (const [table, set] of UPDATES) {
    const still = table === 'spans' ? `AND bitAnd(flags, ${SPAN_FLAGS.duplicate}) = 0` : 'AND cost_usd != 0';
    await client.execute({
      name: 'mark_replaced',
      sql: `ALTER TABLE ${table} UPDATE ${set} WHERE org_id IN {orgs:Array(String)} AND started_at >= {from:String} AND started_at <= {to:String}
        AND has({places:Array(String)}, ${PLACE}) ${still} SETTINGS mutations_sync = 1`,
      params,
      timeoutMs: TIMEOUT_MS,
    });
  }
}
