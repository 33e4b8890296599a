// Look-ups of events, traces and cost corrections that a worker does not remember. It only reads;
// each query is bounded in time and in the ids that it names.
import type { ClickHouse } from '../../sql/client/client.ts';
import { findCorrectionRows, findEventRows, findTraceRows } from '../../sql/stores/partition_rows.ts';
import { eventIdentity } from '../domain/traces/event_identity.ts';
import type { EventRef } from '../stages/dedupe.ts';
import { storedTrace, type StoredTrace } from '../traces/stored_trace.ts';

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
    const rows = await findCorrectionRows(this.#client, { partition, corrections: [...corrections] });
    return new Map(rows.map(({ hex, seq }) => [hex, seq]));
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
    const rows = await findTraceRows(this.#client, {
      partition,
      orgs: [...new Set(traces.map(({ org_id }) => org_id))],
      traces: traces.map(({ trace_id }) => trace_id),
    });
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
    const rows = await findEventRows(this.#client, {
      orgs: [...new Set(events.map(({ org_id }) => org_id))],
      traces: events.map(({ trace_id }) => trace_id),
      events: events.map(({ event_hex }) => event_hex),
    });
    const own = new Set(
      events.map((event) => `${eventIdentity(event)} ${event.partition} ${event.log_seq} ${event.log_index}`),
    );
    return rows
      .filter((row) => !own.has(`${eventIdentity(row)} ${row.partition} ${row.log_seq} ${row.log_index}`))
      .map(eventIdentity);
  }
}
