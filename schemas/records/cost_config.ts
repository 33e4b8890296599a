// Settings of anomaly detection in an organization's costs, as stored in KV and as answered. The
// API writes them; scheduled jobs read them.
import { z } from 'zod';

/** Largest threshold: a z-score above it says nothing more. */
export const Z_MAX = 99;
const LOOKBACK_DAYS = [7, 365] as const;

const fields = {
  z_threshold: z
    .number()
    .gt(0)
    .max(Z_MAX)
    .describe('Distance from the mean, in sample standard deviations, from which a day is an anomaly'),
  lookback_days: z
    .int()
    .min(LOOKBACK_DAYS[0])
    .max(LOOKBACK_DAYS[1])
    .describe('Number of days before a day that it is compared with'),
};

export const anomalyConfig = z.object(fields).meta({ id: 'AnomalyConfig' });
export type AnomalyConfig = z.infer<typeof anomalyConfig>;

/** Settings of an organization that has set none. */
export const DEFAULT_ANOMALY_CONFIG: AnomalyConfig = Object.freeze({ z_threshold: 3, lookback_days: 30 });

/** Fields to change. */
export const anomalyConfigChange = z
  .strictObject({ z_threshold: fields.z_threshold.optional(), lookback_days: fields.lookback_days.optional() })
  .refine(({ z_threshold, lookback_days }) => z_threshold !== undefined || lookback_days !== undefined, {
    error: 'must have z_threshold, lookback_days or both',
  });
export type AnomalyConfigChange = z.infer<typeof anomalyConfigChange>;

/** Records stored before a release added a field take its default. */
const stored = anomalyConfig.partial();

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseAnomalyConfig(text: string): AnomalyConfig {
  return changedAnomalyConfig(DEFAULT_ANOMALY_CONFIG, stored.parse(JSON.parse(text)));
}

/** Returns the settings with a change applied. */
export function changedAnomalyConfig(before: AnomalyConfig, change: AnomalyConfigChange): AnomalyConfig {
  return {
    z_threshold: change.z_threshold ?? before.z_threshold,
    lookback_days: change.lookback_days ?? before.lookback_days,
  };
}
