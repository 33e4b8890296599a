// Computes which days a threshold would have marked as anomalies, by the rule of the nightly job: each
// whole day before today against the days before it. Changes nothing.
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import { findAnomaly } from '../../../pipeline/domain/stats/anomaly.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { readCostDays, readFirstDay } from '../../../sql/stores/costs.ts';
import type { CostDeps } from './costs.ts';
import type { AnomalyPreview, AnomalyPreviewQuery } from './schema.ts';

export async function previewAnomalies(
  { clickhouse, now, settings }: Pick<CostDeps, 'clickhouse' | 'now' | 'settings'>,
  org_id: string,
  { days, ...asked }: AnomalyPreviewQuery,
  signal: AbortSignal,
): Promise<AnomalyPreview> {
  const held = settings.anomalyConfigOf(org_id);
  const config = {
    z_threshold: asked.z_threshold ?? held.z_threshold,
    lookback_days: asked.lookback_days ?? held.lookback_days,
  };
  const today = dayOf(now());
  const first = today - days + 1;
  const from = Math.max(0, first - config.lookback_days);
  const [rows, [known]] = await Promise.all([
    readCostDays(clickhouse, { org_id, from, until: today }, { signal }),
    readFirstDay(clickhouse, { org_id }, { signal }),
  ]);
  const costs = rows
    .map(({ on_day, cost_usd }) => ({ day: on_day, model: '', agent_id: '', cost_pico_usd: usdToPico(cost_usd) }))
    .sort((a, b) => a.day - b.day);
  const judged = Array.from({ length: Math.max(0, days - 1) }, (_, index) => first + index);
  return {
    ...config,
    days: judged.flatMap((day) => {
      const near = costs.filter((cost) => cost.day >= day - config.lookback_days && cost.day <= day);
      const found = findAnomaly({ day, running: false, first_day: known?.first_day ?? day, costs: near }, config);
      return found === null
        ? []
        : [
            {
              date: dateOf(day),
              z: found.z,
              expected_usd: picoToUsd(found.expected_pico_usd),
              actual_usd: picoToUsd(found.actual_pico_usd),
            },
          ];
    }),
  };
}
