// Decides which budget alerts are due: thresholds that the period's use has reached, thresholds
// that it will reach by the end of the period at the current rate, and crossed limits. Pure: the
// alerts sent so far come in, the alerts to send go out.
import type {
  AlertThreshold,
  BudgetRecord,
  BudgetState,
  Limits,
  PeriodState,
  ResourceName,
  Severity,
} from '../../../schemas/records/budget.ts';
import { AGENT_RESOURCES, limitScope, NO_LIMITS, RESOURCES } from '../../../schemas/records/budget.ts';
import { amountOf, limitedAgents, limitsOfAgent, percentageOf, statusOf, type Used } from './budget.ts';
import type { Period } from './period.ts';

const DAY_MS = 86_400_000;
/**
 * Maximum keys remembered for one period: twice the number that all limits of an organization and
 * its agents can produce.
 */
const SENT_KEYS_MAX = 10_000;
/** Maximum periods remembered for an organization. */
const PERIODS_MAX = 6;
/** Percentages closer than this are equal: they are quotients of binary fractions. */
const PERCENT_TOLERANCE = 1e-9;

/**
 * `cumulative`: use has reached the threshold. `projected`: use reaches it before the period ends,
 * at the average daily rate so far.
 */
export type AlertCause = 'cumulative' | 'projected';

export interface DueAlert {
  /** Identifies the alert within its period; each key is sent once. */
  key: string;
  /**
   * `threshold`: a threshold that the organization configured. `soft`, `hard`: a limit was crossed.
   */
  kind: 'threshold' | 'soft' | 'hard';
  cause: AlertCause;
  resource: ResourceName;
  /** The agent whose own limit this is; null for the organization's limit. */
  agent_id: string | null;
  /** Percentage of the limit: the configured threshold, or the position of the crossed limit. */
  percent: number;
  /** Current use, in the unit of the limits. */
  used: number;
  /** Use at the end of the period at the current rate; equals `used` for a cumulative alert. */
  projected: number;
  limits: Limits;
  severity: Severity;
  /**
   * Set on a crossed soft limit that coincides with a threshold which is sent in the same run and
   * reports the same.
   */
  by_threshold?: true;
}

export interface BudgetNow {
  record: BudgetRecord;
  used: Used;
  agentUsed: (agent_id: string) => Used;
  period: Period;
  /** Milliseconds since the epoch, within the period. */
  now: number;
}

/** Returns the alerts that current use triggers. */
export function cumulativeAlerts(budget: BudgetNow, told: ReadonlySet<string>): DueAlert[] {
  const { record, used } = budget;
  const due: DueAlert[] = [];
  for (const resource of RESOURCES) {
    const amount = amountOf(used, resource);
    due.push(...crossings(resource, null, amount, record[resource]));
    due.push(...thresholds(budget, resource, amount, amount, 'cumulative'));
  }
  for (const agent_id of limitedAgents(record))
    for (const resource of AGENT_RESOURCES) {
      const own = limitsOfAgent(record, agent_id, resource) ?? NO_LIMITS;
      due.push(...crossings(resource, agent_id, amountOf(budget.agentUsed(agent_id), resource), own));
    }
  const untold = unsentOf(due, told);
  return untold.map((alert) =>
    untold.some((other) => saysTheSame(other, alert)) ? { ...alert, by_threshold: true } : alert,
  );
}

/** Returns true when the threshold coincides with the crossed soft limit of the organization. */
function saysTheSame(threshold: DueAlert, crossing: DueAlert): boolean {
  return (
    threshold.kind === 'threshold' &&
    crossing.kind === 'soft' &&
    crossing.agent_id === null &&
    threshold.resource === crossing.resource &&
    Math.abs(threshold.percent - crossing.percent) < PERCENT_TOLERANCE
  );
}

/**
 * Returns the alerts that use at the end of the period will trigger, at the average daily rate so
 * far.
 */
export function projectedAlerts(budget: BudgetNow, told: ReadonlySet<string>): DueAlert[] {
  const due = RESOURCES.flatMap((resource) => {
    const amount = amountOf(budget.used, resource);
    return thresholds(budget, resource, amount, projectionOf(amount, budget.period, budget.now), 'projected');
  });
  const reached = (alert: DueAlert): DueAlert => ({ ...alert, key: keyOf('cumulative', alert) });
  return unsentOf(due, told).filter((alert) => isUnsent(reached(alert), told));
}

/**
 * Keeps alerts that were not sent yet, once each: an organization may configure the same threshold
 * twice.
 */
