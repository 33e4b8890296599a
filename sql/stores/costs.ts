// Reads of the daily costs of organizations, for the API and the scheduled jobs. Days are whole
// numbers since 1970-01-01 (UTC), from `from` up to but not including `until`. Amounts are decimal
// text, so that none passes through floating point.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery } from '../client/query.ts';

const count = z.coerce.number();
/** Range of days. The store reads a number as the day with that number. */
const days = { org_id: z.string(), from: z.int(), until: z.int() };
const flag = z.literal(true).optional();

/**
 * Costs by day, by model and by one further dimension: exactly one of the flags is set. With
 * by_model the further dimension is the total.
 */
export const readCostSummary = defineQuery({
  name: 'cost_summary',
  file: 'costs/summary.sql',
  params: z.object({
    ...days,
    groups_max: z.int(),
    by_model: flag,
    by_agent_id: flag,
    by_realm: flag,
    by_department: flag,
  }),
  row: z.object({
    part: z.enum(['day', 'model', 'group']),
    day: z.string(),
    model: z.string(),
    name: z.string(),
    agent: z.string(),
    cost_usd: z.string(),
    tokens: count,
  }),
});

const uint64 = z.string().transform(BigInt);
/**
 * One or two dimensions: exactly one of the flags of each is set. by_realm and by_department are
 * set if one of the dimensions is that label.
 */
const seriesRows = {
  ...days,
  first_model: flag,
  first_agent_id: flag,
  first_realm: flag,
  first_department: flag,
  second_model: flag,
  second_agent_id: flag,
  second_realm: flag,
  second_department: flag,
  second_none: flag,
  by_realm: flag,
  by_department: flag,
};

/** `middle` is the first day of the period; the period before it begins at `from`. */
export const readSeriesGroups = defineQuery({
  name: 'cost_series_groups',
  file: 'costs/series_groups.sql',
  params: z.object({ ...seriesRows, middle: z.int(), groups_max: z.int() }),
  row: z.object({
    is_total: z.coerce.number(),
    group_key: z.string(),
    first: z.string(),
    second: z.string(),
    agent: z.string(),
    cost_usd: z.string(),
    tokens: count,
    previous_cost_usd: z.string(),
    previous_tokens: count,
  }),
});

export const readSeriesDays = defineQuery({
  name: 'cost_series_days',
  file: 'costs/series_days.sql',
  params: z.object({ ...seriesRows, group_keys: z.array(uint64), places: z.array(z.int()) }),
  row: z.object({ on_day: z.int(), place: z.int(), cost_usd: z.string(), tokens: count }),
});

export const readUnpriced = defineQuery({
  name: 'cost_unpriced',
  file: 'costs/unpriced.sql',
  params: z.object({ ...days, rows: z.int() }),
  row: z.object({ model: z.string(), calls: count, tokens_in: count, tokens_out: count, last_ms: count }),
});

export const readCostDays = defineQuery({
  name: 'cost_days',
  file: 'costs/days.sql',
  params: z.object(days),
  row: z.object({ on_day: z.int(), cost_usd: z.string() }),
});

/** Returns at most one row. */
export const readFirstDay = defineQuery({
  name: 'cost_first_day',
  file: 'costs/first_day.sql',
  params: z.object({ org_id: z.string() }),
  row: z.object({ first_day: z.int() }),
});

/** Use by day of receipt. With by_agent it is the use of the agent. */
export const readDailyUse = defineQuery({
  name: 'daily_use',
  file: 'costs/daily_use.sql',
  params: z.object({ ...days, by_agent: flag, agent_id: z.string().optional() }),
  row: z.object({
    on_day: z.int(),
    tokens: count,
    storage_bytes: count,
    sandbox_micros: count,
    /** Decimal text. */
    cost_usd: z.string(),
  }),
});

/** Returns at most one row. */
export const readFirstUse = defineQuery({
  name: 'first_use',
  file: 'costs/first_use.sql',
  params: z.object({ org_id: z.string() }),
  row: z.object({ first_day: z.int() }),
});

export const readCostShares = defineQuery({
  name: 'cost_shares',
  file: 'costs/shares.sql',
  params: z.object(days),
  row: z.object({ on_day: z.int(), model: z.string(), agent_id: z.string(), cost_usd: z.string() }),
});

export const readCostOrgs = defineQuery({
  name: 'cost_orgs',
  file: 'costs/orgs.sql',
  params: z.object({ from: z.int(), until: z.int() }),
  row: z.object({ org_id: z.string() }),
});

/** `agent` is empty where the event names a department. */
export const readOutcomes = defineQuery({
  name: 'cost_outcomes',
  file: 'costs/outcomes.sql',
  params: z.object(days),
  row: z.object({
    department: z.string(),
    agent: z.string(),
    cost_usd: z.string(),
    /** Outcomes whose sum is not 0, with their sums. */
    names: z.array(z.string()),
    amounts: z.array(z.string()),
    all_names: z.array(z.string()),
  }),
});

/** Newest day first. */
export const readAnomalies = defineQuery({
  name: 'cost_anomalies',
  file: 'costs/anomalies.sql',
  params: z.object({ org_id: z.string() }),
  row: z.object({
    anomaly_id: z.string(),
    date: z.string(),
    detected_at: z.string(),
    z: z.number(),
    expected: z.string(),
    actual: z.string(),
    model: z.string(),
    agent_id: z.string(),
  }),
});

/** Returns at most one row. */
export const readAnomalyTimes = defineQuery({
  name: 'cost_anomaly_times',
  file: 'costs/anomaly_times.sql',
  params: z.object({ org_id: z.string(), day: z.int() }),
  row: z.object({ detected_ms: count }),
});

/** Anomaly as stored: amounts are decimal text, times are milliseconds since the epoch. */
export interface AnomalyRow {
  org_id: string;
  day: number;
  anomaly_id: string;
  detected_ms: number;
  z: number;
  expected: string;
  actual: string;
  model: string;
  agent_id: string;
}

const WRITE_TIMEOUT_MS = 10_000;

/** Writes an anomaly, replacing the stored one of the same organization and day. */
export async function writeAnomaly(client: ClickHouse, row: AnomalyRow): Promise<void> {
  await client.execute({
    name: 'write_anomaly',
    sql: `INSERT INTO anomalies (org_id, day, anomaly_id, detected_at, z, expected_usd, actual_usd, model, agent_id, looked_at)
      SELECT {org_id:String}, toDate({day:UInt16}), {anomaly_id:String}, fromUnixTimestamp64Milli({detected_ms:Int64}, 'UTC'), {z:Float64},
        toDecimal128({expected:String}, 12), toDecimal128({actual:String}, 12), {model:String}, {agent_id:String}, now64(3, 'UTC')`,
    params: { ...row },
    timeoutMs: WRITE_TIMEOUT_MS,
  });
}
