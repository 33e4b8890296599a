// Budgets in JetStream KV, watched into memory. It takes changes of limits and alerts, and returns
// records without leaving the process.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { type BudgetRecord, type BudgetState, type PeriodState, unlimited } from '../../../schemas/records/budget.ts';
import { orgKey, orgOfKey } from '../../../schemas/records/org.ts';
import { stateIn } from '../../../pipeline/domain/budgets/alerts.ts';

export class BudgetStore {
  readonly #records: WatchedBucket<BudgetRecord>;
  readonly #states: WatchedBucket<BudgetState>;

  private constructor(records: WatchedBucket<BudgetRecord>, states: WatchedBucket<BudgetState>) {
    this.#records = records;
    this.#states = states;
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<BudgetStore> {
    return new BudgetStore(await watch(log, 'budgets', onProblem), await watch(log, 'budget_states', onProblem));
  }

  /** Returns the record of an organization; null if it never set a budget and is unlimited. */
  get(org_id: string): BudgetRecord | null {
    return this.#records.get(orgKey(org_id)) ?? null;
  }

  /**
   * Returns what the alerts and limits of an organization have caused in the period that begins at
   * `period_start`; null for nothing.
   */
  state(org_id: string, period_start: number): PeriodState | null {
    return stateIn(this.#states.get(orgKey(org_id)), period_start);
  }

  all(): IterableIterator<BudgetRecord> {
    return this.#records.values();
  }

  /**
   * Applies a change to the newest record; `apply` returns its argument to change nothing. @returns
   * the stored record
   */
  async change(org_id: string, apply: (record: BudgetRecord) => BudgetRecord): Promise<BudgetRecord> {
    const changed = await this.#records.change(orgKey(org_id), (held) => {
      const record = held ?? unlimited(org_id);
      const next = apply(record);
      return next === record ? null : next;
    });
    return changed ?? unlimited(org_id);
  }

  /**
   * Calls the listener with every existing record, then with each record that changes, and with
   * null for one that is deleted.
   */
  follow(listener: (org_id: string, record: BudgetRecord | null) => void): () => void {
    for (const record of this.#records.values()) listener(record.org_id, record);
    return this.#records.onChange((key, held) => {
      listener(orgOfKey(key), held?.value ?? null);
    });
  }

  close(): void {
    this.#records.close();
    this.#states.close();
  }
}
