// From a landing to the reports that accounts are kept by: how far each partition is, and what the orgs that have a budget
// used. An org without one costs nothing here.
import type { LandedUsage } from '../../ops/usage_feed.ts';
import type { Prepared } from '../runtime/prepare.ts';

export function reportsOf({ usage, progress }: Pick<Prepared, 'usage' | 'progress'>, isBudgeted: (org_id: string) => boolean): LandedUsage[] {
  const byPartition = Map.groupBy(
    usage.filter((counted) => isBudgeted(counted.usage.org_id)),
    (counted) => counted.partition,
  );
  return progress.map(({ state, landed_through }) => {
    const counted = byPartition.get(state.partition) ?? [];
    return {
      partition: state.partition,
      landed_through,
      log_seq: counted[0]?.log_seq ?? 0,
      rows: counted.map(({ usage: total }) => ({
        org_id: total.org_id,
        agent_id: total.agent_id,
        hour: total.hour,
        tokens: total.input_tokens + total.output_tokens,
        storage_bytes: total.storage_bytes,
        // Microseconds of sandboxes beyond 2^53 are centuries.
        sandbox_micros: Number(total.sandbox_micros),
        cost_pico_usd: total.cost_pico_usd,
      })),
    };
  });
}
