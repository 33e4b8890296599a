// Home shows the last 24 hours: tiles against the day before, traces over time, what needs somebody,
// and the newest failed traces with their cause. Every number leads to what is behind it.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { readAhead } from '../../client/query_client.ts';
import { useOrganization, whenPermitted } from '../../client/session.ts';
import { Histogram } from '../../lists/histogram.tsx';
import { bucketsOf } from '../../lists/series.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { useHasPage } from '../../shell/pages_context.ts';
import type { PreloadContext } from '../../shell/routes.tsx';
import { count, duration, exact, percent } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { CostTiles } from './cost_tiles.tsx';
import { changeOf, numbersOf, percentileOf, type Percentile, pointsOf } from './day_numbers.ts';
import styles from './home.module.css';
import { NeedsPanel } from './needs_panel.tsx';
import { Tile } from './tile.tsx';
import { preloadHome, useHome } from './use_home.ts';
import { useNeeds } from './use_needs.ts';

type Home = ReturnType<typeof useHome>;

/** Asks for what the page shows to everybody who may read traces. */
export function preload({ org_id }: PreloadContext): void {
  // Others are led to another page.
  const begin = (): void => {
    preloadHome(org_id);
  };
  readAhead(whenPermitted(org_id, 'traces:read', begin));
}

/** Buckets of the histogram that are one point of a tile. */
const BUCKETS_A_POINT = 4;

/** The page. */
export default function HomeScreen(): ReactElement {
  const organization = useOrganization();
  const { org_id, can } = organization;
  const home = useHome(org_id);
  const needs = useNeeds(organization);
  const traces = `/o/${encodeURIComponent(org_id)}/traces`;
  usePageRequest('/v1/traces/series');
  const empty =
    home.today.data !== undefined &&
    numbersOf(home.today.data.data.series[0]).traces === 0 &&
    home.failed.data?.data.length === 0 &&
    // The cache may hold the empty answer of an earlier visit: traces may have arrived since.
    !home.today.isFetching &&
    !home.failed.isFetching;
  useStartWithoutData(org_id, empty);
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
      <Tiles home={home} needs={needs} traces={traces} costs={can('costs:read')} />
      <OverTime home={home} traces={traces} />
      <NeedsPanel needs={needs} />
      <Failed home={home} traces={traces} />
    </div>
  );
}

/** Leads to Start from an organization that has no trace at all. */
function useStartWithoutData(org_id: string, empty: boolean): void {
  const [, navigate] = useLocation();
  const any = { ...apiQuery(org_id, '/v1/traces', { query: { limit: 1 } }), enabled: empty, staleTime: 0 };
  const { data, isFetching } = useQuery(any);
  const isNew = empty && !isFetching && data?.meta.total === 0;
  useEffect(() => {
    if (isNew) navigate(`/o/${encodeURIComponent(org_id)}/start`, { replace: true });
  }, [isNew, navigate, org_id]);
}

interface TilesProps {
  home: Home;
  needs: ReturnType<typeof useNeeds>;
  traces: string;
  costs: boolean;
}

function Tiles({ home, needs, traces, costs }: TilesProps): ReactElement {
  const { today, before } = home;
  const series = today.data?.data.series[0];
  const now = today.data === undefined ? null : numbersOf(series);
  const then = before.data === undefined ? null : numbersOf(before.data.data.series[0]);
  const points = pointsOf(series, BUCKETS_A_POINT);
  const p95 = percentileOf(home.p95.data, { now: now?.p95_ms ?? null, before: then?.p95_ms ?? null });
  const { error } = today;
  const loading = today.isPending || before.isPending;
  return (
    <section className={styles.tiles} aria-label="The last 24 hours" aria-busy={now === null && error === null}>
      <IncidentTile incidents={needs.incidents} traces={traces} />
      <Tile
        label="Error rate"
        href={`${traces}?outcome=error,timeout`}
        value={percent(now?.failed_share)}
        title={now === null ? '' : `${count(now.failed)} of ${count(now.traces)} traces failed`}
        change={changeOf(now?.failed_share ?? null, then?.failed_share ?? null)}
        risingIsBad
        tone="error"
        values={points.failed_share}
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
        values={points.p95_ms}
        error={home.p95.data === undefined ? error : null}
        loading={home.p95.data === undefined && (loading || home.p95.isLoading)}
      />
      {costs && <CostTiles />}
      <Tile
        label="Traces"
        href={traces}
        value={count(now?.traces)}
        change={changeOf(now?.traces ?? null, then?.traces ?? null)}
        risingIsBad={false}
        values={points.traces}
        error={error}
        loading={loading}
      />
    </section>
  );
}

interface IncidentTileProps {
  incidents: ReturnType<typeof useNeeds>['incidents'];
  traces: string;
}

/** The open incidents; the worst one in words. */
function IncidentTile({ incidents: { data, error, isPending }, traces }: IncidentTileProps): ReactElement {
  const hasPage = useHasPage();
  const worst = data?.data.find(({ severity }) => severity === 'critical') ?? data?.data[0];
  return (
    <Tile
      label="Open incidents"
      href={hasPage('/incidents') ? traces.replace(/traces$/, 'incidents') : `${traces}?outcome=error,timeout`}
      value={count(data?.meta.total)}
      note={worst === undefined ? 'No incident is open' : oneLine(worst.error)}
      words={worst === undefined ? '' : worst.severity}
      isBad={worst?.severity === 'critical'}
      error={error}
      loading={isPending}
    />
  );
}

const WORDS_MAX = 60;
const oneLine = (text: string): string => (text.length > WORDS_MAX ? `${text.slice(0, WORDS_MAX)}…` : text);

/** Returns how the percentile was computed, with its exact value. */
function p95Words({ now, estimated }: Percentile): string {
  if (now === null) return '';
  const ms = `${exact(Math.round(now))} ms`;
  return estimated
    ? `Estimate from the 95th percentiles of the parts of the day, weighted by their traces: ${ms}`
    : `95th percentile of the duration of all traces of the last 24 hours: ${ms}`;
}

function OverTime({ home: { today: fine }, traces }: { home: Home; traces: string }): ReactElement {
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

function Failed({ home: { failed, causes }, traces }: { home: Home; traces: string }): ReactElement {
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
              <span className={styles.cause}>{causes.data?.get(trace.trace_id)?.first_error}</span>
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
