// From a landing to the reports that accounts are kept by: how far each partition is, and what the orgs that have a budget
// used. An org without one costs nothing here. Each report names the one before it, so that whoever missed one knows.
import type { Landing } from '../../schemas/signals/landing_reports.ts';
import { addUsed } from '../domain/budgets/budget.ts';
import type { CountedUsage } from '../landing/usage_rows.ts';
import type { Prepared } from '../worker/prepare.ts';

/** Rows of a report that tell every agent, hour, model and the like apart. */
const ROWS_APART_MAX = 1000;

/** Whose accounts are kept, and by what. */
export interface Accounts {
  isBudgeted: (org_id: string) => boolean;
  /** Agents that have limits of their own. */
  limitedAgents: (org_id: string) => readonly string[];
}

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
  ofLanding({ usage, progress }: Pick<Prepared, 'usage' | 'progress'>, accounts: Accounts): Landing[] {
    const byPartition = Map.groupBy(
      usage.filter((counted) => accounts.isBudgeted(counted.usage.org_id)),
      (counted) => counted.partition,
    );
    return progress.map(({ state: { partition, epoch, read_through }, landed_through }) => {
      const report = this.ofProgress({ partition, epoch, landed_through, read_through, behind: true });
      const [first, ...others] = byPartition.get(partition) ?? [];
      if (first === undefined) return report;
      this.#told.set(partition, { epoch, log_seq: first.log_seq });
      const rows = [first, ...others].map(rowOf);
      return { ...report, log_seq: first.log_seq, rows: rows.length > ROWS_APART_MAX ? merged(rows, accounts) : rows };
    });
  }

  /** Says how far a partition is, without rows. */
  ofProgress({ partition, epoch, landed_through, read_through, behind }: Landed): Landing {
    const told = this.#told.get(partition);
    const after = told?.epoch === epoch ? told.log_seq : 0;
    return { partition, epoch, landed_through, read_through, behind, after, log_seq: 0, rows: [] };
  }
}

type Row = Landing['rows'][number];

const rowOf = ({ usage: total }: CountedUsage): Row => ({
  org_id: total.org_id,
  agent_id: total.agent_id,
  hour: total.hour,
  tokens: total.input_tokens + total.output_tokens,
  storage_bytes: total.storage_bytes,
  // Microseconds of sandboxes beyond 2^53 are centuries.
  sandbox_micros: Number(total.sandbox_micros),
  cost_pico_usd: total.cost_pico_usd,
});

/**
 * The same use in as few rows as accounts count it by, whatever a sender calls its agents: those without limits of their own are told as one.
 * Only of many: of an agent whose limit was set this very moment, the tokens of such a landing are its own with the next read of the store.
 */
function merged(rows: readonly Row[], { limitedAgents }: Accounts): Row[] {
  const limited = new Map<string, ReadonlySet<string>>();
  const sums = new Map<string, Row>();
  for (const row of rows) {
    const agents = limited.get(row.org_id) ?? new Set(limitedAgents(row.org_id));
    limited.set(row.org_id, agents);
    const agent_id = agents.has(row.agent_id) ? row.agent_id : '';
    const key = JSON.stringify([row.org_id, agent_id, row.hour]);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { ...row, agent_id });
    else addUsed(sum, row);
  }
  return [...sums.values()];
}
