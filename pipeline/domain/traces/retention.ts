// Computes what is due by retention at an instant. In: policies of organizations, an instant. Out:
// for each organization the newest day whose rows are due. Pure. Days are whole days UTC: what
// began on day D and is kept for n days is due from the start of day D + n on, so that a day of an
// organization is deleted as a whole.
import { DEFAULT_RETENTION, type RetentionPolicy } from '../../../schemas/records/retention.ts';
import { dayOf } from '../time/days.ts';
import { MONTHLY, periodAt, type PeriodRule } from '../budgets/period.ts';

/** Kinds of data with a retention of their own in a policy. */
export const RETAINED_KINDS = ['texts', 'metadata', 'telemetry', 'judge_scores', 'usage_events', 'audit_log'] as const;
export type RetainedKind = (typeof RETAINED_KINDS)[number];

/** Cutoff of data that is never deleted: no day comes before it. */
export const NEVER = -1;

/**
 * Returns the days for which an organization keeps a kind of data; null when it is never deleted.
 */
export function retentionDays(policy: RetentionPolicy, kept: RetainedKind): number | null {
  switch (kept) {
    case 'texts':
      return policy.telemetry_events.full_prompt_response_days;
    case 'metadata':
      return policy.telemetry_events.metadata_only_days;
    case 'telemetry':
      return policy.telemetry_events.delete_after_days;
    case 'judge_scores':
    case 'usage_events':
    case 'audit_log':
      return policy[kept].delete_after_days;
  }
}

/**
 * Returns the newest day whose rows are due as of `now` (milliseconds since the epoch); NEVER when
 * none is. Usage of the budget's current period is never due, however short its retention: these
 * rows add up to the budget's use.
 */
export function cutoffDay(policy: RetentionPolicy, kept: RetainedKind, now: number, budget: PeriodRule): number {
  const days = retentionDays(policy, kept);
  if (days === null) return NEVER;
  const newest = kept === 'usage_events' ? dayOf(periodAt(budget, now).start) - 1 : Infinity;
  return Math.max(NEVER, Math.min(dayOf(now) - days, newest));
}

export interface OrgPolicy {
  org_id: string;
  policy: RetentionPolicy;
  /** Defines when the organization's budget period begins. */
  budget: PeriodRule;
}

/**
 * Organizations whose ids lie in a range with their cutoffs, and the cutoff that applies to all
 * others in it.
 */
export interface CutoffRange {
  /** First id in the range. */
  from: string;
  /** First id after the range; null for a range without an end. */
  until: string | null;
  orgs: string[];
  /** One for each entry of `orgs`. */
  cutoffs: Record<RetainedKind, number[]>;
  /** Cutoffs of every organization without a policy of its own. */
  others: Record<RetainedKind, number>;
}

/**
 * Returns the cutoffs of all organizations in adjoining ranges of ids, each naming at most
 * `orgsMax`, so that the size of one statement is bounded however many organizations have a policy
 * of their own.
 */
export function cutoffRanges(policies: readonly OrgPolicy[], now: number, orgsMax: number): CutoffRange[] {
  const sorted = policies.toSorted((a, b) => (a.org_id < b.org_id ? -1 : 1));
  // The default keeps usage for longer than any budget period lasts, so any period rule gives the
  // same cutoff.
  const others = perRetainedKind((kept) => cutoffDay(DEFAULT_RETENTION, kept, now, MONTHLY));
  const count = Math.max(1, Math.ceil(sorted.length / orgsMax));
  return Array.from({ length: count }, (_, index) => {
    const own = sorted.slice(index * orgsMax, (index + 1) * orgsMax);
    return {
      from: index === 0 ? '' : (own[0]?.org_id ?? ''),
      until: sorted[(index + 1) * orgsMax]?.org_id ?? null,
      orgs: own.map(({ org_id }) => org_id),
      cutoffs: perRetainedKind((kept) => own.map(({ policy, budget }) => cutoffDay(policy, kept, now, budget))),
      others,
    };
  });
}

/** Returns the newest cutoff in a range: younger rows are due for no organization. */
export function newestCutoff({ cutoffs, others }: CutoffRange, kept: RetainedKind): number {
  return Math.max(others[kept], ...cutoffs[kept]);
}

function perRetainedKind<T>(value: (kept: RetainedKind) => T): Record<RetainedKind, T> {
  return Object.fromEntries(RETAINED_KINDS.map((kept) => [kept, value(kept)])) as Record<RetainedKind, T>;
}
