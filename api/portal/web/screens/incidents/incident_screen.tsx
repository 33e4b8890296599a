// One incident: the error without its variable parts, one such error as it was sent, its traces over
// time, the newest of them, and earlier incidents of the same cluster.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useHasPage } from '../../shell/pages_context.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { count, duration, money } from '../../text/format.ts';
import { Name } from '../../trace/name.tsx';
import { preview } from '../../trace/text/one_line.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import { IncidentActions } from './incident_actions.tsx';
import { type IncidentDetail, incidentPath, incidentQuery, resolvedWords } from './incident_data.ts';
import { StateMark } from './incident_marks.tsx';
import { IncidentSeries } from './incident_series.tsx';
import styles from './incidents.module.css';

const TITLE_CHARS_MAX = 80;
/** Other incidents of the cluster that the page lists. */
const SAME_CLUSTER_SHOWN = 10;

/** The page. */
export default function IncidentScreen(): ReactElement {
  const { org_id } = useOrganization();
  const incident_id = useRouteParams()('incident_id');
  const { data, error, refetch } = useQuery(incidentQuery(org_id, incident_id));
  usePageTitle(data === undefined ? null : preview(data.data.error, TITLE_CHARS_MAX));
  usePageRequest(`/v1/incidents/${encodeURIComponent(incident_id)}`);
  if (data !== undefined) return <Shown incident={data.data} />;
  return (
    <div className={lists.page}>
      {error === null ? (
        <Skeleton rows={12} height={20} />
      ) : (
        <ErrorPanel error={error} what="the incident" onRetry={() => void refetch()} />
      )}
    </div>
  );
}

function Shown({ incident }: { incident: IncidentDetail }): ReactElement {
  return (
    <div className={lists.page}>
      <IncidentActions incident={incident} />
      <Facts incident={incident} />
      <section className={lists.section}>
        <h2>Error</h2>
        <div className={styles.error} role="region" aria-label="Error" tabIndex={0}>
          <TextView text={incident.error} label="Error" />
        </div>
        <p className={lists.quiet}>
          # stands for numbers and ids, “…” for quoted text that differs between the traces.
        </p>
        <h3>One error as it was sent</h3>
        <div className={styles.sample} role="region" aria-label="One error as it was sent" tabIndex={0}>
          <TextView text={incident.sample} label="Error as it was sent" />
        </div>
      </section>
      <IncidentSeries incident={incident} />
      <NewestTraces incident={incident} />
      <SameCluster incident={incident} />
    </div>
  );
}

