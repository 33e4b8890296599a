// The traces of an agent by outcome, and its costs, by UTC day of the last 30 days.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { useLocation } from 'wouter';
import { send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { Chart } from '../../charts/chart.tsx';
import { escapedValue } from '../../lists/list_url.ts';
import { compact, count, money, moneyExact, percent } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { dayTicks } from '../costs/cost_days.ts';
import lists from '../sessions/sessions.module.css';
import { type AgentDay, daysOf } from './agent_days.ts';

const DAYS = 30;
const DAY_MS = 86_400_000;
const HEIGHT_PX = 140;

/** The sections, for a person who may read traces and costs. */
export function AgentActivity({ agent_id }: { agent_id: string }): ReactElement | null {
  const { can } = useOrganization();
  return can('traces:read') && can('costs:read') ? <Days agent_id={agent_id} /> : null;
}

function useDays(agent_id: string) {
  const { org_id } = useOrganization();
  return useQuery({
    queryKey: [org_id, '/v1/analytics/query', 'agent_days', agent_id],
    queryFn: async ({ signal }) => {
      const first = Math.floor(Date.now() / DAY_MS) * DAY_MS - (DAYS - 1) * DAY_MS;
      const body = {
        view: 'traces' as const,
        measures: [
          { measure: 'count' },
          { measure: 'errors' },
          { measure: 'cost_usd', agg: 'sum' as const },
          { measure: 'total_tokens', agg: 'sum' as const },
        ],
        filters: [{ field: 'agent_id', op: 'eq' as const, value: agent_id }],
        granularity: 'day' as const,
        since: new Date(first).toISOString(),
        fill: 'zero' as const,
      };
      const { data } = await send(org_id, 'post', '/v1/analytics/query', { body, signal });
      return daysOf(data.rows);
    },
    staleTime: FRESH.facets,
  });
}

function Days({ agent_id }: { agent_id: string }): ReactElement {
  const { data, error, refetch } = useDays(agent_id);
  const traces = data?.reduce((sum, day) => sum + day.traces, 0) ?? 0;
  return (
    <section className={lists.section} aria-busy={data === undefined && error === null}>
      <h2>Last 30 days</h2>
      {error !== null && data === undefined && (
        <ErrorPanel error={error} what="the traces by day" onRetry={() => void refetch()} />
      )}
      {data === undefined && error === null && <Skeleton rows={8} height={20} />}
      {data !== undefined && traces === 0 && <EmptyState title="No traces in the last 30 days" />}
      {data !== undefined && traces > 0 && <Charts agent_id={agent_id} days={data} />}
    </section>
  );
}

function Charts({ agent_id, days }: { agent_id: string; days: readonly AgentDay[] }): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const content = useMemo(() => contentOf(days), [days]);
  const sum = (field: 'traces' | 'failed' | 'cost_usd' | 'tokens'): number =>
    days.reduce((all, day) => all + day[field], 0);
  const open = (at: number): void => {
    const begin = Date.parse(days[at]?.day ?? '');
    if (Number.isNaN(begin)) return;
    const query = new URLSearchParams({
      agent_id: escapedValue(agent_id),
      since: new Date(begin).toISOString(),
      until: new Date(begin + DAY_MS).toISOString(),
    });
    navigate(`/o/${encodeURIComponent(org_id)}/traces?${query}`);
  };
  return (
    <>
      <Chart
        name="Traces by day"
        summary={`${count(sum('traces'))} traces, ${percent(sum('failed') / sum('traces'))} of them failed.`}
        axis="Day (UTC)"
        points={content.points}
        ticks={content.ticks}
        series={content.traces}
        height={HEIGHT_PX}
        format={count}
        pick="Enter shows the traces of the day"
        onPick={open}
      />
      <Chart
        name="Cost by day"
        summary={`${money(sum('cost_usd'))} and ${compact(sum('tokens'))} tokens.`}
        axis="Day (UTC)"
        points={content.points}
        ticks={content.ticks}
        series={content.costs}
        height={HEIGHT_PX}
        format={money}
        exact={moneyExact}
        tableKey={false}
        pick="Enter shows the traces of the day"
        onPick={open}
      />
    </>
  );
}

function contentOf(days: readonly AgentDay[]) {
  const points = days.map(({ day }) => day);
  return {
    points,
    ticks: dayTicks(points),
    traces: [
      {
        id: 'failed',
        label: 'Failed',
        values: days.map(({ failed }) => failed),
        colour: 'error' as const,
        form: 'bar' as const,
      },
      {
        id: 'succeeded',
        label: 'Succeeded',
        values: days.map(({ traces, failed }) => traces - failed),
        colour: 'series-other' as const,
        form: 'bar' as const,
      },
    ],
    costs: [
      {
        id: 'cost',
        label: 'Cost',
        values: days.map(({ cost_usd }) => cost_usd),
        colour: 'series-1' as const,
        form: 'bar' as const,
      },
    ],
  };
}
