// The list of incidents: failing traces of one agent, root span and error, the newest incident first.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { preview } from '../../trace/text/one_line.ts';
import { Name } from '../../trace/name.tsx';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { codec, optionalChoice, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { type Incident, type IncidentFilters, incidentPath, incidentsQuery } from './incident_data.ts';
import { StateMark } from './incident_marks.tsx';

const CODEC = codec({
  status: optionalChoice(['open', 'resolved']),
  severity: optionalChoice(['critical', 'warning']),
  agent_id: text(),
  cluster_id: text(),
});
type State = ReturnType<typeof CODEC.parse>;

const WORDS = { open: 'Open', resolved: 'Resolved', critical: 'Critical', warning: 'Warning' } as const;
const ERROR_CHARS_MAX = 300;

/** Returns the filters that are set. */
function filtersOf({ status, severity, agent_id, cluster_id }: State): IncidentFilters {
  return {
    ...(status === null ? {} : { status }),
    ...(severity === null ? {} : { severity }),
    ...(agent_id === '' ? {} : { agent_id }),
    ...(cluster_id === '' ? {} : { cluster_id }),
  };
}

/** The page. */
export default function IncidentsScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const filters = filtersOf(state);
  const pages = useInfiniteQuery(incidentsQuery(org_id, filters));
  const asked = new URLSearchParams(filters).toString();
  usePageRequest(asked === '' ? '/v1/incidents' : `/v1/incidents?${asked}`);
  const rows = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  const total = pages.data?.pages[0]?.meta.total;
  const base = `/o/${encodeURIComponent(org_id)}`;
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'incident' : 'incidents'}`}
        </span>
        <Filters state={state} onChange={change} />
      </div>
      {pages.error !== null && pages.data === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the incidents" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 ? (
        <div className={lists.state}>
          <NoIncidents base={base} state={state} />
        </div>
      ) : (
        <ListTable
          label="Incidents"
          noun="incident"
          address={`incidents ${asked}`}
          rows={rows}
          rowKey={incidentIdOf}
          columns={(narrow) => columnsOf(org_id, narrow)}
          hrefOf={({ incident_id }) => incidentPath(org_id, incident_id)}
          pages={pages}
          total={total}
          loading={pages.isPending}
        />
      )}
    </div>
  );
}

const incidentIdOf = ({ incident_id }: Incident): string => incident_id;

/** The filters of the list. */
function Filters({ state, onChange }: { state: State; onChange: (patch: Partial<State>) => void }): ReactElement {
  return (
    <>
      {(['open', 'resolved'] as const).map((one) => (
        <Chip
          key={one}
          pressed={state.status === one}
          onToggle={() => {
            onChange({ status: state.status === one ? null : one });
          }}
        >
          {WORDS[one]}
        </Chip>
      ))}
      {(['critical', 'warning'] as const).map((one) => (
        <Chip
          key={one}
          pressed={state.severity === one}
          onToggle={() => {
            onChange({ severity: state.severity === one ? null : one });
          }}
        >
          {WORDS[one]}
        </Chip>
      ))}
      {(['agent_id', 'cluster_id'] as const)
        .filter((name) => state[name] !== '')
        .map((name) => (
          <Chip
            key={name}
            field={name}
            removeLabel={`Remove the filter ${name}`}
            onRemove={() => {
              onChange({ [name]: '' });
            }}
          >
            <Name>{state[name]}</Name>
          </Chip>
        ))}
    </>
  );
}

function NoIncidents({ base, state }: { base: string; state: State }): ReactElement {
  const failed = <Link href={`${base}/traces?outcome=error,timeout&t=30d`}>Failed traces of the last 30 days</Link>;
  if (Object.keys(filtersOf(state)).length === 0)
    return (
      <EmptyState title="No incidents" action={failed}>
        Five failing traces of one agent, root span and error within 15 minutes open an incident. 30 minutes without
        another one resolve it.
      </EmptyState>
    );
  return (
    <EmptyState
      title={state.status === 'open' ? 'No incident with these filters is open' : 'No incident matches these filters'}
      action={<Link href={`${base}/incidents`}>Show all incidents</Link>}
    />
  );
}

function columnsOf(org_id: string, narrow: boolean): Column<Incident>[] {
  const error = (incident: Incident): ReactElement => (
    <Link
      href={incidentPath(org_id, incident.incident_id)}
      className={lists.name}
      tabIndex={-1}
      title={preview(incident.error, ERROR_CHARS_MAX)}
    >
      <bdi>{preview(incident.error, ERROR_CHARS_MAX)}</bdi>
    </Link>
  );
  const agent = ({ agent_id }: Incident): ReactElement =>
    agent_id === null ? <span className={lists.quiet}>No agent</span> : <Name>{agent_id}</Name>;
  const traces = ({ trace_count }: Incident): string =>
    `${count(trace_count)} ${trace_count === 1 ? 'trace' : 'traces'}`;
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Incident',
        width: 'minmax(0, 1fr)',
        cell: (incident) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{error(incident)}</span>
              <StateMark incident={incident} />
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{agent(incident)}</span>
              {traces(incident)}
              <Moment at={incident.last_trace_at} form="ago" />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'state', head: 'State', width: '116px', cell: (incident) => <StateMark incident={incident} /> },
    { id: 'error', head: 'Error', width: 'minmax(208px, 4fr)', cell: error },
    { id: 'agent', head: 'Agent', width: 'minmax(112px, 1fr)', cell: agent },
    {
      id: 'name',
      head: 'Root span',
      width: 'minmax(112px, 1fr)',
      cell: ({ root_span_name }) => (root_span_name === null ? null : <Name>{root_span_name}</Name>),
    },
    { id: 'traces', head: 'Traces', width: '64px', align: 'end', cell: ({ trace_count }) => count(trace_count) },
    { id: 'opened', head: 'Opened', width: '124px', cell: ({ opened_at }) => <Moment at={opened_at} /> },
    {
      id: 'last',
      head: 'Latest trace',
      width: '104px',
      cell: ({ last_trace_at }) => <Moment at={last_trace_at} form="ago" />,
    },
    { id: 'resolved', head: 'Resolved', width: '128px', cell: ({ resolved_at }) => <Moment at={resolved_at} /> },
  ];
}
