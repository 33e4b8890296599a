// Look-ups of events, traces and cost corrections that a worker does not remember. It only reads;
// each query is bounded in time and in the ids that it names.
//
// IN always takes a subquery, because ClickHouse uses no index for a computed array.
import type { ClickHouse } from '../../sql/client/client.ts';
import { eventIdentity } from '../domain/traces/event_identity.ts';
import type { EventRef } from '../stages/dedupe.ts';
import { storedTrace, type StoredTrace, TRACE_COLUMNS, type TraceRecord } from '../traces/stored_trace.ts';

const READ_TIMEOUT_MS = 60_000;
/**
 * Maximum bytes of ids in one query. The server takes parameters of up to 128 KiB, and escaping may
 * double an id.
 */
const ID_BYTES_MAX = 60_000;
/** Bytes that an id takes in a list beside its own. */
const ID_FRAME_BYTES = 3;

/** Yields the references in batches whose ids fit one query. */
function* parameterBatches<T extends { org_id: string; trace_id: string }>(refs: readonly T[]): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const ref of refs) {
    // The hex ids of events take 16 bytes each, in a list of their own.
    const more = Buffer.byteLength(ref.org_id) + Buffer.byteLength(ref.trace_id) + 16 + ID_FRAME_BYTES;
    if (batch.length > 0 && bytes + more > ID_BYTES_MAX) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(ref);
    bytes += more;
  }
  if (batch.length > 0) yield batch;
}

export class KnownRows {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /**
   * Returns the log_seq at which each correction landed first in a partition, by correction_hex.
   * Corrections that have not landed are left out.
   */
  async findCorrections(partition: number, corrections: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#rows<{ hex: string; seq: string }>(
      'find_corrections',
      `SELECT leftPad(lower(hex(correction)), 16, '0') AS hex, toString(min(log_seq)) AS seq FROM usage_events
       WHERE partition = {partition:UInt16} AND correction IN (SELECT reinterpretAsUInt64(reverse(unhex(arrayJoin({corrections:Array(String)})))))
       GROUP BY correction`,
      { partition, corrections },
    );
    return new Map(rows.map(({ hex, seq }) => [hex, Number(seq)]));
  }

  /** Returns the live rows of those of the given traces that have one. */
  async findTraces(partition: number, traces: readonly { org_id: string; trace_id: string }[]): Promise<StoredTrace[]> {
    const found: StoredTrace[] = [];
    for (const batch of parameterBatches(traces)) found.push(...(await this.#findTraces(partition, batch)));
    return found;
  }

  async #findTraces(
    partition: number,
    traces: readonly { org_id: string; trace_id: string }[],
  ): Promise<StoredTrace[]> {
    const rows = await this.#rows<TraceRecord>(
      'find_traces',
      `SELECT ${TRACE_COLUMNS} FROM traces
       WHERE org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition = {partition:UInt16} AND sign = 1
       ORDER BY version DESC LIMIT 1 BY org_id, trace_id`,
      {
        partition,
        orgs: [...new Set(traces.map(({ org_id }) => org_id))],
        traces: traces.map(({ trace_id }) => trace_id),
      },
    );
    const wanted = new Set(traces.map(({ org_id, trace_id }) => `${org_id} ${trace_id}`));
    return rows.filter((row) => wanted.has(`${row.org_id} ${row.trace_id}`)).map(storedTrace);
  }

  /**
   * Returns the identities (domain/traces/event_identity.ts) of those events that have a row from
   * another log position.
   */
  async findLanded(events: readonly EventRef[]): Promise<ReadonlySet<string>> {
    const found = new Set<string>();
    for (const batch of parameterBatches(events))
      for (const identity of await this.#findLanded(batch)) found.add(identity);
    return found;
  }

  async #findLanded(events: readonly EventRef[]): Promise<string[]> {
    const rows = await this.#rows<{
      org_id: string;
      event_hex: string;
      partition: number;
      log_seq: string;
      log_index: number;
    }>(
      'find_landed',
      // A repeated event names the same trace, and trace_lookup knows when that trace was. Without
      // the time range ClickHouse would read all spans of the organization.
      `WITH (
         SELECT (min(first_at), max(last_at)) FROM trace_lookup WHERE trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
       ) AS times
       SELECT org_id, leftPad(lower(hex(event_key)), 16, '0') AS event_hex, partition, log_seq, log_index FROM spans
       WHERE org_id IN {orgs:Array(String)} AND started_at >= times.1 AND started_at <= times.2
         AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)})))
         AND event_key IN (SELECT reinterpretAsUInt64(reverse(unhex(arrayJoin({events:Array(String)})))))`,
      {
        orgs: [...new Set(events.map(({ org_id }) => org_id))],
        traces: events.map(({ trace_id }) => trace_id),
        events: events.map(({ event_hex }) => event_hex),
      },
    );
    const own = new Set(
      events.map(
        (event) =>
          `${eventIdentity(event)} ${String(event.partition)} ${String(event.log_seq)} ${String(event.log_index)}`,
      ),
    );
    return rows
      .filter(
        (row) => !own.has(`${eventIdentity(row)} ${String(row.partition)} ${row.log_seq} ${String(row.log_index)}`),
      )
      .map(eventIdentity);
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown>): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
  }
}
