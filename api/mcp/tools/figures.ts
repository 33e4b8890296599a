// Tools that answer with figures: costs, analytics, and SQL on the organization's views.
import { z } from 'zod';
import type { Budget } from '../../control/budgets/schema.ts';
import type { AnomalyItem } from '../../telemetry/costs/schema.ts';
import { Digest, type ToolAnswer } from '../digest.ts';
import { clip } from '../tokens.ts';
import { args, defineTool, maxChars, timeOf, type ToolCall, usd } from '../tool.ts';

const COSTS_BUDGET = 1500;
const ANALYTICS_BUDGET = 3000;
const SQL_BUDGET = 4000;
const NAME_CHARS = 60;
const CELL_CHARS = 300;
const DAYS_SHOWN = 14;
const GROUPS_SHOWN = 15;
const ANOMALIES_SHOWN = 5;
const ROWS_MAX = 100;

export const getCosts = defineTool({
  name: 'get_costs',
  title: 'Get costs',
  description: 'Total cost, days, groups, use of budgets in percent, forecast of 30 days, and anomalies.',
  routes: ['getCostSummary', 'getBudget', 'getCostForecast', 'listAnomalies'],
  input: z.object({
    days: z.int().min(1).max(365).default(30),
    group_by: z.enum(['model', 'agent_id', 'realm', 'department']).default('model'),
    max_chars: maxChars(6000),
  }),
  run: async ({ days, group_by, max_chars }, call) => {
    const [summary, budget, forecast, anomalies] = await Promise.all([
      call.route('getCostSummary', { query: queryDays(days, group_by) }),
      call.route('getBudget', {}),
      call.route('getCostForecast', { query: { days: '30' } }),
      call.route('listAnomalies', { query: { limit: String(ANOMALIES_SHOWN) } }),
    ]);
    const { total_cost_usd, by_day, period_start } = summary.data;
    const predicted = forecast.data.series.reduce((sum, { predicted_usd }) => sum + predicted_usd, 0);
    const digest = new Digest(COSTS_BUDGET, max_chars)
      .head(
        `${usd(total_cost_usd)} in ${days} days since ${period_start}. Forecast for the next 30 days: ${usd(predicted)}.`,
      )
      .info({ total_cost_usd, days, forecast_usd: predicted });
    const groups = (summary.data[`by_${group_by}`] ?? []) as Record<string, unknown>[];
    const rows = [
      ...groups.slice(0, GROUPS_SHOWN).map((one) => groupRow(one, group_by)),
      ...budgetRows(budget.data),
      ...anomalies.data.map(anomalyRow),
      ...by_day.slice(-DAYS_SHOWN).map(({ date, cost_usd, tokens }) => ({
        text: `- day ${date} · ${usd(cost_usd)} · ${tokens} tokens`,
        item: { kind: 'day', date, cost_usd, tokens },
      })),
    ];
    const shown = rows.findIndex(({ text, item }) => !digest.row(text, item));
    const more = shown >= 0 || groups.length > GROUPS_SHOWN || by_day.length > DAYS_SHOWN;
    return digest.answer(more ? 'query_analytics with view usage has every day and group' : null);
  },
});

const queryDays = (days: number, group_by: string): Record<string, string> => ({ days: String(days), group_by });

interface Row {
  text: string;
  item: Record<string, unknown>;
}

function groupRow(one: Record<string, unknown>, group_by: string): Row {
  const group = clip((one[group_by] as string | null) ?? 'none', NAME_CHARS);
  const { cost_usd, share } = one as { cost_usd: number; share: number };
  return {
    text: `- ${group_by} ${group} · ${usd(cost_usd)} · ${(share * 100).toFixed(1)} %`,
    item: { kind: 'group', group_by, group, cost_usd, share },
  };
}

function budgetRows(budget: Budget): Row[] {
  return (['tokens', 'storage_mb', 'sandbox_seconds', 'cost_usd'] as const).flatMap((resource) => {
    const { used, soft_limit, hard_limit, percentage, status } = budget[resource];
    if (soft_limit === null && hard_limit === null) return [];
    return [
      {
        text: `- budget ${resource} · ${used} of ${hard_limit ?? soft_limit ?? 0} · ${percentage.toFixed(1)} % · ${status}`,
        item: { kind: 'budget', resource, used, soft_limit, hard_limit, percentage, status },
      },
    ];
  });
}

function anomalyRow({ date, z: z_score, expected_usd, actual_usd, attributed_to }: AnomalyItem): Row {
  const model = clip(attributed_to.model, NAME_CHARS);
  const agent_id = clip(attributed_to.agent_id, NAME_CHARS);
  return {
    text: `- anomaly ${date} · ${usd(actual_usd)} instead of ${usd(expected_usd)} · z ${z_score.toFixed(1)} · ${model} ${agent_id}`,
    item: { kind: 'anomaly', date, z: z_score, expected_usd, actual_usd, model, agent_id },
  };
}

const name = z.string().max(64);