function unsentOf(due: readonly DueAlert[], told: ReadonlySet<string>): DueAlert[] {
  const byKey = new Map<string, DueAlert>();
  for (const alert of due) if (isUnsent(alert, told)) byKey.set(alert.key, alert);
  return [...byKey.values()];
}

/**
 * Earlier versions stored threshold keys without a severity. A threshold that such a version sent
 * in this period is not sent again.
 */
function isUnsent({ key, kind, severity }: DueAlert, told: ReadonlySet<string>): boolean {
  return !told.has(key) && !(kind === 'threshold' && told.has(key.slice(0, -`:${severity}`.length)));
}

/**
 * Returns the use at the end of the period at the rate so far. The rate is taken over at least one
 * day, as the first hours say little.
 */
export function projectionOf(amount: number, period: Period, now: number): number {
  const elapsed = Math.max(DAY_MS, now - period.start);
  return (amount / elapsed) * (period.end - period.start);
}

const keyOf = (cause: AlertCause, { resource, percent, severity }: AlertThreshold): string =>
  `${cause}:${resource}:${percent}:${severity}`;

function thresholds(
  { record }: BudgetNow,
  resource: ResourceName,
  amount: number,
  reached: number,
  cause: AlertCause,
): DueAlert[] {
  const limits = record[resource];
  if (limits.hard_limit === null && limits.soft_limit === null) return [];
  return (record.alerts?.thresholds ?? [])
    .filter(
      (threshold) =>
        threshold.resource === resource && percentageOf(reached, limits) > threshold.percent - PERCENT_TOLERANCE,
    )
    .map(({ percent, severity }) => ({
      key: keyOf(cause, { resource, percent, severity }),
      kind: 'threshold' as const,
      cause,
      resource,
      agent_id: null,
      percent,
      used: amount,
      projected: reached,
      limits,
      severity,
    }));
}

/**
 * The key contains the limit's value, so a limit that is changed and crossed again triggers a new
 * alert.
 */
function crossings(resource: ResourceName, agent_id: string | null, amount: number, limits: Limits): DueAlert[] {
  const status = statusOf(amount, limits);
  if (status === 'ok') return [];
  const scope = limitScope(resource, agent_id);
  const common = { cause: 'cumulative' as const, resource, agent_id, used: amount, projected: amount, limits };
  const due: DueAlert[] = [];
  if (limits.soft_limit !== null && amount >= limits.soft_limit)
    due.push({
      ...common,
      key: `soft:${scope}:${limits.soft_limit}`,
      kind: 'soft',
      percent: percentageOf(limits.soft_limit, limits),
      severity: 'warning',
    });
  if (status === 'hard_exceeded')
    due.push({
      ...common,
      key: `hard:${scope}:${String(limits.hard_limit)}`,
      kind: 'hard',
      percent: 100,
      severity: 'critical',
    });
  return due;
}

/** Returns the alerts sent and the limits crossed in a period. */
export function stateIn(state: BudgetState | null | undefined, periodStart: number): PeriodState | null {
  return state?.periods[new Date(periodStart).toISOString()] ?? null;
}

/** The alerts that one evaluation sent. */
export interface SentAlerts {
  keys: readonly string[];
  /** Crossed hard limits, by scope. */
  crossed: PeriodState['crossings'];
}

/**
 * Returns what to remember of the alerts that were sent.
 * @param costUsd cost of the organization's use so far, decimal text
 */
export function sentBy(alerts: readonly DueAlert[], now: number, costUsd: string): SentAlerts {
  const at = new Date(now).toISOString();
  const hard = alerts.filter(({ kind }) => kind === 'hard');
  return {
    keys: alerts.map(({ key }) => key),
    crossed: Object.fromEntries(
      hard.map(({ resource, agent_id, limits }) => [
        limitScope(resource, agent_id),
        { at, cost_usd: costUsd, hard_limit: limits.hard_limit ?? 0 },
      ]),
    ),
  };
}

/**
 * Returns the state after alerts were sent in a period. Beyond PERIODS_MAX periods the earliest are
 * dropped.
 */
export function stateAfter(
  state: BudgetState | null,
  { org_id, periodStart, told }: { org_id: string; periodStart: number; told: SentAlerts },
): BudgetState {
  const before = stateIn(state, periodStart) ?? { crossings: {}, told: [] };
  const period: PeriodState = {
    crossings: { ...before.crossings, ...told.crossed },
    told: [...new Set([...before.told, ...told.keys])].slice(-SENT_KEYS_MAX),
  };
  const periods = Object.entries({ ...state?.periods, [new Date(periodStart).toISOString()]: period }).sort(
    ([a], [b]) => (a < b ? -1 : 1),
  );
  return { org_id, periods: Object.fromEntries(periods.slice(-PERIODS_MAX)) };
}
