// Days that cost more or less than the days before them: the chart of the days, the settings with the
// days that they would have marked, and the list of what was found.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import type { ChartMark } from '../../charts/chart_shape.ts';
import { Chart } from '../../charts/chart.tsx';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, money, moneyExact, NONE } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import styles from '../home/home.module.css';
import { useAnomalies } from './anomaly_data.ts';
import { type Anomaly, anomalyHref, anomalyMarks, anomalyWords } from './anomaly_marks.ts';
import { AnomalySettings, useThreshold } from './anomaly_settings.tsx';
import { dayTicks, daysHref, lastDates } from './cost_days.ts';
import { costSummary } from './cost_groups.ts';
import { costsUrl } from './costs_url.ts';

/** The tab. */
export default function AnomaliesTab(): ReactElement {
  const { org_id } = useOrganization();
  const [{ days }] = useSearchState(costsUrl);
  const anomalies = useAnomalies(org_id);
  const threshold = useThreshold(org_id, days);
  usePageRequest('/v1/cost/anomalies');
  const { data, error } = anomalies;
  return (
    <div className={styles.stack}>
      <section className={styles.section}>
        <h2>Days and anomalies</h2>
        <Days anomalies={data?.data ?? []} days={days} preview={threshold.changed ? threshold.found : []} />
      </section>
      <section className={styles.section}>
        <h2>Threshold</h2>
        <AnomalySettings org_id={org_id} days={days} threshold={threshold} />
      </section>
      <section className={styles.section}>
        <h2>Anomalies found</h2>
        {error !== null && data === undefined && (
          <ErrorPanel
            error={error}
            what="the anomalies"
            onRetry={() => {
              void anomalies.refetch();
            }}
          />
        )}
        {anomalies.isPending && <Skeleton rows={4} height={20} />}
        {data?.data.length === 0 && (
          <EmptyState title="No anomaly yet">
            Every hour the service compares the cost of today with the days before, and every night that of yesterday.
            It needs at least 7 days of data. This list shows the days beyond the threshold.
          </EmptyState>
        )}
        {data !== undefined && data.data.length > 0 && <Found anomalies={data.data} />}
      </section>
    </div>
  );
}

interface DaysProps {
  anomalies: readonly Anomaly[];
  days: number;
  /** Dates that other settings would have marked. */
  preview: readonly { date: string; z: number }[];
}

function Days({ anomalies, days, preview }: DaysProps): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const series = useQuery({
    ...apiQuery(org_id, '/v1/cost/series', { query: { days, group_by: ['model'] } }),
    placeholderData: keepPreviousData,
  });
  const { data, error } = series;
  const dates = useMemo(() => data?.data.dates ?? lastDates(days, Date.now()), [data, days]);
  const ticks = useMemo(() => dayTicks(dates), [dates]);
  const bars = useMemo(
    () => [
      {
        id: 'cost',
        label: 'Cost',
        values: data?.data.total.by_day.cost_usd ?? [],
        colour: 'series-1' as const,
        form: 'bar' as const,
      },
    ],
    [data],
  );
  const marks = useMemo((): ChartMark[] => {
    const found = anomalyMarks(anomalies, dates);
    const others = preview.flatMap(({ date, z }): ChartMark[] => {
      const at = dates.indexOf(date);
      return at < 0 || found.some((mark) => mark.at === at)
        ? []
        : [{ at, kind: 'Would be marked', label: `z-score ${z.toFixed(1)}`, colour: 'accent' }];
    });
    return [...found, ...others];
  }, [anomalies, dates, preview]);
  if (error !== null && data === undefined)
    return (
      <ErrorPanel
        error={error}
        what="the costs"
        onRetry={() => {
          void series.refetch();
        }}
      />
    );
  return (
    <div className={styles.panel} aria-busy={data === undefined}>
      <Chart
        name="Cost by day with its anomalies"
        summary={data === undefined ? '' : costSummary(data.data, money)}
        axis="Day (UTC)"
        points={dates}
        ticks={ticks}
        series={bars}
        marks={marks}
        format={money}
        exact={moneyExact}
        stale={series.isPlaceholderData}
        pick="A click or Enter shows the traces of the day"
        onPick={(at) => {
          const day = dates[at] ?? '';
          navigate(daysHref(`/o/${encodeURIComponent(org_id)}/traces`, day, day, {}));
        }}
      />
    </div>
  );
}

function Found({ anomalies }: { anomalies: readonly Anomaly[] }): ReactElement {
  const { org_id } = useOrganization();
  const traces = `/o/${encodeURIComponent(org_id)}/traces`;
  return (
    <div className={numbers.scroll} role="region" aria-label="Anomalies found" tabIndex={0}>
      <table className={numbers.table}>
        <caption>
          {count(anomalies.length)} {anomalies.length === 1 ? 'anomaly' : 'anomalies'}, with the model and agent whose
          costs deviate most
        </caption>
        <thead>
          <tr>
            {['Day (UTC)', 'Cost', 'Mean of the days before', 'z-score', 'Model', 'Agent', 'Found'].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {anomalies.map((anomaly) => (
            <tr key={anomaly.anomaly_id}>
              <th scope="row">
                <Link href={anomalyHref(traces, anomaly)} title={`Show the traces: ${anomalyWords(anomaly)}`}>
                  {anomaly.date}
                </Link>
              </th>
              <td title={moneyExact(anomaly.actual_usd)}>{money(anomaly.actual_usd)}</td>
              <td title={moneyExact(anomaly.expected_usd)}>{money(anomaly.expected_usd)}</td>
              <td title={String(anomaly.z)}>{anomaly.z.toFixed(1)}</td>
              <td>{anomaly.attributed_to.model ?? NONE}</td>
              <td>{anomaly.attributed_to.agent_id ?? NONE}</td>
              <td>
                <Moment at={anomaly.detected_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
