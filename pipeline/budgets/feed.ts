// Builds the reports of landings that processes keep accounts by: how far each partition is, and
// what the organizations with a budget used. An organization without one costs nothing. Each report
// names the one before it, so that a process that missed one notices.
import type { LandingReport } from '../../schemas/signals/landing_reports.ts';
import { addUsed } from '../domain/budgets/budget.ts';
import type { CountedUsage } from '../landing/usage_rows.ts';
import type { Prepared } from '../worker/prepare.ts';

/** Maximum number of rows of a report that keep agents, hours and models apart. */
const ROWS_APART_MAX = 1000;

/** Which organizations have accounts, and by which limits. */
export interface Accounts {
  isBudgeted: (org_id: string) => boolean;
  /** Returns true for an API key with a budget of its own. */
  isKeyBudgeted: (org_id: string, key_id: string) => boolean;
  /** Returns the agents that have limits of their own. */
  limitedAgents: (org_id: string) => readonly string[];
}

/** State of a partition that a report needs. */
interface Landed {
  partition: number;
  epoch: number;
  landed_through: number;
  read_through: number;
  behind: boolean;
}

export class UsageReports {
  /** Epoch and position of the newest rows that were reported, by partition. */
  readonly #reported = new Map<number, { epoch: number; log_seq: number }>();

  /**
   * Returns the reports of one landing. Their rows count as reported, whether or not the reports
   * arrive.
   */
  ofLanding({ usage, progress }: Pick<Prepared, 'usage' | 'progress'>, accounts: Accounts): LandingReport[] {
    const byPartition = Map.groupBy(
      usage.filter(
        ({ usage: { org_id, key_id } }) => accounts.isBudgeted(org_id) || accounts.isKeyBudgeted(org_id, key_id),
      ),
      (counted) => counted.partition,
    );
    return progress.map(({ state: { partition, epoch, read_through }, landed_through }) => {
      const report = this.ofProgress({ partition, epoch, landed_through, read_through, behind: true });
      const [first, ...others] = byPartition.get(partition) ?? [];
      if (first === undefined) return report;
      this.#reported.set(partition, { epoch, log_seq: first.log_seq });
      const rows = [first, ...others].map(rowOf);
      return { ...report, log_seq: first.log_seq, rows: rows.length > ROWS_APART_MAX ? merged(rows, accounts) : rows };
    });
  }

  /** Returns a report of how far a partition is, without rows. */
  ofProgress({ partition, epoch, landed_through, read_through, behind }: Landed): LandingReport {
    const reported = this.#reported.get(partition);
    const after = reported?.epoch === epoch ? reported.log_seq : 0;
    return { partition, epoch, landed_through, read_through, behind, after, log_seq: 0, rows: [] };
  }
}

type Row = LandingReport['rows'][number];

const rowOf = ({ usage: total }: CountedUsage): Row => ({
  org_id: total.org_id,
  agent_id: total.agent_id,
  key_id: total.key_id,
  hour: total.hour,
  tokens: total.input_tokens + total.output_tokens,
  storage_bytes: total.storage_bytes,
  // 2^53 microseconds are centuries.
  sandbox_micros: Number(total.sandbox_micros),
  cost_pico_usd: total.cost_pico_usd,
});

/**
 * Merges rows into as few as accounts need, however senders name their agents: agents and API keys
 * without limits of their own become one row. Only large reports are merged. For an agent whose limit was
 * set at this very moment, the tokens of such a landing count once the store is read again.
 */
function merged(rows: readonly Row[], { limitedAgents, isKeyBudgeted }: Accounts): Row[] {
  const limited = new Map<string, ReadonlySet<string>>();
  const sums = new Map<string, Row>();
  for (const row of rows) {
    const agents = limited.get(row.org_id) ?? new Set(limitedAgents(row.org_id));
    limited.set(row.org_id, agents);
    const agent_id = agents.has(row.agent_id) ? row.agent_id : '';
    const key_id = isKeyBudgeted(row.org_id, row.key_id) ? row.key_id : '';
    const key = JSON.stringify([row.org_id, agent_id, key_id, row.hour]);
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, { ...row, agent_id, key_id });
    else addUsed(sum, row);
  }
  return [...sums.values()];
}
