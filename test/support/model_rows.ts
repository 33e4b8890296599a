// The rows of the model of the pipeline (tail_model.ts), read from the rows of its landings.
import type { LandingRow } from '../../pipeline/landing/landing_row.ts';
import { traceKey } from '../../pipeline/domain/traces/ids.ts';
import { storedTrace, type StoredTrace } from '../../pipeline/traces/stored_trace.ts';
import type { FullFrom } from '../../pipeline/worker/partition_state.ts';
import type { WireRow } from '../../sql/stores/landing_tables.ts';

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

/** Returns the values of a row. */
export const cells = (wire: WireRow): readonly unknown[] =>
  typeof wire === 'string' ? (JSON.parse(wire) as unknown[]) : wire;

/** The organization of events that name none. */
export const ORG = 'org_a';

export function spanRow({ wire, partition, log_seq, key }: LandingRow, traceCell: number, sampled: boolean): ModelRow {
  const row = cells(wire);
  const hex = row.find((cell) => typeof cell === 'string' && /^[0-9a-f]{16}$/.test(cell));
  return {
    hex: String(hex),
    trace_id: String(row[traceCell]),
    partition,
    log_seq,
    log_index: Number(key.split(':')[1]),
    sampled,
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

export function traceRow(row: readonly unknown[], partition: number): ModelTrace {
  const [
    org_id,
    anchor,
    trace_id,
    started,
    ended,
    root,
    root_span_id,
    root_span_name,
    agent_id,
    outcome,
    session_id,
    user_id,
    tags,
    spans,
  ] = row;
  const [input_tokens, output_tokens, cost, sampled, forced_from] = row.slice(14);
  const [described, models, source_formats, departments, realms, prompts, backfilled, , version, sign] = row.slice(19);
  const record = {
    org_id,
    trace_id,
    anchor_ms: anchor,
    started_ms: started,
    ended_ms: ended,
    root_ms: root,
    root_span_id,
    root_span_name,
    agent_id,
  };
  const rest = {
    outcome,
    session_id,
    user_id,
    tags,
    spans,
    input_tokens,
    output_tokens,
    cost,
    sampled,
    forced_from,
    described,
    models,
    source_formats,
    departments,
    realms,
    prompts,
    backfilled,
    version,
  };
  const trace = storedTrace({ ...record, ...rest } as unknown as Parameters<typeof storedTrace>[0]);
  return { trace, partition, sign: Number(sign), sampled: sampled === true };
}
