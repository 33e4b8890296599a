// What a batch of events and corrections used, as rows: one for each partition, hour, day, agent,
// model and further dimension. It takes all events of a batch, whatever sampling decides, and
// returns the totals; their rows join the landing.
import { addOutcomes } from '../domain/pricing/outcomes.ts';
import { cancelled } from '../domain/traces/call_records.ts';
import type { MeteredEvent, Usage } from '../stage.ts';
import { usageLine } from './row_encoders.ts';
import type { Correction } from './corrections.ts';
import type { LandingUnit } from './lander.ts';
import type { PartitionState } from '../worker/partition_state.ts';

/** A total that a landing counts, with the position of its row in the store. */
export interface CountedUsage {
  usage: Usage;
  partition: number;
  log_seq: number;
}

/** The events and corrections of a batch, each in log order. */
export interface Changes {
  metered: readonly MeteredEvent[];
  corrections: readonly Correction[];
}

/**
 * Returns the usage of all events, decided or buffered. It lands in log order, so that one
 * watermark says how much has landed.
 */
export function countUsage(
  states: ReadonlyMap<number, PartitionState>,
  { metered, corrections }: Changes,
  rows: LandingUnit,
): CountedUsage[] {
  const usage = new Map<string, { usage: Usage; partition: number }>();
  const lastSeq = new Map<number, number>();
  for (const event of metered) {
    const state = states.get(event.partition);
    if (state === undefined) continue;
    lastSeq.set(event.partition, event.log_seq);
    if (state.replay !== null && event.log_seq <= state.replay.usage_through) continue;
    addUsage(usage, event);
    for (const call of event.replaced ?? []) addUsage(usage, { usage: cancelled(call), partition: event.partition });
  }
  for (const correction of corrections) {
    const { partition, log_seq } = correction;
    const { replay } = states.get(partition) ?? { replay: null };
    lastSeq.set(partition, Math.max(log_seq, lastSeq.get(partition) ?? 0));
    if (replay === null || log_seq > replay.usage_through) addUsage(usage, correction);
  }
  const counted = [...usage.values()].map(({ usage: total, partition }) => ({
    usage: total,
    partition,
    log_seq: lastSeq.get(partition) ?? 0,
  }));
  for (const { usage: total, partition, log_seq: seq } of counted) {
    rows.usage_events.push({
      wire: usageLine(total, partition, seq),
      partition,
      epoch: states.get(partition)?.epoch ?? 0,
      log_seq: seq,
      key: String(seq),
      event: null,
    });
  }
  return counted;
}

function addUsage(
  totals: Map<string, { usage: Usage; partition: number }>,
  { usage, partition }: Pick<MeteredEvent, 'usage' | 'partition'>,
): void {
  const { org_id, agent_id, key_id, model, department, realm } = usage;
  const key = JSON.stringify([
    partition,
    usage.hour,
    usage.day,
    org_id,
    agent_id,
    key_id,
    model,
    department,
    realm,
    String(usage.correction),
  ]);
  const total = totals.get(key)?.usage;
  if (total === undefined) {
    totals.set(key, { usage: { ...usage }, partition });
    return;
  }
  total.last_received_at = Math.max(total.last_received_at, usage.last_received_at);
  total.events += usage.events;
  total.input_tokens += usage.input_tokens;
  total.output_tokens += usage.output_tokens;
  total.storage_bytes += usage.storage_bytes;
  total.sandbox_micros += usage.sandbox_micros;
  total.cost_pico_usd += usage.cost_pico_usd;
  total.outcomes = addOutcomes(total.outcomes, usage.outcomes);
}
