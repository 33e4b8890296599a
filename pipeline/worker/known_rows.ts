// What the store already holds of events, traces and corrections that a worker does not remember. Reads only, each bounded in
// time and in what one statement names.
import type { ClickHouse } from '../../sql/client/client.ts';
import { findCorrectionRows, findEventRows, findTraceRows } from '../../sql/stores/partition_rows.ts';
import { eventIdentity } from '../domain/traces/event_identity.ts';
import type { EventRef } from '../stages/dedupe.ts';
import { storedTrace } from '../traces/stored_trace.ts';
import type { StoredTrace } from '../traces/open_traces.ts';

/** Bytes of the ids that one statement names: the server takes parameters of up to 128 KiB, with room for escapes. */
const ID_BYTES_MAX = 60_000;
/** What stands around an id in a list, beside its bytes. */
const ID_FRAME_BYTES = 3;

/** The same refs, in batches whose ids one statement takes. */
function* parameterBatches<T extends { org_id: string; trace_id: string }>(refs: readonly T[]): Generator<T[]> {
  let batch: T[] = [];
  let bytes = 0;
  for (const ref of refs) {
    // The hex ids of events are 16 bytes and in a list of their own.
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

  /** Where corrections of costs have landed first in a partition, by correction_hex. */
  async findCorrections(partition: number, corrections: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const rows = await findCorrectionRows(this.#client, { partition, corrections: [...corrections] });
    return new Map(rows.map(({ hex, seq }) => [hex, seq]));
  }

  /** Live rows of those of the given traces that exist. */
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

  /** Identities (traces/event_identity.ts) of those events that have a row from another position of the log. */
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
}
