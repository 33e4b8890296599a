// What is due by retention, as of an instant. In: policies of orgs, an instant. Out: for each org the newest day whose rows are due.
// Pure. Days are whole days UTC: what began on day D and is kept for n days is due from the start of day D + n on, so that a day
// of an org goes as a whole.
import { DEFAULT_RETENTION, type RetentionPolicy } from '../../../schemas/records/retention.ts';
import { dayOf } from '../time/days.ts';
import { MONTHLY, periodAt, type PeriodRule } from '../budgets/period.ts';

/** What has days of its own in a policy. */
export const KEPT = ['texts', 'metadata', 'telemetry', 'judge_scores', 'usage_events', 'audit_log'] as const;
export type Kept = (typeof KEPT)[number];

/** The cutoff of what is kept for good: no day comes before it. */
export const NEVER = -1;

/** Days for which an org keeps something; null: for good. */
export function keptDays(policy: RetentionPolicy, kept: Kept): number | null {
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
 * Returns the newest day whose rows are due as of `now` (milliseconds since the epoch); NEVER when none is. Usage of the current period
 * of the budget is never due, however few days it is kept: what a budget has used is the sum of these rows.
 */
export function cutoffDay(policy: RetentionPolicy, kept: Kept, now: number, budget: PeriodRule): number {
  const days = keptDays(policy, kept);
  if (days === null) return NEVER;
  const newest = kept === 'usage_events' ? dayOf(periodAt(budget, now).start) - 1 : Infinity;
  return Math.max(NEVER, Math.min(dayOf(now) - days, newest));
}

export interface OrgPolicy {
  org_id: string;
  policy: RetentionPolicy;
  /** When the organization's budget starts over. */
  budget: PeriodRule;
}

/** Orgs whose ids lie in a range, and their cutoffs: those that are named, and what holds for all others in it. */
export interface CutoffRange {
  /** First id in the range. */
  from: string;
  /** First id past the range; null: it has no end. */
  until: string | null;
  orgs: string[];
  /** One for each of orgs. */
  cutoffs: Record<Kept, number[]>;
  /** Of every org that has no policy of its own. */
  others: Record<Kept, number>;
}

/**
 * The cutoffs of all orgs there are, in ranges of ids that meet each other, none of which names more than `orgsMax`: what goes
 * into one statement is bounded, however many orgs have a policy of their own.
 */
export function cutoffRanges(policies: readonly OrgPolicy[], now: number, orgsMax: number): CutoffRange[] {
  const sorted = policies.toSorted((a, b) => (a.org_id < b.org_id ? -1 : 1));
  // The default keeps usage for longer than any period lasts: it does not matter which one an organization has.
  const others = perKept((kept) => cutoffDay(DEFAULT_RETENTION, kept, now, MONTHLY));
  const count = Math.max(1, Math.ceil(sorted.length / orgsMax));
  return Array.from({ length: count }, (_, index) => {
    const own = sorted.slice(index * orgsMax, (index + 1) * orgsMax);
    return {
      from: index === 0 ? '' : (own[0]?.org_id ?? ''),
      until: sorted[(index + 1) * orgsMax]?.org_id ?? null,
      orgs: own.map(({ org_id }) => org_id),
      cutoffs: perKept((kept) => own.map(({ policy, budget }) => cutoffDay(policy, kept, now, budget))),
      others,
    };
  });
}

/** The newest cutoff in a range: what is younger is due for nobody. */
export function newestCutoff({ cutoffs, others }: CutoffRange, kept: Kept): number {
  return Math.max(others[kept], ...cutoffs[kept]);
}

function perKept<T>(value: (kept: Kept) => T): Record<Kept, T> {
  return Object.fromEntries(KEPT.map((kept) => [kept, value(kept)])) as Record<Kept, T>;
}
