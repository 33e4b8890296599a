// Reads what a worker needs of the rows of a partition: its open traces, its newest usage, what
// tail sampling decided, and whether events, traces and corrections that the worker does not
// remember have landed. Reads only; each is bounded in time. IN takes a subquery throughout: the
// engine uses no index for a computed array.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';
import { type PartitionFrom, positionParams, positionsShape } from './positions.ts';

const READ_TIMEOUT_MS = 60_000;
/** Bytes of a record of trace_hashes: a UInt16 and a UInt32. */
const HASH_BYTES = 6;
/** Bytes of a record of window_ids: a UInt16, a UInt64 and three UInt32. */
const ID_BYTES = 22;
/** SQL twin of traceHash in pipeline/traces/trace_filter.ts. */
const TRACE_HASH = "xxHash32(concat(org_id, ' ', trace_id))";
/** SQL twins of the two hashes of an organization in pipeline/domain/traces/event_identity.ts. */
const ORG_HIGH = "xxHash32(concat('high ', org_id))";
const ORG_LOW = "xxHash32(concat('low ', org_id))";

const traceRow = z.object({
  org_id: z.string(),
  trace_id: z.string(),
  anchor_ms: z.string(),
  started_ms: z.string(),
  ended_ms: z.string(),
  root_ms: z.string().nullable(),
  root_span_id: z.string(),
  root_span_name: z.string(),
  agent_id: z.string(),
  outcome: z.enum(['success', 'error', 'timeout']),
  session_id: z.string(),
  user_id: z.string(),
  tags: z.array(z.string()),
  spans: z.int(),
  input_tokens: z.string(),
  output_tokens: z.string(),
  /** US dollars as decimal text. */
  cost: z.string(),
  sampled: z.boolean(),
  forced_from: z.string(),
  described: z.boolean(),
  models: z.array(z.string()),
  source_formats: z.array(z.string()),
  departments: z.array(z.string()),
  realms: z.array(z.string()),
  prompts: z.array(z.string()),
  backfilled: z.boolean(),
  version: z.string(),
});
/** Row of a trace. Numbers of 64 bits are text; times are milliseconds since the epoch. */
export type TraceRow = z.output<typeof traceRow>;

const partition = z.int();

export const readOpenTraces = defineQuery({
  name: 'open_traces',
  file: 'landing/open_traces.sql',
  params: positionsShape,
  row: traceRow.extend({ partition }),
  timeoutMs: READ_TIMEOUT_MS,
});

/** Returns at most `rows` traces of these positions, those with the newest rows first. */
export const readNewestTraces = defineQuery({
  name: 'newest_traces',
  file: 'landing/newest_traces.sql',
  params: positionsShape.extend({ rows: z.int() }),
  row: z.object({ partition, org_id: z.string(), trace_id: z.string() }),
  timeoutMs: READ_TIMEOUT_MS,
});

/**
 * `orgs` and `traces` are not pairs: a row may match an organization and a trace that were not
 * asked for together.
 */
export const findTraceRows = defineQuery({
  name: 'find_traces',
  file: 'landing/found_traces.sql',
  params: z.object({ partition, orgs: z.array(z.string()), traces: z.array(z.string()) }),
  row: traceRow,
  timeoutMs: READ_TIMEOUT_MS,
});

/**
 * The traces that findTraceRows finds may have moved to another shard: their rows are cancelled then, and
 * still there until a merge. This returns the live ones.
 */
export const findLiveTraces = defineQuery({
  name: 'find_live_traces',
  file: 'landing/live_traces.sql',
  params: z.object({ partition, orgs: z.array(z.string()), traces: z.array(z.string()) }),
  row: z.object({ org_id: z.string(), trace_id: z.string(), version: z.coerce.number() }),
  timeoutMs: READ_TIMEOUT_MS,
});

/** `corrections` are 16 hexadecimal characters each. */
export const findCorrectionRows = defineQuery({
  name: 'find_corrections',
  file: 'landing/found_corrections.sql',
  params: z.object({ partition, corrections: z.array(z.string()) }),
  row: z.object({ hex: z.string(), seq: z.coerce.number() }),
  timeoutMs: READ_TIMEOUT_MS,
});

/** `events` are 16 hexadecimal characters each. As with findTraceRows, the lists are no pairs. */
export const findEventRows = defineQuery({
  name: 'find_landed',
  file: 'landing/found_events.sql',
  params: z.object({ orgs: z.array(z.string()), traces: z.array(z.string()), events: z.array(z.string()) }),
  row: z.object({
    org_id: z.string(),
    event_hex: z.string(),
    partition,
    log_seq: z.string(),
    log_index: z.int(),
  }),
  timeoutMs: READ_TIMEOUT_MS,
});

/** Maximum calls of the traces of one look-up. */
const CALLS_MAX = 100_000;

