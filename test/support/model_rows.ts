// The rows of the model of the pipeline (tail_model.ts), read from the rows of its landings.
import type { LandingRow } from '../../pipeline/landing/landing_row.ts';
import { picoToDecimal } from '../../pipeline/domain/pricing/money.ts';
import { traceKey } from '../../pipeline/domain/traces/ids.ts';
import { storedTrace, type StoredTrace } from '../../pipeline/traces/stored_trace.ts';
import type { FullFrom } from '../../pipeline/worker/partition_state.ts';
import { type BlockSpec, TRACES, type WireRow } from '../../sql/stores/landing_tables.ts';

/** The landed row of a span or a text. */
export interface ModelRow {
  hex: string;
  trace_id: string;
  partition: number;
  log_seq: number;
  log_index: number;
  sampled: boolean;
  key: string;
}

/** The landed row of a trace. */
export interface ModelTrace {
  trace: StoredTrace;
  partition: number;
  sign: number;
  sampled: boolean;
}

/** Returns the values of a row by their columns. */
export function valuesOf({ block }: BlockSpec, wire: WireRow): Record<string, unknown> {
  if (typeof wire === 'string') throw new Error('a block has no row of text');
  return Object.fromEntries(block.map(({ name }, index) => [name, wire[index]]));
}

/** The organization of events that name none. */
export const ORG = 'org_a';

/** @param spec of spans or of their texts, which only sampled spans have */
export function spanRow(spec: BlockSpec, { wire, partition, log_seq, key }: LandingRow): ModelRow {
  const { event_key, trace_id, sampled = true } = valuesOf(spec, wire);
  return {
    // A row that was encoded has a small key as a number.
    hex: typeof event_key === 'number' ? event_key.toString(16).padStart(16, '0') : String(event_key),
    trace_id: String(trace_id),
    partition,
    log_seq,
    log_index: Number(key.split(':')[1]),
    sampled: sampled === true,
    key,
  };
}

export function decisions(rows: readonly ModelRow[]): Map<string, FullFrom> {
  return new Map(
    [...Map.groupBy(rows, (row) => row.trace_id)].map(([trace_id, own]) => {
      const full = own
        .filter(({ sampled }) => sampled)
        .sort((a, b) => a.log_seq - b.log_seq || a.log_index - b.log_index)[0];
      const from = own.every(({ sampled }) => sampled)
        ? { log_seq: 0, log_index: 0 }
        : (full ?? { log_seq: Infinity, log_index: 0 });
      return [traceKey(ORG, trace_id), { log_seq: from.log_seq, log_index: from.log_index }];
    }),
  );
}

export function traceRow({ wire, partition }: LandingRow): ModelTrace {
  const { anchor, started_at, ended_at, root_at, cost_usd, log_seq, sign, ...row } = valuesOf(TRACES, wire);
  const trace = storedTrace({
    ...row,
    anchor_ms: anchor,
    started_ms: started_at,
    ended_ms: ended_at,
    root_ms: root_at,
    cost: picoToDecimal(cost_usd as bigint),
    version: log_seq,
  } as unknown as Parameters<typeof storedTrace>[0]);
  return { trace, partition, sign: Number(sign), sampled: row['sampled'] === true };
}
