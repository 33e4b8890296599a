// Corrections of costs on their way from the log to traces and usage. In: messages of a partition, sent by a repricing. Out: what
// each changes, once: a message that is sent again is dropped, however long ago it landed, as its usage rows carry its id.
// They pass no stage: nothing is decoded, sampled or scored, and no span is made.
import type { CostCorrections } from '../../schemas/codec.ts';
import { usdToPico } from '../domain/pricing/money.ts';
import { noUsage } from '../domain/budgets/usage.ts';
import type { Usage } from '../stage.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { PrepareDeps } from '../worker/prepare.ts';

/** What a message changes of one trace, with its part of what was used. */
export interface Correction {
  correction_hex: string;
  partition: number;
  log_seq: number;
  org_id: string;
  trace_id: string;
  usage: Usage;
}

/**
 * The changes of a message.
 * @param partition the one that the message's subject names
 * @throws RangeError for what is no amount; Error for a message of no partition
 */
export function correctionsOf(
  { correction_hex, org_id, changes }: CostCorrections,
  partition: number | null,
  log_seq: number,
): Correction[] {
  if (partition === null) throw new Error('corrections of costs name no partition');
  const correction = BigInt(`0x${correction_hex}`);
  return changes.map(({ trace_id, cost_usd, ...where }) => ({
    correction_hex,
    partition,
    log_seq,
    org_id,
    trace_id,
    // Nobody was heard of by it: the time of receipt is one that has been.
    usage: {
      ...noUsage({ org_id, ...where }),
      last_received_at: where.hour,
      cost_pico_usd: usdToPico(cost_usd),
      correction,
    },
  }));
}

/**
 * Those that have not landed, nor come by before. What a batch under way holds is in the partition's window; what has landed is
 * in the store, at a place before the message's own unless it is the message itself that is read again.
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
  /** By message: whether it is taken. */
  const taken = new Map<string, boolean>();
  return corrections.filter(({ partition, log_seq, correction_hex }) => {
    const message = `${String(partition)} ${String(log_seq)}`;
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
