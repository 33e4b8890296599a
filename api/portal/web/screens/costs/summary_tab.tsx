// What the organization spent: stacked days by model, agent, department or realm, with the days that
// cost too much, and the same groups as a table.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { useLocation } from 'wouter';
import { Chart } from '../../charts/chart.tsx';
import { rememberedColours } from '../../charts/colours.ts';
import { apiQuery, send } from '../../client/api.ts';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { preferences, setPreferences, usePreferences } from '../../shell/preferences.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count, money, moneyExact, tokens } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import styles from '../home/home.module.css';
import { newMonitorHref } from '../monitors/new_monitor_href.ts';
import { AheadLine } from './ahead_line.tsx';
import { useAnomalies } from './anomaly_data.ts';
import { anomalyMarks } from './anomaly_marks.ts';
import { type CostSeries, costSummary, DIMENSION_WORDS, OTHER, partsOf, rowsOf, tracesHref } from './cost_groups.ts';
import { dayTicks, lastDates } from './cost_days.ts';
import { CostTable } from './cost_table.tsx';
import { costsUrl, type Dimension, DIMENSIONS } from './costs_url.ts';

/** Days that GET /v1/cost/unpriced reads at most. */
const UNPRICED_DAYS_MAX = 90;
const MODELS_NAMED = 3;
const GROUPS_ASKED = 100;
const DAY_MINUTES = 1440;

const costSeries = (org_id: string, days: number, by: Dimension) =>
  apiQuery(org_id, '/v1/cost/series', { query: { days, group_by: [by] } });

/** Starts the request of the chart. */
export const preload: Preload = ({ org_id, search }) => {
  const { days, group_by } = costsUrl.parse(search);
  readAhead(queryClient.query(costSeries(org_id, days, group_by ?? preferences().cost_split)));
};

/** The tab. */
export default function SummaryTab(): ReactElement {
  const { org_id } = useOrganization();
  const [{ days, group_by: named }, change] = useSearchState(costsUrl);
  const { cost_split: own } = usePreferences();
  const by = named ?? own;
  usePageRequest(`/v1/cost/series?days=${days}&group_by=${by}`);
  const series = useQuery({
    ...costSeries(org_id, days, by),
    placeholderData: keepPreviousData,
  });
  const { data, error } = series;
  const split = (
    <Tabs
      label="Split by"
      selected={by}
      tabs={DIMENSIONS.map((id) => ({ id, label: DIMENSION_WORDS[id] }))}
      onSelect={(id) => {
        const split = DIMENSIONS.find((one) => one === id) ?? 'model';
        setPreferences({ cost_split: split });
        change({ group_by: split });
      }}
    />
  );
  return (
    <div className={styles.section}>
      <Unpriced days={Math.min(days, UNPRICED_DAYS_MAX)} />
      <AheadLine />
      {error !== null && data === undefined ? (
        <>
          {split}
          <ErrorPanel
            error={error}
            what="the costs"
            onRetry={() => {
              void series.refetch();
            }}
          />
        </>
      ) : (
        <Shown series={data?.data ?? null} days={days} by={by} stale={series.isPlaceholderData} head={split} />
      )}
    </div>
  );
}

interface ShownProps {
  /** Null while it loads. */
  series: CostSeries | null;
  days: number;
  by: Dimension;
  stale: boolean;
  /** The choice of the dimension. */
  head: ReactElement;
}

