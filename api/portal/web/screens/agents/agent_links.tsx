// What else concerns an agent: its budget, the judges that score it, its incidents, its newest traces.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { count, duration, money } from '../../text/format.ts';
import { Name } from '../../trace/name.tsx';
import { preview } from '../../trace/text/one_line.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { exactAmount, WORDS } from '../costs/amounts.ts';
import { AGENT_RESOURCES, type AgentResource, useAgentBudgets } from '../costs/budget_api.ts';
import { incidentPath } from '../incidents/incident_data.ts';
import { StateMark } from '../incidents/incident_marks.tsx';
import lists from '../sessions/sessions.module.css';

const SHOWN = 5;
const JUDGES_READ = 200;
const ERROR_CHARS_MAX = 200;

/** The sections that the person may read. */
export function AgentLinks({ agent_id }: { agent_id: string }): ReactElement {
  const { can } = useOrganization();
  return (
    <>
      {can('costs:read') && <Budget agent_id={agent_id} />}
      {can('judges:read') && <Judges agent_id={agent_id} />}
      {can('traces:read') && <Incidents agent_id={agent_id} />}
      {can('traces:read') && <Traces agent_id={agent_id} />}
    </>
  );
}

interface PartProps {
  title: string;
  what: string;
  query: { data: unknown; error: Error | null; refetch: () => Promise<unknown> };
  children: ReactNode;
}

/** A section that loads and fails by itself. */
function Part({ title, what, query: { data, error, refetch }, children }: PartProps): ReactElement {
  return (
    <section className={lists.section} aria-busy={data === undefined && error === null}>
      <h2>{title}</h2>
      {error !== null && data === undefined && <ErrorPanel error={error} what={what} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton rows={2} height={20} />}
      {data !== undefined && children}
    </section>
  );
}

function Budget({ agent_id }: { agent_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const budgets = useAgentBudgets();
  const own = budgets.data?.find((one) => one.agent_id === agent_id);
  const limited = AGENT_RESOURCES.filter(
    (resource) => own !== undefined && (own[resource].soft_limit !== null || own[resource].hard_limit !== null),
  );
  return (
    <Part title="Budget" what="the budgets" query={budgets}>
      {own === undefined || limited.length === 0 ? (
        <p className={lists.quiet}>The agent has no limits of its own; those of the organization apply.</p>
      ) : (
        <ul className={lists.cards} aria-label="Limits of the agent">
          {limited.map((resource) => (
            <li key={resource} className={lists.card}>
              <span className={lists.cardName}>{WORDS[resource].name}</span>
              <span>{exactAmount(resource, own[resource].used)} used</span>
              <span>Soft limit: {limitWords(resource, own[resource].soft_limit)}</span>
              <span>Hard limit: {limitWords(resource, own[resource].hard_limit)}</span>
            </li>
          ))}
        </ul>
      )}
      <Link href={`/o/${encodeURIComponent(org_id)}/costs/budgets`}>Budgets</Link>
    </Part>
  );
}

const limitWords = (resource: AgentResource, limit: number | null): string =>
  limit === null ? 'none' : exactAmount(resource, limit);

function Judges({ agent_id }: { agent_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const judges = useQuery({
    ...apiQuery(org_id, '/v1/judges', { query: { enabled: 'true', limit: JUDGES_READ } }),
    staleTime: FRESH.registry,
  });
  const own = judges.data?.data.filter(
    ({ scope }) => scope.agent_id === undefined || scope.agent_id.length === 0 || scope.agent_id.includes(agent_id),
  );
  const base = `/o/${encodeURIComponent(org_id)}/judges`;
  return (
    <Part title="Judges" what="the judges" query={judges}>
      {own?.length === 0 ? (
        <p className={lists.quiet}>No enabled judge has this agent in its scope.</p>
      ) : (
        <ul className={lists.cards} aria-label="Judges of the agent">
          {own?.map(({ judge_id, name, kind }) => (
            <li key={judge_id} className={lists.card}>
              <Link className={lists.cardName} href={`${base}/${encodeURIComponent(judge_id)}`}>
                <Name>{name}</Name>
              </Link>
              <span>{kind === 'llm' ? 'Model' : 'Rule'}</span>
            </li>
          ))}
        </ul>
      )}
    </Part>
  );
}

function Incidents({ agent_id }: { agent_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const incidents = useQuery(apiQuery(org_id, '/v1/incidents', { query: { agent_id, limit: SHOWN } }));
  const total = incidents.data?.meta.total ?? 0;
  return (
    <Part title="Incidents" what="the incidents" query={incidents}>
      {total === 0 ? (
        <p className={lists.quiet}>No incident concerned this agent.</p>
      ) : (
        <ul className={lists.cards} aria-label="Incidents of the agent">
          {incidents.data?.data.map((incident) => (
            <li key={incident.incident_id} className={lists.card}>
              <StateMark incident={incident} />
              <Link className={lists.cardName} href={incidentPath(org_id, incident.incident_id)}>
                <bdi>{preview(incident.error, ERROR_CHARS_MAX)}</bdi>
              </Link>
              <Moment at={incident.opened_at} />
            </li>
          ))}
        </ul>
      )}
      {total > SHOWN && (
        <Link href={`/o/${encodeURIComponent(org_id)}/incidents?${new URLSearchParams({ agent_id })}`}>
          All {count(total)} incidents
        </Link>
      )}
    </Part>
  );
}

function Traces({ agent_id }: { agent_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const query = { agent_id: escapedValue(agent_id), limit: SHOWN };
  const traces = useQuery(apiQuery(org_id, '/v1/traces', { query }));
  const base = `/o/${encodeURIComponent(org_id)}/traces`;
  return (
    <Part title="Newest traces" what="the traces" query={traces}>
      {traces.data?.data.length === 0 ? (
        <p className={lists.quiet}>No trace of this agent is stored.</p>
      ) : (
        <ul className={lists.cards} aria-label="Newest traces of the agent">
          {traces.data?.data.map((trace) => (
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
    </Part>
  );
}
