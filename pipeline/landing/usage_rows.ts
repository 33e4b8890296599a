// What a batch of events and corrections used, as rows: one for each partition, hour, day, agent,
// model and further dimension. It takes all events of a batch, whatever sampling decides, and
// returns the totals; their rows join the landing.
import { addOutcomes } from '../domain/pricing/outcomes.ts';
import { cancelled } from '../domain/traces/call_records.ts';
import type { MeteredEvent, Usage } from '../stage.ts';
import { usageCells } from './row_encoders.ts';
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

interface Total {
  usage: Usage;
  partition: number;
}

/**
 * Counts the usage of all events of a batch, decided or buffered. It lands in log order, so that one
 * watermark says how much has landed.
 */
export class UsageCounter {
  readonly #states: ReadonlyMap<number, PartitionState>;
  readonly #totals = new Map<string, Total>();
  readonly #lastSeq = new Map<number, number>();

  constructor(states: ReadonlyMap<number, PartitionState>) {
    this.#states = states;
  }

  add({ metered, corrections }: Changes): void {
    for (const event of metered) {
      const state = this.#states.get(event.partition);
      if (state === undefined) continue;
      this.#lastSeq.set(event.partition, event.log_seq);
      if (state.replay !== null && event.log_seq <= state.replay.usage_through) continue;
      addUsage(this.#totals, event);
      for (const call of event.replaced ?? [])
        addUsage(this.#totals, { usage: cancelled(call), partition: event.partition });
    }
    for (const correction of corrections) {
      const { partition, log_seq } = correction;
      const { replay } = this.#states.get(partition) ?? { replay: null };
      this.#lastSeq.set(partition, Math.max(log_seq, this.#lastSeq.get(partition) ?? 0));
      if (replay === null || log_seq > replay.usage_through) addUsage(this.#totals, correction);
    }
  }

  /** Returns the totals, and adds their rows to a landing. Call it once. */
  take(rows: Pick<LandingUnit, 'usage_events'>): CountedUsage[] {
    return [...this.#totals.values()].map(({ usage, partition }) => {
      const log_seq = this.#lastSeq.get(partition) ?? 0;
      rows.usage_events.push({
        wire: usageCells(usage, partition, log_seq),
        partition,
        epoch: this.#states.get(partition)?.epoch ?? 0,
        log_seq,
        key: String(log_seq),
        event: null,
      });
      return { usage, partition, log_seq };
    });
  }
}

/** Returns a text that only totals with the same keys have. The lengths tell where each key ends. */
function keyOf({ usage, partition }: Total): string {
  const { org_id, agent_id, key_id, model, department, realm } = usage;
  return `${partition} ${usage.hour} ${usage.day} ${usage.correction} ${org_id.length} ${agent_id.length} ${key_id.length} ${model.length} ${department.length} ${org_id}${agent_id}${key_id}${model}${department}${realm}`;
}

function addUsage(totals: Map<string, Total>, { usage, partition }: Total): void {
  const key = keyOf({ usage, partition });
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
