// The failing traces of an incident over time, and those of its cluster before it.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { useLocation } from 'wouter';
import { type Answer, apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { Chart } from '../../charts/chart.tsx';
import type { ChartMark, ChartSeries } from '../../charts/chart_shape.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { count, duration } from '../../text/format.ts';
import { axisTimes, fullTime, type Zone, zoneName } from '../../text/format_time.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import type { IncidentDetail } from './incident_data.ts';

type Series = Answer<'/v1/incidents/{incident_id}/series'>['data'];

/** The section. */
export function IncidentSeries({ incident }: { incident: IncidentDetail }): ReactElement {
  const { org_id } = useOrganization();
  const { data, error, refetch } = useQuery(
    apiQuery(org_id, '/v1/incidents/{incident_id}/series', { path: { incident_id: incident.incident_id } }),
  );
  return (
    <section className={lists.section} aria-busy={data === undefined && error === null}>
      <h2>Failing traces over time</h2>
      {error !== null && data === undefined && (
        <ErrorPanel error={error} what="the series" onRetry={() => void refetch()} />
      )}
      {data === undefined && error === null && <Skeleton rows={6} height={20} />}
      {data !== undefined && <SeriesChart incident={incident} series={data.data} />}
    </section>
  );
}

function SeriesChart({ incident, series }: { incident: IncidentDetail; series: Series }): ReactElement {
  const { org_id } = useOrganization();
  const { zone } = usePreferences();
  const [, navigate] = useLocation();
  const content = useMemo(() => contentOf(series, zone, Date.now()), [series, zone]);
  const { buckets, bucket_seconds } = series;
  const bucket_ms = bucket_seconds * 1000;
  const own = buckets.reduce((sum, { of_incident }) => sum + of_incident, 0);
  const others = buckets.reduce((sum, { traces }) => sum + traces, 0) - own;
  return (
    <Chart
      name="Failing traces of the incident"
      summary={`${count(own)} traces of the incident, ${count(others)} of the same error before or after it.`}
      axis={`Begin (${zoneName(zone, Date.now())}), ${duration(bucket_ms)} each`}
      {...content}
      height={160}
      format={count}
      pick="Enter shows the failing traces of this time"
      onPick={(at) => {
        const begin = Date.parse(buckets[at]?.at ?? '');
        if (Number.isNaN(begin)) return;
        const query = new URLSearchParams({
          outcome: 'error,timeout',
          since: new Date(begin).toISOString(),
          until: new Date(begin + bucket_ms).toISOString(),
        });
        if (incident.agent_id !== null) query.set('agent_id', escapedValue(incident.agent_id));
        navigate(`/o/${encodeURIComponent(org_id)}/traces?${query}`);
      }}
    />
  );
}

interface Content {
  points: string[];
  ticks: string[];
  series: ChartSeries[];
  marks: ChartMark[];
}

function contentOf({ buckets, bucket_seconds, opened_at, resolved_at }: Series, zone: Zone, now: number): Content {
  const begins = buckets.map(({ at }) => Date.parse(at));
  const bucketOf = (at: string): number => begins.findLastIndex((begin) => begin <= Date.parse(at));
  const mark = (at: string | null, kind: string, colour: ChartMark['colour']): ChartMark[] => {
    const index = at === null ? -1 : bucketOf(at);
    return index < 0 ? [] : [{ at: index, kind, label: `${kind} ${fullTime(at, zone)}`, colour }];
  };
  return {
    points: begins.map((begin) => fullTime(begin, zone)),
    ticks: axisTimes(begins, bucket_seconds * 1000, zone, now),
    series: [
      {
        id: 'incident',
        label: 'Of this incident',
        values: buckets.map(({ of_incident }) => of_incident),
        colour: 'error',
        form: 'bar',
      },
      {
        id: 'others',
        label: 'Same error, outside of it',
        values: buckets.map(({ traces, of_incident }) => traces - of_incident),
        colour: 'series-other',
        form: 'bar',
      },
    ],
    marks: [...mark(opened_at, 'Opened', 'warn'), ...mark(resolved_at, 'Resolved', 'ok')],
  };
}
