// How an org's costs are watched, as stored in KV by org and as answered. Written by the API, read by the scheduled jobs.
import { z } from 'zod';

/** A z-score says no more beyond this, so no threshold lies beyond it either. */
export const Z_MAX = 99;
const LOOKBACK_DAYS = [7, 365] as const;

const fields = {
  z_threshold: z
    .number()
    .gt(0)
    .max(Z_MAX)
    .describe('From which distance, in sample standard deviations, a day is an anomaly'),
  lookback_days: z
    .int()
    .min(LOOKBACK_DAYS[0])
    .max(LOOKBACK_DAYS[1])
    .describe('Days before a day that it is compared with'),
};

export const anomalyConfig = z.object(fields).meta({ id: 'AnomalyConfig' });
export type AnomalyConfig = z.infer<typeof anomalyConfig>;

/** What holds for an org that has set nothing. */
export const DEFAULT_ANOMALY_CONFIG: AnomalyConfig = Object.freeze({ z_threshold: 3, lookback_days: 30 });

/** Fields to change. */
export const anomalyConfigChange = z
  .strictObject({ z_threshold: fields.z_threshold.optional(), lookback_days: fields.lookback_days.optional() })
  .refine(({ z_threshold, lookback_days }) => z_threshold !== undefined || lookback_days !== undefined, {
    error: 'takes z_threshold, lookback_days or both',
  });
export type AnomalyConfigChange = z.infer<typeof anomalyConfigChange>;

/** Fields that a later release added have their default in what was stored before. */
const stored = anomalyConfig.partial();

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseAnomalyConfig(text: string): AnomalyConfig {
  return changedAnomalyConfig(DEFAULT_ANOMALY_CONFIG, stored.parse(JSON.parse(text)));
}

/** The config with the change made. */
export function changedAnomalyConfig(before: AnomalyConfig, change: AnomalyConfigChange): AnomalyConfig {
  return {
    z_threshold: change.z_threshold ?? before.z_threshold,
    lookback_days: change.lookback_days ?? before.lookback_days,
  };
}