export const queryAnalytics = defineTool({
  name: 'query_analytics',
  title: 'Query analytics',
  description:
    'Measures by group and time as a table. First call it with describe: true, which lists views, measures, aggregations and dimensions.',
  routes: ['queryAnalytics', 'getAnalyticsSchema'],
  input: z.object({
    describe: z.boolean().default(false),
    view: z.enum(['spans', 'traces', 'scores', 'usage']).default('spans'),
    measures: z
      .array(z.object({ measure: name, agg: name.optional() }))
      .max(8)
      .default([{ measure: 'count' }]),
    group_by: z.array(name).max(2).default([]),
    filters: z
      .array(z.object({ field: z.string().max(300), op: name.default('eq'), value: z.unknown() }))
      .max(10)
      .default([])
      .describe('op: eq ne in not_in gt gte lt lte exists; field may be attributes.<path>'),
    granularity: name.optional().describe('auto minute hour day week month'),
    since: z.string().max(40).default('24h'),
    until: z.string().max(40).optional(),
    top: z.int().min(1).max(100).default(10),
    max_chars: maxChars(12_000),
  }),
  run: async ({ describe, max_chars, since, until, ...asked }, call) => {
    if (describe) return describeAnalytics(asked.view, max_chars, call);
    const body = {
      ...asked,
      since: sinceOf(asked.view, since, call.now),
      ...(until === undefined ? {} : { until: timeOf(until, call.now) }),
    };
    const { data, meta } = await call.route('queryAnalytics', { body });
    const columns = data.columns.map((column) => column.name);
    const digest = new Digest(ANALYTICS_BUDGET, max_chars)
      .head(
        `${data.rows.length} rows, ${String(meta['since'])} to ${String(meta['until'])}${meta['approximate'] === true ? ', approximate' : ''}.`,
      )
      .info({ columns, since: meta['since'], until: meta['until'], truncated: meta['truncated'] });
    addTable(digest, columns, data.rows.slice(0, ROWS_MAX));
    const shown = Math.max(0, digest.rows - 1);
    const next =
      shown < data.rows.length
        ? `${data.rows.length - shown} rows are left out; ask with a smaller top, a coarser granularity or a later since`
        : null;
    return digest.answer(next);
  },
});

/** Days of use begin at midnight. */
function sinceOf(view: string, since: string, now: number): string {
  const time = timeOf(since, now);
  return view === 'usage' && time !== since ? `${time.slice(0, 10)}T00:00:00Z` : time;
}

async function describeAnalytics(view: string, max_chars: number, call: ToolCall): Promise<ToolAnswer> {
  const { data } = await call.route('getAnalyticsSchema', {});
  const digest = new Digest(ANALYTICS_BUDGET, max_chars).head(`Views of query_analytics; ${view} in full.`);
  for (const one of data.views) {
    const full = one.name === view;
    const measures = one.measures.map(({ name: measure, unit, aggs }) =>
      full ? `${measure} (${unit}: ${aggs.join(' ')})` : measure,
    );
    const dimensions = one.dimensions.map((dimension) => dimension.name);
    const line = `- ${one.name}\n  measures: ${measures.join(', ')}\n  group_by: ${dimensions.join(', ')}\n  filters also: ${one.filters.join(', ')}`;
    digest.row(line, { view: one.name, measures, dimensions, filters: one.filters });
  }
  return digest.answer(`query_analytics ${args({ view, measures: [{ measure: 'count' }], group_by: ['model'] })}`);
}

/** Adds a markdown table, as many rows as fit. */
function addTable(digest: Digest, columns: readonly string[], rows: readonly (readonly unknown[])[]): void {
  const header = `| ${columns.map((column) => clip(column, NAME_CHARS)).join(' | ')} |\n|${' --- |'.repeat(columns.length)}`;
  if (!digest.row(header, { row: columns.map((column) => clip(column, NAME_CHARS)) })) return;
  for (const row of rows) {
    const cells = row.map(cellOf);
    if (!digest.row(`| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`, { row: cells }))
      return;
  }
}

function cellOf(value: unknown): string | number | boolean | null {
  if (value === null || typeof value === 'number' || typeof value === 'boolean') return value;
  return clip(typeof value === 'string' ? value : JSON.stringify(value), CELL_CHARS);
}

export const runSql = defineTool({
  name: 'run_sql',
  title: 'Run SQL',
  description:
    "Runs one ClickHouse SELECT on the organization's read-only views: analyst_traces, _spans, _texts, _calls, _usage, _costs_daily, _scores, _feedback (DESCRIBE TABLE shows columns). Leave FORMAT out.",
  routes: [],
  permissions: ['traces:read', 'costs:read'],
  input: z.object({
    sql: z.string().min(1).max(20_000),
    max_rows: z.int().min(1).max(1000).default(100),
    max_chars: maxChars(16_000),
  }),
  run: async ({ sql, max_rows, max_chars }, call) => {
    const { columns, rows, truncated } = await call.sql(sql, max_rows);
    const digest = new Digest(SQL_BUDGET, max_chars)
      .head(`${rows.length} rows${truncated ? ', and there are more' : ''}.`)
      .info({ truncated });
    addTable(
      digest,
      columns.map((column) => column.name),
      rows,
    );
    const shown = Math.max(0, digest.rows - 1);
    const next =
      truncated || shown < rows.length ? 'run_sql with LIMIT and OFFSET, fewer columns, or aggregates' : null;
    return digest.answer(next);
  },
});