function Facts({ incident }: { incident: IncidentDetail }): ReactElement {
  const { org_id } = useOrganization();
  const hasPage = useHasPage();
  const { agent_id, root_span_name } = incident;
  const agent =
    agent_id === null ? (
      'None'
    ) : (
      <Link
        href={
          hasPage('/agents/:agent_id')
            ? `/o/${encodeURIComponent(org_id)}/agents/${encodeURIComponent(agent_id)}`
            : tracesOf(org_id, incident)
        }
      >
        <Name>{agent_id}</Name>
      </Link>
    );
  const facts: [string, ReactElement | string][] = [
    ['State', <StateMark key="state" incident={incident} />],
    ['Traces', count(incident.trace_count)],
    ['Agent', agent],
    ['Root span', root_span_name === null ? 'None' : <Name key="name">{root_span_name}</Name>],
    ['First trace', <Moment key="first" at={incident.first_trace_at} />],
    ['Latest trace', <Moment key="last" at={incident.last_trace_at} />],
    ['Opened', <Moment key="opened" at={incident.opened_at} />],
  ];
  if (incident.resolved_at !== null)
    facts.push([
      'Resolved',
      <span key="resolved">
        <Moment at={incident.resolved_at} /> <Name>{resolvedWords(incident)}</Name>
      </span>,
    ]);
  return (
    <dl className={lists.sums}>
      {facts.map(([label, value]) => (
        <div key={label} className={styles.fact}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns the list of the failing traces of an incident's agent and root span in its time. */
function tracesOf(org_id: string, incident: IncidentDetail): string {
  const { agent_id, root_span_name, first_trace_at, resolved_at } = incident;
  const query = new URLSearchParams({ outcome: 'error,timeout', since: first_trace_at });
  if (resolved_at !== null) query.set('until', resolved_at);
  if (agent_id !== null) query.set('agent_id', escapedValue(agent_id));
  if (root_span_name !== null) query.set('root_span_name', escapedValue(root_span_name));
  return `/o/${encodeURIComponent(org_id)}/traces?${query}`;
}

function NewestTraces({ incident }: { incident: IncidentDetail }): ReactElement {
  const { org_id } = useOrganization();
  const ids = incident.trace_ids;
  const { data, error, refetch } = useQuery({
    ...apiQuery(org_id, '/v1/traces', {
      query: { trace_ids: ids.map(escapedValue).join(','), limit: ids.length } as object,
    }),
    enabled: ids.length > 0,
  });
  const base = `/o/${encodeURIComponent(org_id)}/traces`;
  return (
    <section className={lists.section} aria-busy={ids.length > 0 && data === undefined && error === null}>
      <h2>Newest traces</h2>
      {error !== null && data === undefined && (
        <ErrorPanel error={error} what="the traces" onRetry={() => void refetch()} />
      )}
      {ids.length > 0 && data === undefined && error === null && <Skeleton rows={ids.length} height={20} />}
      {(ids.length === 0 || data?.data.length === 0) && (
        <p className={lists.quiet}>The traces of this incident are no longer stored.</p>
      )}
      {data !== undefined && data.data.length > 0 && (
        <ul className={lists.cards} aria-label="Newest traces of the incident">
          {data.data.map((trace) => (
            <li key={trace.trace_id} className={lists.card}>
              <OutcomeMark outcome={trace.outcome} />
              <Link className={lists.cardName} href={`${base}/${encodeURIComponent(trace.trace_id)}`}>
                <Name>{nameOf(trace)}</Name>
              </Link>
              <span>{duration(trace.duration_ms)}</span>
              <span>{money(trace.cost_usd)}</span>
              <Moment at={trace.started_at} />
            </li>
          ))}
        </ul>
      )}
      <Link href={tracesOf(org_id, incident)}>All failing traces of this agent and root span in this time</Link>
    </section>
  );
}

function SameCluster({ incident }: { incident: IncidentDetail }): ReactElement {
  const { org_id } = useOrganization();
  const { cluster_id, incident_id } = incident;
  const { data, error, refetch } = useQuery(
    apiQuery(org_id, '/v1/incidents', { query: { cluster_id, limit: SAME_CLUSTER_SHOWN + 1 } }),
  );
  const others = data?.data.filter((one) => one.incident_id !== incident_id).slice(0, SAME_CLUSTER_SHOWN) ?? [];
  return (
    <section className={lists.section}>
      <h2>The same error at other times</h2>
      {error !== null && data === undefined && (
        <ErrorPanel error={error} what="the other incidents" onRetry={() => void refetch()} />
      )}
      {data === undefined && error === null && <Skeleton rows={2} height={20} />}
      {data !== undefined && others.length === 0 && (
        <p className={lists.quiet}>No other incident has this agent, root span and error.</p>
      )}
      {others.length > 0 && (
        <ul className={lists.cards} aria-label="Other incidents of the cluster">
          {others.map((one) => (
            <li key={one.incident_id} className={lists.card}>
              <StateMark incident={one} />
              <Link className={lists.cardName} href={incidentPath(org_id, one.incident_id)}>
                {count(one.trace_count)} {one.trace_count === 1 ? 'trace' : 'traces'}
              </Link>
              <Moment at={one.opened_at} />
              <Name>{resolvedWords(one)}</Name>
            </li>
          ))}
        </ul>
      )}
      {(data?.meta.total ?? 0) > SAME_CLUSTER_SHOWN + 1 && (
        <Link href={`/o/${encodeURIComponent(org_id)}/incidents?cluster_id=${encodeURIComponent(cluster_id)}`}>
          All {count(data?.meta.total)} incidents of this error
        </Link>
      )}
    </section>
  );
}
