// Wiring of the settings of organizations that a worker watches: policies, prices, judges and
// budgets.
import { watch } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { BudgetRecord } from '../../schemas/records/budget.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import { ownBounds } from '../domain/patterns/bounds.ts';
import { followJudges, type Judges } from '../judging/enabled_judges.ts';
import { openPolicies, type Policies } from '../settings/org_policies.ts';
import { openPiiPolicies, type PiiPolicies } from '../settings/pii_policies.ts';
import { openPrices, type Prices } from '../settings/prices.ts';
import type { Platform } from './platform.ts';

export interface Settings {
  policies: Policies;
  piiPolicies: PiiPolicies;
  prices: Prices;
  /** Every judge, disabled ones included. */
  judgeRecords: WatchedBucket<JudgeRecord>;
  /** The enabled judges, compiled. */
  judges: Judges;
  budgetRecords: WatchedBucket<BudgetRecord>;
  close: () => void;
}

/**
 * Resolves once the settings of every organization are loaded. From then on a change is visible
 * within moments.
 */
export async function openSettings({ log, sealer, patterns, onProblem }: Platform): Promise<Settings> {
  const [policies, piiPolicies, prices, judgeRecords, budgetRecords] = await Promise.all([
    openPolicies(log, onProblem),
    openPiiPolicies(log, sealer, { onProblem, boundsOf: (org_id) => ownBounds(patterns, org_id) }),
    openPrices(log, onProblem),
    watch(log, 'judges', onProblem),
    watch(log, 'budgets', onProblem),
  ]);
  const close = (): void => {
    for (const bucket of [policies, piiPolicies, prices, judgeRecords, budgetRecords]) bucket.close();
  };
  const judges = followJudges(judgeRecords, onProblem);
  return { policies, piiPolicies, prices, judgeRecords, judges, budgetRecords, close };
}
