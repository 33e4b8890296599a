// Job `forecast`: projects the use of the current period for each resource with a hard limit, and
// reports, once per period, a limit that will be reached before the period ends. Reads use by day
// of receipt, budgets and policies; publishes one cost.forecast_breach per organization, period and
// resource, and notes it in the organization's budget state. Guarantees: the event is published
// before the note is written, under an id derived from its content, so that a repeat after a crash
// has the same id. The forecast of costs needs no job: it is computed whenever it is read.
import { hex16 } from '../domain/traces/ids.ts';
import { type BudgetRecord, type BudgetState, RESOURCES, type ResourceName } from '../../schemas/records/budget.ts';
import { orgKey } from '../../schemas/records/org.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readDailyUse, readFirstUse } from '../../sql/stores/costs.ts';
import { amountOf } from '../domain/budgets/budget.ts';
import { stateIn, stateAfter } from '../domain/budgets/alerts.ts';
import { usdToPico } from '../domain/pricing/money.ts';
import { dateOf, dayOf } from '../domain/time/days.ts';
import { projectUse, trainForecast, TRAINING_DAYS } from '../domain/stats/forecast.ts';
import { periodAt, type PeriodRule } from '../domain/budgets/period.ts';
import type { JobContext, JobResult } from './job.ts';
import type { JobEvent } from './job_event.ts';

export const FORECAST = 'forecast';
/** A limit that will be reached within this many days is critical. */
const CRITICAL_DAYS = 3;

/** Bucket that is open for the length of a run. */
export interface RunBucket<T> {
  values: () => Iterable<T>;
  get: (key: string) => T | undefined;
  change: (key: string, apply: (value: T | undefined) => T | null) => Promise<T | undefined>;
  close: () => void;
}

export interface ForecastDeps {
  clickhouse: ClickHouse;
  openBudgets: () => Promise<RunBucket<BudgetRecord>>;
  openStates: () => Promise<RunBucket<BudgetState>>;
  /** Returns the rule that starts the organization's budget periods. */
  ruleOf: (org_id: string) => Promise<PeriodRule>;
  /** Resolves when the event is stored in EVENTS. */
  publish: (event: JobEvent) => Promise<void>;
}

/**
 * Creates the run of the job. Its result counts the limits checked, the limits that will be
 * reached, and the events published now.
 */
export function createForecast(deps: ForecastDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ now, signal }) => {
    const [budgets, states] = [await deps.openBudgets(), await deps.openStates()];
    try {
      const counts = { limits: 0, breaches: 0, told: 0 };
      for (const budget of [...budgets.values()]) {
        signal.throwIfAborted();
        const limited = RESOURCES.filter((resource) => budget[resource].hard_limit !== null);
        if (limited.length === 0) continue;
        counts.limits += limited.length;
        const breaches = await breachesOf(deps, budget, limited, now, signal);
        counts.breaches += breaches.length;
        for (const breach of breaches) if (await publishOnce(deps, states, budget.org_id, breach)) counts.told += 1;
      }
      return counts;
    } finally {
      budgets.close();
      states.close();
    }
  };
}

interface Breach {
  resource: ResourceName;
  /** Start of the period, ISO 8601. */
  period_start: string;
  predicted: number;
  threshold: number;
  date: string;
  severity: 'warning' | 'critical';
}

/** Returns the limits that are not reached yet and will be before the period ends. */
async function breachesOf(
  { clickhouse, ruleOf }: ForecastDeps,
  budget: BudgetRecord,
  resources: readonly ResourceName[],
  now: number,
  signal: AbortSignal,
): Promise<Breach[]> {
  const { org_id } = budget;
  const period = periodAt(await ruleOf(org_id), now);
  const [today, first, end] = [dayOf(now), dayOf(period.start), dayOf(period.end)];
  const from = Math.min(today - TRAINING_DAYS, first);
  const [rows, [known]] = await Promise.all([
    readDailyUse(clickhouse, { org_id, from, until: today + 1 }, { signal }),
    readFirstUse(clickhouse, { org_id }, { signal }),
  ]);
  const byDay = new Map(
    rows.map(({ cost_usd, ...row }) => [row.on_day, { ...row, cost_pico_usd: usdToPico(cost_usd) }]),
  );
  return resources.flatMap((resource): Breach[] => {
    const on = (day: number): number => {
      const used = byDay.get(day);
      return used === undefined ? 0 : amountOf(used, resource);
    };
    const range = (start: number, until: number): number[] =>
      Array.from({ length: Math.max(0, until - start) }, (_, index) => on(start + index));
    const limit = budget[resource].hard_limit ?? Infinity;
    const used = range(first, today + 1).reduce((sum, amount) => sum + amount, 0);
    // A limit that is already reached has an alert of its own.
    if (used >= limit) return [];
    const forecast = trainForecast(range(Math.max(today - TRAINING_DAYS, known?.first_day ?? today), today));
    const { predicted, reached_in } = projectUse(forecast, {
      used,
      usedToday: on(today),
      daysLeft: end - today,
      limit,
    });
    if (reached_in === null) return [];
    const severity = reached_in < CRITICAL_DAYS ? 'critical' : 'warning';
    return [
      {
        resource,
        period_start: new Date(period.start).toISOString(),
        predicted,
        threshold: limit,
        date: dateOf(today + reached_in),
        severity,
      },
    ];
  });
}

/** @returns true if the breach had not been published in its period */
async function publishOnce(
  { publish }: ForecastDeps,
  states: RunBucket<BudgetState>,
  org_id: string,
  breach: Breach,
): Promise<boolean> {
  const { period_start, ...fields } = breach;
  const key = `forecast:${breach.resource}`;
  const periodStart = Date.parse(period_start);
  if (stateIn(states.get(orgKey(org_id)), periodStart)?.told.includes(key) === true) return false;
  const event = 'cost.forecast_breach';
  const id = hex16(`${event}\n${org_id}\n${period_start}\n${breach.resource}`);
  await publish({ event_id: `evt_${id}`, event, org_id, payload: { event, org_id, ...fields, period_start } });
  await states.change(orgKey(org_id), (state) =>
    stateAfter(state ?? null, { org_id, periodStart, told: { keys: [key], crossed: {} } }),
  );
  return true;
}
