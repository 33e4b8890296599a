// Home shows the last 24 hours: tiles against the day before, incidents, traces over time, and the
// newest failed traces. Every number leads to the traces behind it.
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { Histogram } from '../../lists/histogram.tsx';
import { bucketsOf } from '../../lists/series.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, duration, exact, money, moneyExact, NONE, percent } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { changeOf, numbersOf, percentileOf, type Percentile } from './day_numbers.ts';
import styles from './home.module.css';
import { Tile } from './tile.tsx';
import { useHome } from './use_home.ts';

type Home = ReturnType<typeof useHome>;

/** The page. */
export default function HomeScreen(): ReactElement {
  const organization = useOrganization();
  const { org_id, can } = organization;
  const home = useHome(organization);
  const traces = `/o/${encodeURIComponent(org_id)}/traces`;
  usePageRequest('/v1/traces/series');
  const empty =
    home.today.data !== undefined &&
    numbersOf(home.today.data.data.series[0]).traces === 0 &&
    home.failed.data?.data.length === 0;
  return (
    <div className={styles.page}>
      {empty && (
        <EmptyState
          title="No traces in the last 24 hours"
          action={
            <ButtonLink href={`/o/${encodeURIComponent(org_id)}/start`} look="primary">
              Send traces
            </ButtonLink>
          }
        >
          This page shows error rate, latency, cost and the newest failures once traces arrive.
        </EmptyState>
      )}
      <Tiles home={home} traces={traces} costs={can('costs:read')} />
      <Incidents home={home} traces={traces} />
      <OverTime home={home} traces={traces} />
      <Failed home={home} traces={traces} />
    </div>
  );
}

function Tiles({ home, traces, costs }: { home: Home; traces: string; costs: boolean }): ReactElement {
  const { today, before, hours } = home;
  const now = today.data === undefined ? null : numbersOf(today.data.data.series[0]);
  const then = before.data === undefined ? null : numbersOf(before.data.data.series[0]);
  const series = hours.data?.data.series[0];
  const failed = series?.traces.map((all, at) =>
    all === 0 ? 0 : ((series.errors[at] ?? 0) + (series.timeouts[at] ?? 0)) / all,
  );
  const p95 = percentileOf(home.p95.data, { now: now?.p95_ms ?? null, before: then?.p95_ms ?? null });
  const { error } = today;
  const loading = today.isPending || before.isPending;
  return (
    <section className={styles.tiles} aria-label="The last 24 hours" aria-busy={now === null && error === null}>
      <Tile
        label="Error rate"
        href={`${traces}?outcome=error,timeout`}
        value={percent(now?.failed_share)}
        title={now === null ? '' : `${count(now.failed)} of ${count(now.traces)} traces failed`}
        change={changeOf(now?.failed_share ?? null, then?.failed_share ?? null)}
        risingIsBad
        tone="error"
        values={failed ?? []}
        error={error}
        loading={loading}
      />
      <Tile
        label="Duration, 95th percentile"
        href={`${traces}?sort=duration_ms`}
        value={duration(p95.now)}
        title={p95Words(p95)}
        note={p95.estimated ? 'Estimate' : '95 of 100 traces take at most this long'}
        change={changeOf(p95.now, p95.before)}
        risingIsBad
        values={series?.p95_duration_ms ?? []}
        error={home.p95.data === undefined ? error : null}
        loading={home.p95.data === undefined && (loading || home.p95.isLoading)}
      />
      {costs && (
        <Tile
          label="Cost"
          href={`${traces}?sort=cost_usd`}
          value={money(now?.cost_usd)}
          title={moneyExact(now?.cost_usd)}
          change={changeOf(now?.cost_usd ?? null, then?.cost_usd ?? null)}
          risingIsBad
          values={series?.cost_usd ?? []}
          error={error}
          loading={loading}
        />
      )}
      <Tile
        label="Traces"
        href={traces}
        value={count(now?.traces)}
        change={changeOf(now?.traces ?? null, then?.traces ?? null)}
        risingIsBad={false}
        values={series?.traces ?? []}
        error={error}
        loading={loading}
      />
    </section>
  );
}

