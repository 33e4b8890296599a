// Look-ups of events, traces and cost corrections that a worker does not remember. It only reads;
// each query is bounded in time and in the ids that it names.
import type { ClickHouse } from '../../sql/client/client.ts';
import {
  findCallRows,
  findCorrectionRows,
  findEventRows,
  findLiveTraces,
  findTraceRows,
  type FoundCall,
} from '../../sql/stores/partition_rows.ts';
import { noUsage } from '../domain/budgets/usage.ts';
import { usdToPico } from '../domain/pricing/money.ts';
import {
  CALL_ID_ATTRIBUTES,
  CALL_SOURCE_ATTRIBUTES,
  callIds,
  callSource,
  GATEWAY,
  isUsed,
} from '../domain/traces/call_records.ts';
import { eventIdentity } from '../domain/traces/event_identity.ts';
import type { EventRef } from '../stages/dedupe.ts';
import type { LandedCall, PlacedRecord } from '../stages/match.ts';
import { storedTrace, type StoredTrace } from '../traces/stored_trace.ts';

/**
 * Maximum bytes of ids in one query. The server takes parameters of up to 128 KiB, and escaping may
 * double an id.
 */
const ID_BYTES_MAX = 60_000;
/** Bytes that an id takes in a list beside its own. */
const ID_FRAME_BYTES = 3;
const HOUR_MS = 3_600_000;

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

  /** Returns those of the traces, with rows of a partition, that did not move to another shard. */
  async liveAmong(partition: number, traces: readonly StoredTrace[]): Promise<StoredTrace[]> {
    const live = new Set<string>();
    for (const batch of parameterBatches(traces.map(({ state }) => state)))
      for (const { org_id, trace_id, version } of await findLiveTraces(this.#client, {
        partition,
        orgs: [...new Set(batch.map((trace) => trace.org_id))],
        traces: batch.map((trace) => trace.trace_id),
      }))
        live.add(`${org_id} ${trace_id} ${version}`);
    return traces.filter(({ state, version }) => live.has(`${state.org_id} ${state.trace_id} ${version}`));
  }

  /** Returns the counted calls of each trace that landed before its position, in log order. */
  async findCalls(places: readonly PlacedRecord[]): Promise<LandedCall[]> {
    const before = new Map(places.map(({ org_id, trace_id, log_seq }) => [`${org_id} ${trace_id}`, log_seq]));
    const found: LandedCall[] = [];
    for (const batch of parameterBatches(places)) {
      const rows = await findCallRows(this.#client, {
        partitions: [...new Set(batch.map(({ partition }) => partition))],
        orgs: [...new Set(batch.map(({ org_id }) => org_id))],
        traces: batch.map(({ trace_id }) => trace_id),
        before: Math.max(...batch.map(({ log_seq }) => log_seq)),
        names: [...CALL_ID_ATTRIBUTES, ...CALL_SOURCE_ATTRIBUTES],
      });
      for (const row of rows) {
        const call = row.log_seq < (before.get(`${row.org_id} ${row.trace_id}`) ?? 0) ? landedCall(row) : null;
        if (call !== null) found.push(call);
      }
    }
    return found;
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

/**
 * Returns a stored call; null for one that counts nothing or has no id. Its row does not say which
 * key sent it, so its usage belongs to none.
 */
function landedCall(row: FoundCall): LandedCall | null {
  const { org_id, trace_id, log_seq, span_id, source_format, received_ms, named } = row;
  const attributes = Object.fromEntries(named.map(([name, json]): [string, unknown] => [name, JSON.parse(json)]));
  const usage = {
    ...noUsage({ ...row, hour: Math.floor(received_ms / HOUR_MS) * HOUR_MS }),
    input_tokens: row.input_tokens,
    output_tokens: row.output_tokens,
    cost_pico_usd: usdToPico(row.cost_usd),
  };
  const source = callSource(source_format, attributes);
  const ids = callIds(attributes, source);
  const call = { org_id, trace_id, log_seq, span_id, source, usage, ids };
  return ids.length > 0 && (call.source === GATEWAY || isUsed(call)) ? call : null;
}
