// Cost corrections on their way from the log to traces and usage. It takes messages of a partition,
// sent by a repricing, and returns what each changes, exactly once: a repeated message is dropped
// however long ago it landed, because its usage rows carry its id.
//
// Corrections pass no stage: nothing is decoded, sampled or scored, and no span is made.
import type { CostCorrections } from '../../schemas/codec.ts';
import { usdToPico } from '../domain/pricing/money.ts';
import { noUsage } from '../domain/budgets/usage.ts';
import type { Usage } from '../stage.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { PrepareDeps } from '../worker/prepare.ts';

/** What a message changes of one trace, with its part of the usage. */
export interface Correction {
  correction_hex: string;
  partition: number;
  log_seq: number;
  org_id: string;
  trace_id: string;
  usage: Usage;
}

/**
 * Returns the changes of a message.
 *
 * @param partition the partition that the subject of the message names
 * @throws RangeError if a cost is no amount; Error if the message names no partition
 */
export function correctionsOf(
  { correction_hex, org_id, changes }: CostCorrections,
  partition: number | null,
  log_seq: number,
): Correction[] {
  if (partition === null) throw new Error('cost corrections name no partition');
  const correction = BigInt(`0x${correction_hex}`);
  return changes.map(({ trace_id, cost_usd, ...where }) => ({
    correction_hex,
    partition,
    log_seq,
    org_id,
    trace_id,
    // A correction is no activity of the agent, so last_received_at is the start of the corrected
    // hour, which is no later than the agent's last event.
    usage: {
      ...noUsage({ org_id, ...where }),
      last_received_at: where.hour,
      cost_pico_usd: usdToPico(cost_usd),
      correction,
    },
  }));
}

/**
 * Returns the corrections that have neither landed nor been prepared before. The window of the
 * partition knows what a batch under way contains. The store knows what has landed: at an earlier
 * position, unless the message itself is read again.
 */
export async function freshCorrections(
  { findCorrections, now }: Pick<PrepareDeps, 'findCorrections' | 'now'>,
  states: ReadonlyMap<number, PartitionState>,
  corrections: readonly Correction[],
): Promise<Correction[]> {
  const landed = new Map(
    await Promise.all(
      [...Map.groupBy(corrections, ({ partition }) => partition)].map(
        async ([partition, own]) =>
          [
            partition,
            await findCorrections(partition, [...new Set(own.map(({ correction_hex }) => correction_hex))]),
          ] as const,
      ),
    ),
  );
  /** Whether the message is taken, by partition and log_seq. */
  const taken = new Map<string, boolean>();
  return corrections.filter(({ partition, log_seq, correction_hex }) => {
    const message = `${partition} ${log_seq}`;
    const known = taken.get(message);
    if (known !== undefined) return known;
    const window = states.get(partition)?.window;
    const repeated =
      window?.look(correction_hex) === 'seen' || (landed.get(partition)?.get(correction_hex) ?? Infinity) < log_seq;
    if (!repeated) window?.add(correction_hex, now());
    taken.set(message, !repeated);
    return !repeated;
  });
}