function Shown({ series, days, by, stale, head }: ShownProps): ReactElement {
  const { org_id, can } = useOrganization();
  const [, navigate] = useLocation();
  const traces = `/o/${encodeURIComponent(org_id)}/traces`;
  const split = DIMENSIONS.find((one) => series?.group_by[0] === one) ?? by;
  const rows = useMemo(() => (series === null ? [] : rowsOf(series, split)), [series, split]);
  const colours = rememberedColours(
    org_id,
    rows.filter(({ id }) => id !== OTHER).map(({ id }) => `${split}${id}`),
  );
  const names = colours.join();
  // The colours are new texts on every render; their names say when they differ.
  const parts = useMemo(() => partsOf(rows, names.split(',') as typeof colours), [rows, names]);
  const anomalies = useAnomalies(org_id);
  const dates = useMemo(() => series?.dates ?? lastDates(days, Date.now()), [series, days]);
  const ticks = useMemo(() => dayTicks(dates), [dates]);
  const marks = useMemo(() => anomalyMarks(anomalies.data?.data ?? [], dates), [anomalies.data, dates]);
  const perCall = useCostPerCall(org_id, split, series?.period_start ?? null, can('traces:read'));
  if (series !== null && series.total.cost_usd === 0 && series.total.tokens === 0)
    return (
      <EmptyState title={`No cost in the last ${days} days`}>
        This page shows what each model, agent and department cost. Events carry a cost, or they name a model with a
        price and its tokens.
      </EmptyState>
    );
  const rowOf = (id: string | null) => rows.find((row) => row.id === id) ?? null;
  return (
    <>
      <div className={styles.panel} aria-busy={series === null}>
        {head}
        <Chart
          name={`Cost by day and ${DIMENSION_WORDS[split].toLowerCase()}`}
          summary={series === null ? '' : costSummary(series, money)}
          axis="Day (UTC)"
          points={dates}
          ticks={ticks}
          series={parts}
          marks={marks}
          format={money}
          exact={moneyExact}
          stale={stale}
          pick="A click or Enter shows the traces of the day"
          onPick={(at, part) => {
            const day = dates[at] ?? '';
            navigate(tracesHref(traces, split, rowOf(part), day, day));
          }}
        />
      </div>
      {can('integrations:write') && can('traces:read') && (
        <ButtonLink
          href={newMonitorHref(org_id, {
            view: 'spans',
            measure: 'cost_usd',
            agg: 'sum',
            group_by: split,
            window: String(DAY_MINUTES),
          })}
          icon="monitors"
        >
          Monitor this
        </ButtonLink>
      )}
      {series !== null && (
        <CostTable by={split} rows={rows} parts={parts} series={series} perCall={perCall} traces={traces} />
      )}
    </>
  );
}

/**
 * Returns the mean cost of a model call by value of the dimension. Calls carry their model and agent; a
 * department or realm may come from the agent instead, so that no mean is known.
 */
function useCostPerCall(
  org_id: string,
  by: Dimension,
  since: string | null,
  allowed: boolean,
): ReadonlyMap<string, number> | null {
  const known = by === 'model' || by === 'agent_id';
  const { data } = useQuery({
    queryKey: [org_id, '/v1/analytics/query', 'cost_per_call', by, since],
    queryFn: ({ signal }) =>
      send(org_id, 'post', '/v1/analytics/query', {
        body: {
          view: 'spans',
          measures: [
            { measure: 'count', agg: 'sum' },
            { measure: 'cost_usd', agg: 'avg' },
          ],
          group_by: [by],
          filters: [{ field: 'kind', op: 'eq', value: 'llm' }],
          since: since ?? '',
          top: GROUPS_ASKED,
        },
        signal,
      }),
    enabled: allowed && known && since !== null,
  });
  return useMemo(() => {
    if (!known || !allowed) return null;
    const means = (data?.data.rows ?? []).map(([value, , mean]) => [String(value), mean] as const);
    return new Map(means.filter((pair): pair is [string, number] => typeof pair[1] === 'number' && pair[0] !== OTHER));
  }, [data, known, allowed]);
}

function Unpriced({ days }: { days: number }): ReactElement | null {
  const { org_id } = useOrganization();
  const { data } = useQuery(apiQuery(org_id, '/v1/cost/unpriced', { query: { days } }));
  const models = data?.data ?? [];
  if (models.length === 0) return null;
  const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
  const named = models.slice(0, MODELS_NAMED).map(({ model }) => model);
  const more = models.length - named.length;
  return (
    <p>
      <span>
        {count(models.length)} {models.length === 1 ? 'model has' : 'models have'} no price, so{' '}
        {count(sum(models.map(({ calls }) => calls)))} calls with{' '}
        {tokens(sum(models.map(({ input_tokens, output_tokens }) => input_tokens + output_tokens)))} in {days} days cost
        nothing: {named.join(', ')}
        {more > 0 && ` and ${more} more`}.
      </span>{' '}
      <ButtonLink href={`/o/${encodeURIComponent(org_id)}/costs/prices`}>Set price</ButtonLink>
    </p>
  );
}