const foundCalls = defineQuery({
  name: 'find_calls',
  file: 'landing/found_calls.sql',
  params: z.object({
    partitions: z.array(partition),
    orgs: z.array(z.string()),
    traces: z.array(z.string()),
    before: z.int(),
    names: z.array(z.string()),
    rows: z.int(),
  }),
  row: z.object({
    org_id: z.string(),
    trace_id: z.string(),
    span_id: z.string(),
    source_format: z.string(),
    agent_id: z.string(),
    model: z.string(),
    department: z.string(),
    realm: z.string(),
    received_ms: z.coerce.number(),
    day: z.int(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cost_usd: z.string(),
    log_seq: z.coerce.number(),
    /** Attributes by name, as JSON text. */
    named: z.array(z.tuple([z.string(), z.string()])),
  }),
  timeoutMs: READ_TIMEOUT_MS,
});
export type FoundCall = Awaited<ReturnType<typeof foundCalls>>[number];

/**
 * Returns the model calls of traces that landed before a position, with the attributes of these
 * names. As with findTraceRows, the lists are no pairs.
 */
export const findCallRows = (
  client: ClickHouse,
  asked: { partitions: number[]; orgs: string[]; traces: string[]; before: number; names: string[] },
): Promise<FoundCall[]> => foundCalls(client, { ...asked, rows: CALLS_MAX });

export const readDecidedTraces = defineQuery({
  name: 'decided_traces',
  file: 'landing/decided_traces.sql',
  params: positionsShape,
  row: z.object({
    partition,
    org_id: z.string(),
    trace_id: z.string(),
    summaries: z.coerce.number(),
    full: z.coerce.number(),
    /** Log position of the first full row; 0 where there is none. */
    seq: z.coerce.number(),
    index: z.int(),
  }),
  timeoutMs: READ_TIMEOUT_MS,
});

const usageThroughQuery = defineQuery({
  name: 'usage_through',
  file: 'landing/usage_through.sql',
  params: positionsShape,
  row: z.object({ partition, seq: z.coerce.number() }),
  timeoutMs: READ_TIMEOUT_MS,
});

/** Returns the newest log position of the usage rows of each partition that has some from its position on. */
export async function readUsageThrough(
  client: ClickHouse,
  above: readonly PartitionFrom[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await usageThroughQuery(client, positionParams(above));
  return new Map(rows.map((row) => [row.partition, row.seq]));
}

const newestReceivedQuery = defineQuery({
  name: 'newest_received',
  file: 'landing/newest_received.sql',
  params: z.object({ partitions: z.array(partition) }),
  row: z.object({ partition, received_ms: z.coerce.number() }),
  timeoutMs: READ_TIMEOUT_MS,
});

/**
 * Returns when the newest landed event of each partition was received, in milliseconds since the
 * epoch. A partition without a row is left out.
 */
export async function readNewestReceived(
  client: ClickHouse,
  partitions: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await newestReceivedQuery(client, { partitions: [...partitions] });
  return new Map(rows.map((row) => [row.partition, row.received_ms]));
}

/** Calls `take` with the partition and the hash of each trace that has a row in one of these partitions. */
export async function eachTraceHash(
  client: ClickHouse,
  partitions: readonly number[],
  take: (partition: number, hash: number) => void,
): Promise<void> {
  const read = {
    name: 'trace_hashes',
    sql: `SELECT partition, ${TRACE_HASH} FROM traces WHERE partition IN {partitions:Array(UInt16)} AND sign = 1 FORMAT RowBinary`,
    params: { partitions: [...partitions] },
    timeoutMs: READ_TIMEOUT_MS,
  };
  await client.records(read, HASH_BYTES, (records) => {
    for (let at = 0; at < records.length; at += HASH_BYTES)
      take(records.readUInt16LE(at), records.readUInt32LE(at + 2));
  });
}

/** The events of a partition whose ids are read: received since a time in milliseconds, up to a log position. */
export interface EventIds {
  partition: number;
  since: number;
  through: number;
}

/**
 * Calls `take` with each of these events of partitions: the partition, both halves of its identity
 * (pipeline/domain/traces/event_identity.ts), and when it was received in milliseconds since the
 * epoch, to the second.
 *
 * @param asked one partition at least
 */
export async function eachEventId(
  client: ClickHouse,
  asked: readonly EventIds[],
  take: (partition: number, high: number, low: number, receivedAt: number) => void,
): Promise<void> {
  const read = {
    name: 'window_ids',
    // The earliest time lets the index skip what is older for every partition.
    sql: `SELECT partition, event_key, toUnixTimestamp(received_at), ${ORG_HIGH}, ${ORG_LOW} FROM spans
      WHERE partition IN {partitions:Array(UInt16)} AND received_at >= fromUnixTimestamp64Milli({earliest:Int64}, 'UTC')
        AND toUnixTimestamp64Milli(received_at) >= transform(partition, {partitions:Array(UInt16)}, {since:Array(Int64)}, toInt64(0))
        AND log_seq <= transform(partition, {partitions:Array(UInt16)}, {through:Array(UInt64)}, toUInt64(0)) AND log_sub = 0 FORMAT RowBinary`,
    params: {
      partitions: asked.map((of) => of.partition),
      since: asked.map(({ since }) => since),
      through: asked.map(({ through }) => through),
      earliest: Math.min(...asked.map(({ since }) => since)),
    },
    timeoutMs: READ_TIMEOUT_MS,
  };
  await client.records(read, ID_BYTES, (records) => {
    for (let at = 0; at < records.length; at += ID_BYTES) {
      const high = records.readUInt32LE(at + 6) ^ records.readUInt32LE(at + 14);
      const low = records.readUInt32LE(at + 2) ^ records.readUInt32LE(at + 18);
      take(records.readUInt16LE(at), high >>> 0, low >>> 0, records.readUInt32LE(at + 10) * 1000);
    }
  });
}
