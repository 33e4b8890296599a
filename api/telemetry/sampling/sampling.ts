// Reports the sampling settings of the process, and what sampling kept of an organization's events.
import { z } from 'zod';
import type { Env } from '../../../ops/platform/env.ts';
import { PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import type { Sampling, SamplingQuery } from './schema.ts';

export type SamplingSettings = Pick<
  Env,
  | 'SERVICE_SAMPLING_PROFILE'
  | 'SERVICE_SAMPLING_ENABLED'
  | 'SERVICE_SAMPLING_SLOW_MS'
  | 'SERVICE_SAMPLING_TAIL'
  | 'SERVICE_SAMPLING_BUFFER_SLOTS'
>;

export interface SamplingDeps {
  settings: SamplingSettings;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const WINDOW_MS = 30 * 86_400_000;
/** The last time that DateTime64(3) certainly holds, milliseconds: the end of 2299. */
const LAST_MS = Date.UTC(2299, 11, 31);

/** Int64 and UInt64 arrive as text; these values stay below 2^53. */
const count = z.coerce.number().pipe(z.int());

const readCounts = defineQuery({
  name: 'sampling_counts',
  file: 'sampling/counts.sql',
  params: z.object({ org_id: z.string(), since_ms: z.int(), until_ms: z.int() }),
  row: z.object({ kept: count, summarised: count, traces_kept: count, traces_summarised: count }),
});

/** Resolves with the settings and exact counts; rejects when the store is unavailable. */
export async function getSampling(
  { settings, clickhouse, now }: SamplingDeps,
  org_id: string,
  query: SamplingQuery,
  signal: AbortSignal,
): Promise<Sampling> {
  const since_ms = query.since ?? now() - WINDOW_MS;
  const [counts] = await readCounts(clickhouse, { org_id, since_ms, until_ms: query.until ?? LAST_MS }, { signal });
  const { SERVICE_SAMPLING_PROFILE: profile, SERVICE_SAMPLING_ENABLED: enabled } = settings;
  return {
    profile,
    enabled,
    rate: enabled ? PROFILE_RATE[profile] : 1,
    rates: PROFILE_RATE,
    slow_ms: settings.SERVICE_SAMPLING_SLOW_MS,
    tail: settings.SERVICE_SAMPLING_TAIL,
    buffer: { slots: settings.SERVICE_SAMPLING_BUFFER_SLOTS },
    kept: counts?.kept ?? 0,
    summarised: counts?.summarised ?? 0,
    traces: { kept: counts?.traces_kept ?? 0, summarised: counts?.traces_summarised ?? 0 },
    since: new Date(since_ms).toISOString(),
  };
}
