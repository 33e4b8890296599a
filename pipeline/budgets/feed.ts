// From a landing to the reports that accounts are kept by: how far each partition is, and what the orgs that have a budget
// used. An org without one costs nothing here. Each report names the one before it, so that whoever missed one knows.
import type { Landing } from '../../ops/landings.ts';
import type { Prepared } from '../runtime/prepare.ts';

/** What a report needs to know of a partition. */
interface Landed {
  partition: number;
  epoch: number;
  landed_through: number;
  read_through: number;
  behind: boolean;
}

export class UsageReports {
  /** By partition: place of the newest rows that were told under an epoch. */
  readonly #told = new Map<number, { epoch: number; log_seq: number }>();

  /** Reports of one landing. What they name counts as told, whether or not they arrive. */
  ofLanding({ usage, progress }: Pick<Prepared, 'usage' | 'progress'>, isBudgeted: (org_id: string) => boolean): Landing[] {
    const byPartition = Map.groupBy(
      usage.filter((counted) => isBudgeted(counted.usage.org_id)),
      (counted) => counted.partition,
    );
    return progress.map(({ state: { partition, epoch, read_through }, landed_through }) => {
      const report = this.ofProgress({ partition, epoch, landed_through, read_through, behind: true });
      const [first, ...others] = byPartition.get(partition) ?? [];
      if (first === undefined) return report;
      this.#told.set(partition, { epoch, log_seq: first.log_seq });
      return {
        ...report,
        log_seq: first.log_seq,
        rows: [first, ...others].map(({ usage: total }) => ({
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

  /** Says how far a partition is, without rows. */
  ofProgress({ partition, epoch, landed_through, read_through, behind }: Landed): Landing {
    const told = this.#told.get(partition);
    const after = told?.epoch === epoch ? told.log_seq : 0;
    return { partition, epoch, landed_through, read_through, behind, after, log_seq: 0, rows: [] };
  }
}
