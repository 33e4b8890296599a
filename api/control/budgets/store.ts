// Budgets in JetStream KV, watched into memory. In: changes of limits and alerts. Out: the record of an org, at once.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { type BudgetRecord, type BudgetState, NO_LIMITS, type PeriodState } from '../../../schemas/records/budget.ts';
import { orgKey, orgOfKey } from '../../../schemas/records/org.ts';
import { stateIn } from '../../../pipeline/domain/budgets/alerts.ts';

type OnProblem = (problem: string, cause: unknown) => void;

/** The budget of an org that never set one. */
export const unlimited = (org_id: string): BudgetRecord => ({
  org_id,
  tokens: NO_LIMITS,
  storage_mb: NO_LIMITS,
  sandbox_seconds: NO_LIMITS,
  agents: {},
  alerts: null,
  updated_at: new Date(0).toISOString(),
});

export class BudgetStore {
  readonly #records: WatchedBucket<BudgetRecord>;
  readonly #states: WatchedBucket<BudgetState>;

  private constructor(records: WatchedBucket<BudgetRecord>, states: WatchedBucket<BudgetState>) {
    this.#records = records;
    this.#states = states;
  }

  static async open(log: Log, onProblem: OnProblem): Promise<BudgetStore> {
    return new BudgetStore(await watch(log, 'budgets', onProblem), await watch(log, 'budget_states', onProblem));
  }

  /** Null where the org never set one: it is unlimited. */
  get(org_id: string): BudgetRecord | null {
    return this.#records.get(orgKey(org_id)) ?? null;
  }

  /** What has come of the org's budget in the period that begins at `period_start`; null where nothing has. */
  state(org_id: string, period_start: number): PeriodState | null {
    return stateIn(this.#states.get(orgKey(org_id)), period_start);
  }

  all(): IterableIterator<BudgetRecord> {
    return this.#records.values();
  }

  /** Applies a change to the newest record; the record itself, given back, leaves all as it is. @returns the record as it stands now */
  async change(org_id: string, apply: (record: BudgetRecord) => BudgetRecord): Promise<BudgetRecord> {
    const changed = await this.#records.change(orgKey(org_id), (held) => {
      const record = held ?? unlimited(org_id);
      const next = apply(record);
      return next === record ? null : next;
    });
    return changed ?? unlimited(org_id);
  }

  /** Calls back with each org whose record changes or is deleted (null), and with each that has one now. */
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