/** Returns how the percentile was computed, with its exact value. */
function p95Words({ now, estimated }: Percentile): string {
  if (now === null) return '';
  const ms = `${exact(Math.round(now))} ms`;
  return estimated
    ? `Estimate from the 95th percentiles of two halves of the day, weighted by their traces: ${ms}`
    : `95th percentile of the duration of all traces of the last 24 hours: ${ms}`;
}

function Incidents({ home: { incidents }, traces }: { home: Home; traces: string }): ReactElement {
  const { data, error } = incidents;
  return (
    <section className={styles.section}>
      <h2>Open incidents</h2>
      {error !== null && data === undefined && (
        <ErrorPanel
          error={error}
          what="the incidents"
          onRetry={() => {
            void incidents.refetch();
          }}
        />
      )}
      {incidents.isPending && <Skeleton rows={1} height={16} />}
      {data?.data.length === 0 && <p className={styles.none}>No incident is open.</p>}
      <ul className={styles.list}>
        {data?.data.map((incident) => (
          <li key={incident.incident_id} className={styles.line}>
            <span className={styles.severity} data-severity={incident.severity}>
              {incident.severity}
            </span>
            <Link className={styles.name} href={incidentHref(traces, incident)}>
              {incident.error}
            </Link>
            <span>{incident.agent_id ?? NONE}</span>
            <span>{count(incident.trace_count)} traces</span>
            <Moment at={incident.opened_at} form="ago" />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Returns the failed traces of the agent of an incident, since it opened. */
function incidentHref(traces: string, { agent_id, opened_at }: { agent_id: string | null; opened_at: string }): string {
  const query = new URLSearchParams({ outcome: 'error,timeout', since: opened_at });
  if (agent_id !== null) query.set('agent_id', agent_id);
  return `${traces}?${query}`;
}

function OverTime({ home: { fine }, traces }: { home: Home; traces: string }): ReactElement {
  const [, navigate] = useLocation();
  const { data, error } = fine;
  const shape = useMemo(() => (data === undefined ? { buckets: [], bucket_ms: 0 } : bucketsOf(data)), [data]);
  return (
    <section className={styles.section}>
      <h2>Traces by outcome</h2>
      {error !== null && data === undefined ? (
        <ErrorPanel
          error={error}
          what="the histogram"
          onRetry={() => {
            void fine.refetch();
          }}
        />
      ) : (
        <div className={styles.panel}>
          <Histogram
            {...shape}
            onChoose={(since_ms, until_ms) => {
              const time = { since: new Date(since_ms).toISOString(), until: new Date(until_ms).toISOString() };
              navigate(`${traces}?${new URLSearchParams(time)}`);
            }}
          />
        </div>
      )}
    </section>
  );
}

function Failed({ home: { failed }, traces }: { home: Home; traces: string }): ReactElement {
  const { data, error } = failed;
  return (
    <section className={styles.section}>
      <h2>Newest failed traces</h2>
      {error !== null && data === undefined && (
        <ErrorPanel
          error={error}
          what="the failed traces"
          onRetry={() => {
            void failed.refetch();
          }}
        />
      )}
      {failed.isPending && <Skeleton rows={6} height={16} />}
      {data?.data.length === 0 && <p className={styles.none}>No trace failed in the last 7 days.</p>}
      <ul className={styles.list}>
        {data?.data.map((trace) => (
          <li key={trace.trace_id} className={styles.line}>
            <OutcomeMark outcome={trace.outcome} />
            <Link className={styles.name} href={`${traces}/${encodeURIComponent(trace.trace_id)}`}>
              {nameOf(trace)}
            </Link>
            <span>{trace.agent_id}</span>
            <span>{duration(trace.duration_ms)}</span>
            <Moment at={trace.started_at} form="ago" />
          </li>
        ))}
      </ul>
      {(data?.meta.total ?? 0) > (data?.data.length ?? 0) && (
        <Link href={`${traces}?outcome=error,timeout&t=7d`}>
          Show all {count(data?.meta.total)} failed traces of 7 days
        </Link>
      )}
    </section>
  );
}
