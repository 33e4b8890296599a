// Job `anomalies`: checks the costs of today so far and of yesterday, organization by organization,
// and stores each day whose cost is anomalous, once. Reads costs by day, model and agent, and each
// organization's configuration; writes rows of the table anomalies and publishes one cost.anomaly
// for each. Guarantees: the event is published before its row is written, under an id derived from
// organization and day, so that a repeat after a crash has the same id and no event is lost.
import { inParallel } from '../../ops/platform/in_parallel.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { AnomalyConfig } from '../../schemas/records/cost_config.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readAnomalyTimes, readCostOrgs, readCostShares, readFirstDay, writeAnomaly } from '../../sql/stores/costs.ts';
import { type DayCost, findAnomaly, type FoundAnomaly } from '../domain/stats/anomaly.ts';
import { dateOf, dayOf } from '../domain/time/days.ts';
import { picoToDecimal, picoToUsd, usdToPico } from '../domain/pricing/money.ts';
import type { JobContext, JobResult } from './job.ts';
import type { JobEvent } from './job_event.ts';
import { hex16 } from '../domain/traces/ids.ts';

export const ANOMALIES = 'anomalies';
/** Only organizations with data within this many days are checked: the longest lookback. */
const ACTIVE_DAYS = 366;
/** Organizations checked concurrently. */
const ORGS_AT_ONCE = 4;

export interface AnomaliesDeps {
  clickhouse: ClickHouse;
  configOf: (org_id: string) => Promise<AnomalyConfig>;
  /** Resolves when the event is stored in EVENTS. */
  publish: (event: JobEvent) => Promise<void>;
}

/**
 * Creates the run of the job. Its result counts the organizations checked, the anomalous days, and
 * the new ones among them.
 */
export function createAnomalies(deps: AnomaliesDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ now, signal, log }) => {
    const today = dayOf(now);
    const orgs = await readCostOrgs(
      deps.clickhouse,
      { from: Math.max(0, today - ACTIVE_DAYS), until: today + 1 },
      { signal },
    );
    const counts = { orgs: orgs.length, anomalies: 0, found: 0 };
    const failures: unknown[] = [];
    const lookAt = async ({ org_id }: (typeof orgs)[number]): Promise<void> => {
      const { anomalies, found } = await look(deps, org_id, now, signal).catch((error: unknown) => {
        keepFailure(failures, log, error);
        return { anomalies: 0, found: 0 };
      });
      counts.anomalies += anomalies;
      counts.found += found;
    };
    await inParallel(orgs, ORGS_AT_ONCE, lookAt, signal);
    // All other organizations were checked; the retry of the run covers those that failed.
    if (failures.length > 0) throw failures[0];
    return counts;
  };
}

function keepFailure(failures: unknown[], log: Logger, error: unknown): void {
  if (failures.length === 0) log.warn({ err: error }, 'the costs of an organization could not be checked');
  failures.push(error);
}

async function look(
  deps: AnomaliesDeps,
  org_id: string,
  now: number,
  signal: AbortSignal,
): Promise<{ anomalies: number; found: number }> {
  const { clickhouse } = deps;
  const config = await deps.configOf(org_id);
  const today = dayOf(now);
  const [rows, [first]] = await Promise.all([
    readCostShares(
      clickhouse,
      { org_id, from: Math.max(0, today - 1 - config.lookback_days), until: today + 1 },
      { signal },
    ),
    readFirstDay(clickhouse, { org_id }, { signal }),
  ]);
  const costs = rows.map(({ on_day, model, agent_id, cost_usd }): DayCost => ({
    day: on_day,
    model,
    agent_id,
    cost_pico_usd: usdToPico(cost_usd),
  }));
  const counts = { anomalies: 0, found: 0 };
  for (const day of [today - 1, today]) {
    const anomaly = findAnomaly({ day, running: day === today, first_day: first?.first_day ?? day, costs }, config);
    if (anomaly === null) continue;
    counts.anomalies += 1;
    if (await keep(deps, { org_id, day, anomaly, now, signal })) counts.found += 1;
  }
  return counts;
}

interface Keep {
  org_id: string;
  day: number;
  anomaly: FoundAnomaly;
  now: number;
  signal: AbortSignal;
}

/**
 * Writes the current state of an anomaly and publishes the event of a new one.
 * @returns true if the anomaly is new
 */
async function keep(
  { clickhouse, publish }: AnomaliesDeps,
  { org_id, day, anomaly, now, signal }: Keep,
): Promise<boolean> {
  const [known] = await readAnomalyTimes(clickhouse, { org_id, day }, { signal });
  const anomaly_id = `anom_${hex16(`anomaly\n${org_id}\n${dateOf(day)}`)}`;
  const { z, expected_pico_usd, actual_pico_usd, attributed_to } = anomaly;
  if (known === undefined) await publish(eventOf(org_id, anomaly_id, day, anomaly));
  await writeAnomaly(clickhouse, {
    org_id,
    day,
    anomaly_id,
    detected_ms: known?.detected_ms ?? now,
    z,
    expected: picoToDecimal(expected_pico_usd),
    actual: picoToDecimal(actual_pico_usd),
    ...attributed_to,
  });
  return known === undefined;
}

function eventOf(org_id: string, anomaly_id: string, day: number, anomaly: FoundAnomaly): JobEvent {
  const { model, agent_id } = anomaly.attributed_to;
  const event = 'cost.anomaly';
  return {
    event_id: `evt_${hex16(`${event}\n${org_id}\n${dateOf(day)}`)}`,
    event,
    org_id,
    payload: {
      event,
      org_id,
      anomaly_id,
      date: dateOf(day),
      z: anomaly.z,
      expected_usd: picoToUsd(anomaly.expected_pico_usd),
      actual_usd: picoToUsd(anomaly.actual_pico_usd),
      attributed_to: { model: model === '' ? null : model, agent_id: agent_id === '' ? null : agent_id },
    },
  };
}
