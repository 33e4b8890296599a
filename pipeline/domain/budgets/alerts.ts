// Which alerts of a budget are due: thresholds that the use of the period has reached, or will have reached at its end if it
// goes on as it has, and limits that were crossed. Pure: what was told before comes in, what is to be told goes out.
import type {
  AlertThreshold,
  BudgetRecord,
  BudgetState,
  Limits,
  PeriodState,
  ResourceName,
  Severity,
} from '../../../schemas/records/budget.ts';
import { agentScope, NO_LIMITS, RESOURCES } from '../../../schemas/records/budget.ts';
import { amountOf, limitedAgents, limitsOfAgent, percentageOf, statusOf, type Used } from './budget.ts';
import type { Period } from './period.ts';

const DAY_MS = 86_400_000;
/** Keys that are remembered of one period: twice what all limits of an org and its agents can come to at a time. */
const TOLD_MAX = 10_000;
/** Periods of an org that are remembered. */
const PERIODS_MAX = 6;
/** Percentages that differ by less are one: they are quotients. */
const PERCENT_TOLERANCE = 1e-9;

/** cumulative: the use has reached it. projected: the daily run-rate reaches it before the period ends. */
export type AlertCause = 'cumulative' | 'projected';

export interface DueAlert {
  /** Told once in a period under this key. */
  key: string;
  /** threshold: one that the org has configured. soft, hard: a limit was crossed. */
  kind: 'threshold' | 'soft' | 'hard';
  cause: AlertCause;
  resource: ResourceName;
  /** Set where the limit is an agent's own. */
  agent_id: string | null;
  /** Of the limit; the configured one, or where the crossed limit stands. */
  percent: number;
  /** Now, in the unit of the limits. */
  used: number;
  /** At the end of the period if it goes on as it has; the same as `used` for a cumulative alert. */
  projected: number;
  limits: Limits;
  severity: Severity;
  /** Of a soft limit: a threshold that stands where it does is told now, and says the same. */
  by_threshold?: true;
}

export interface BudgetNow {
  record: BudgetRecord;
  used: Used;
  agentTokens: (agent_id: string) => number;
  period: Period;
  /** Milliseconds since the epoch, within the period. */
  now: number;
}

/** Alerts of what has been used. */
export function cumulativeAlerts(budget: BudgetNow, told: ReadonlySet<string>): DueAlert[] {
  const { record, used } = budget;
  const due: DueAlert[] = [];
  for (const resource of RESOURCES) {
    const amount = amountOf(used, resource);
    due.push(...crossings(resource, null, amount, record[resource]));
    due.push(...thresholds(budget, resource, amount, amount, 'cumulative'));
  }
  for (const agent_id of limitedAgents(record))
    due.push(
      ...crossings('tokens', agent_id, budget.agentTokens(agent_id), limitsOfAgent(record, agent_id) ?? NO_LIMITS),
    );
  const untold = untoldOf(due, told);
  return untold.map((alert) =>
    untold.some((other) => saysTheSame(other, alert)) ? { ...alert, by_threshold: true } : alert,
  );
}

/** Whether a threshold stands where the crossed soft limit of the org does. */
function saysTheSame(threshold: DueAlert, crossing: DueAlert): boolean {
  return (
    threshold.kind === 'threshold' &&
    crossing.kind === 'soft' &&
    crossing.agent_id === null &&
    threshold.resource === crossing.resource &&
    Math.abs(threshold.percent - crossing.percent) < PERCENT_TOLERANCE
  );
}

/** Alerts of what will have been used at the end of the period, at the daily run-rate so far. */
export function projectedAlerts(budget: BudgetNow, told: ReadonlySet<string>): DueAlert[] {
  const due = RESOURCES.flatMap((resource) => {
    const amount = amountOf(budget.used, resource);
    return thresholds(budget, resource, amount, projectionOf(amount, budget.period, budget.now), 'projected');
  });
  const reached = (alert: DueAlert): DueAlert => ({ ...alert, key: keyOf('cumulative', alert) });
  return untoldOf(due, told).filter((alert) => isUntold(reached(alert), told));
}

/** The alerts that have not fired, each once: a threshold may be configured twice. */
function untoldOf(due: readonly DueAlert[], told: ReadonlySet<string>): DueAlert[] {
  const byKey = new Map<string, DueAlert>();
  for (const alert of due) if (isUntold(alert, told)) byKey.set(alert.key, alert);
  return [...byKey.values()];
}

/** An older version kept thresholds without their severity: what it has fired in this period does not fire again. */
function isUntold({ key, kind, severity }: DueAlert, told: ReadonlySet<string>): boolean {
  return !told.has(key) && !(kind === 'threshold' && told.has(key.slice(0, -`:${severity}`.length)));
}

/** The use at the end of the period at the run-rate so far. A rate is taken over one day at least: the first hours say little. */
export function projectionOf(amount: number, period: Period, now: number): number {
  const elapsed = Math.max(DAY_MS, now - period.start);
  return (amount / elapsed) * (period.end - period.start);
}

const keyOf = (cause: AlertCause, { resource, percent, severity }: AlertThreshold): string =>
  `${cause}:${resource}:${String(percent)}:${severity}`;

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

/** A limit that is moved and crossed again is told again: its value is part of the key. */
function crossings(resource: ResourceName, agent_id: string | null, amount: number, limits: Limits): DueAlert[] {
  const status = statusOf(amount, limits);
  if (status === 'ok') return [];
  const scope = agent_id === null ? resource : agentScope(agent_id);
  const common = { cause: 'cumulative' as const, resource, agent_id, used: amount, projected: amount, limits };
  const due: DueAlert[] = [];
  if (limits.soft_limit !== null && amount >= limits.soft_limit)
    due.push({
      ...common,
      key: `soft:${scope}:${String(limits.soft_limit)}`,
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

/** What was told, and what crossed, in a period. */
export function stateIn(state: BudgetState | null | undefined, periodStart: number): PeriodState | null {
  return state?.periods[new Date(periodStart).toISOString()] ?? null;
}

/** What one look has told. */
export interface Told {
  keys: readonly string[];
  /** Hard limits that were crossed, by scope. */
  crossed: PeriodState['crossings'];
}

/** What the alerts leave behind. @param costUsd what the org's use has cost by now, decimal text */
export function toldBy(alerts: readonly DueAlert[], now: number, costUsd: string): Told {
  const at = new Date(now).toISOString();
  const hard = alerts.filter(({ kind }) => kind === 'hard');
  return {
    keys: alerts.map(({ key }) => key),
    crossed: Object.fromEntries(
      hard.map(({ resource, agent_id, limits }) => [
        agent_id === null ? resource : agentScope(agent_id),
        { at, cost_usd: costUsd, hard_limit: limits.hard_limit ?? 0 },
      ]),
    ),
  };
}

/** The state after something was told in a period; of more periods than are kept, the earliest are forgotten. */
export function toldState(
  state: BudgetState | null,
  { org_id, periodStart, told }: { org_id: string; periodStart: number; told: Told },
): BudgetState {
  const before = stateIn(state, periodStart) ?? { crossings: {}, told: [] };
  const period: PeriodState = {
    crossings: { ...before.crossings, ...told.crossed },
    told: [...new Set([...before.told, ...told.keys])].slice(-TOLD_MAX),
  };
  const periods = Object.entries({ ...state?.periods, [new Date(periodStart).toISOString()]: period }).sort(
    ([a], [b]) => (a < b ? -1 : 1),
  );
  return { org_id, periods: Object.fromEntries(periods.slice(-PERIODS_MAX)) };
}
