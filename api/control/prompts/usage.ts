// Shows how a prompt is used: calls, cost, duration, errors and scores of its versions over the last
// days, from the spans that name it. Bounded in time, and in versions and scores by the constants.
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { VERSIONS_MAX } from './prompts.ts';
import type { CallsQuery, PromptCall, PromptUsage, UsageFigures } from './schema.ts';
import { readRecentCalls, readUsage, readUsageScores, type ScoreRow, type UsageRow } from './usage_store.ts';

const DAY_MS = 86_400_000;
/** Maximum scores of one version. */
const SCORES_MAX = 20;
/** Maximum bytes of the variables of one call. */
const VARIABLE_BYTES_MAX = 65_536;

export interface UsageDeps {
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
}

interface Shown {
  data: PromptUsage;
  meta: { total: number; truncated: boolean };
}

/** Returns the usage of the last `days` times 24 hours. */
export async function showUsage(
  { clickhouse, now }: UsageDeps,
  { org_id, name, days }: { org_id: string; name: string; days: number },
  signal: AbortSignal,
): Promise<Shown> {
  const to_ms = now();
  const calls = { org_id, name, from_ms: to_ms - days * DAY_MS, to_ms };
  const rows = VERSIONS_MAX + 1;
  const [used, scored] = await Promise.all([
    readUsage(clickhouse, { ...calls, rows }, { signal }),
    readUsageScores(clickhouse, { ...calls, rows: rows * SCORES_MAX, scores_max: SCORES_MAX }, { signal }),
  ]);
  const total = used.find(({ is_total }) => is_total);
  const versions = used.filter(({ is_total }) => !is_total);
  return {
    data: {
      name,
      since: new Date(calls.from_ms).toISOString(),
      until: new Date(to_ms).toISOString(),
      ...(total === undefined ? NO_USE : figuresOf(total, scored)),
      versions: versions.map((row) => ({
        version: row.version === '' ? null : row.version,
        ...figuresOf(row, scored),
      })),
    },
    meta: { total: total?.versions ?? 0, truncated: versions.length < (total?.versions ?? 0) },
  };
}

const NO_USE: UsageFigures = {
  calls: 0,
  failed_calls: 0,
  error_rate: 0,
  cost_usd: 0,
  input_tokens: 0,
  output_tokens: 0,
  p50_duration_ms: null,
  p95_duration_ms: null,
  first_seen: null,
  last_seen: null,
  scores: [],
};

function figuresOf(row: UsageRow, scores: readonly ScoreRow[]): UsageFigures {
  const [p50_duration_ms, p95_duration_ms] = row.quantiles;
  return {
    calls: row.calls,
    failed_calls: row.failed,
    error_rate: row.failed / row.calls,
    cost_usd: picoToUsd(usdToPico(row.cost)),
    input_tokens: row.tokens_in,
    output_tokens: row.tokens_out,
    p50_duration_ms,
    p95_duration_ms,
    first_seen: new Date(row.first_ms).toISOString(),
    last_seen: new Date(row.last_ms).toISOString(),
    scores: scores
      .filter(({ is_total, version }) => is_total === row.is_total && version === row.version)
      .map(({ name, source, judge_id, scored, mean, passed, warned, failed }) => ({
        name,
        source,
        judge_id: judge_id === '' ? null : judge_id,
        count: scored,
        mean,
        passed,
        warned,
        failed,
      })),
  };
}

/** Returns the newest calls of a prompt. */
export async function listCalls(
  { clickhouse, now }: UsageDeps,
  { org_id, name, version, days, limit }: CallsQuery & { org_id: string; name: string },
  signal: AbortSignal,
): Promise<PromptCall[]> {
  const to_ms = now();
  const rows = await readRecentCalls(
    clickhouse,
    {
      org_id,
      name,
      version,
      from_ms: to_ms - days * DAY_MS,
      to_ms,
      rows: limit,
      variable_bytes_max: VARIABLE_BYTES_MAX,
    },
    { signal },
  );
  return rows.map(({ version: named, started_ms, cost, variables, ...row }) => ({
    ...row,
    version: named === '' ? null : named,
    started_at: new Date(started_ms).toISOString(),
    cost_usd: cost,
    variables: variablesOf(variables),
  }));
}

/** Returns the variables, which a call may send as an object or as its JSON in a text; null for anything else. */
function variablesOf(raw: string): Record<string, unknown> | null {
  let value: unknown = raw;
  for (let layers = 0; layers < 2 && typeof value === 'string'; layers++) {
    try {
      value = JSON.parse(value);
    } catch {
      return null;
    }
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : null;
}
