// The pass rate of a judge by day and version, as a chart and as a table with the mean score.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import type { Answer } from '../../client/api.ts';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { Chart } from '../../charts/chart.tsx';
import type { ChartMark, ChartSeries } from '../../charts/chart_shape.ts';
import { count, exact, percent } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { dayTicks } from '../costs/cost_days.ts';
import { SmallTable } from './small_table.tsx';
import { VerdictBar } from './verdicts.tsx';

const DAYS = 30;
const DAY_MS = 86_400_000;

type Day = Answer<'/v1/judges/{judge_id}/stats'>['data']['by_day'][number];

/** The panel. */
export function JudgeDays({ judge_id }: { judge_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const stats = useQuery(
    apiQuery(org_id, '/v1/judges/{judge_id}/stats', { path: { judge_id }, query: { days: DAYS } }),
  );
  if (stats.error !== null && stats.data === undefined)
    return <ErrorPanel error={stats.error} what="the statistics" onRetry={() => void stats.refetch()} />;
  if (stats.data === undefined) return <Skeleton rows={6} height={16} />;
  const { by_day, total, pass_rate } = stats.data.data;
  if (total === 0)
    return (
      <EmptyState title="No live trace was judged in the last 30 days">
        An enabled judge scores each trace in its scope when the trace is complete.
      </EmptyState>
    );
  return (
    <>
      <PassRates days={by_day} summary={`${percent(pass_rate)} of ${count(total)} judgements in 30 days passed.`} />
      <SmallTable
        label="Verdicts by day and version"
        heads={['Day (UTC)', 'Version', 'Pass rate', 'Mean score', 'Judged', 'Verdicts']}
        rows={by_day.toReversed().map((day) => ({
          key: `${day.day} ${day.judge_version}`,
          cells: [
            day.day,
            String(day.judge_version),
            percent(day.pass_rate),
            exact(day.mean_score === null ? null : Math.round(day.mean_score * 1000) / 1000),
            count(day.total),
            <VerdictBar key="bar" counts={day} />,
          ],
        }))}
      />
    </>
  );
}

function PassRates({ days, summary }: { days: readonly Day[]; summary: string }): ReactElement {
  const { points, series, marks } = useMemo(() => contentOf(days, Date.now()), [days]);
  return (
    <Chart
      name="Pass rate by day"
      summary={summary}
      axis="Day (UTC)"
      points={points}
      ticks={dayTicks(points)}
      series={series}
      marks={marks}
      top={1}
      height={160}
      format={percent}
    />
  );
}

/** Returns the pass rate of all versions by day, and a mark where a version scored for the first time. */
function contentOf(days: readonly Day[], now: number): { points: string[]; series: ChartSeries[]; marks: ChartMark[] } {
  const points = Array.from({ length: DAYS }, (_, at) =>
    new Date(now - (DAYS - 1 - at) * DAY_MS).toISOString().slice(0, 10),
  );
  const byDay = Map.groupBy(days, ({ day }) => day);
  const values = points.map((day) => {
    const parts = byDay.get(day) ?? [];
    const scored = parts.reduce((sum, { total, errors }) => sum + total - errors, 0);
    return scored === 0 ? null : parts.reduce((sum, { passed }) => sum + passed, 0) / scored;
  });
  const versions = [...new Set(days.map(({ judge_version }) => judge_version))];
  const marks = versions.flatMap((version): ChartMark[] => {
    const at = points.indexOf(days.find(({ judge_version }) => judge_version === version)?.day ?? '');
    return at < 0 ? [] : [{ at, kind: 'First score of a version', label: `Version ${version}`, colour: 'text-3' }];
  });
  return { points, series: [{ id: 'rate', label: 'Pass rate', values, colour: 'series-1', form: 'bar' }], marks };
}
