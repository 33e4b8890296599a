// The table of registered agents.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { compact, count, money, NONE, percent } from '../../text/format.ts';
import { Name } from '../../trace/name.tsx';
import { oneLine } from '../../trace/text/one_line.ts';
import type { Column } from '../../ui/data_table.tsx';
import { Moment } from '../../ui/moment.tsx';
import lists from '../sessions/sessions.module.css';
import { type Agent, type AgentNumbers, agentPath } from './agent_data.ts';
import styles from './agents.module.css';
import { driftWords, isDrifting } from './drift_words.ts';

interface AgentRowsProps {
  agents: readonly Agent[];
  /** Numbers by agent; null for a person who may not read them. */
  numbers: ReadonlyMap<string, AgentNumbers> | null;
  pages: Parameters<typeof ListTable<Agent>>[0]['pages'] & { isPending: boolean };
  total: number | undefined;
  address: string;
}

/** The table. */
export function AgentRows({ agents, numbers, pages, total, address }: AgentRowsProps): ReactElement {
  const { org_id } = useOrganization();
  return (
    <ListTable
      label="Agents"
      noun="agent"
      address={address}
      rows={agents}
      rowKey={agentIdOf}
      columns={(narrow) => (narrow ? narrowColumns(org_id, numbers) : columnsOf(org_id, numbers))}
      hrefOf={({ agent_id }) => agentPath(org_id, agent_id)}
      pages={pages}
      total={total}
      loading={pages.isPending}
    />
  );
}

const agentIdOf = ({ agent_id }: Agent): string => agent_id;

function NameLink({ org_id, agent }: { org_id: string; agent: Agent }): ReactElement {
  return (
    <Link
      href={agentPath(org_id, agent.agent_id)}
      className={lists.name}
      tabIndex={-1}
      title={`${oneLine(agent.name)} (${oneLine(agent.agent_id)})`}
    >
      <Name>{agent.name}</Name>
    </Link>
  );
}

function State({ agent }: { agent: Agent }): ReactElement {
  const words = driftWords(agent, Date.now());
  return (
    <span className={isDrifting(agent, Date.now()) ? styles.warn : undefined} title={words}>
      {words}
    </span>
  );
}

function narrowColumns(org_id: string, numbers: AgentRowsProps['numbers']): Column<Agent>[] {
  return [
    {
      id: 'lines',
      head: 'Agent',
      width: 'minmax(0, 1fr)',
      cell: (agent) => (
        <span className={lists.lines}>
          <span className={lists.line}>
            <span className={lists.grow}>
              <NameLink org_id={org_id} agent={agent} />
            </span>
            {numbers !== null && <span>{money(numbers.get(agent.agent_id)?.cost_usd)}</span>}
          </span>
          <span className={lists.second}>
            <span className={lists.grow}>{driftWords(agent, Date.now())}</span>
            <Moment at={agent.last_seen_at} form="ago" />
          </span>
        </span>
      ),
    },
  ];
}

function columnsOf(org_id: string, numbers: AgentRowsProps['numbers']): Column<Agent>[] {
  const own: Column<Agent>[] = [
    {
      id: 'name',
      head: 'Name',
      width: 'minmax(128px, 2fr)',
      cell: (agent) => <NameLink org_id={org_id} agent={agent} />,
    },
    { id: 'id', head: 'Id', width: 'minmax(120px, 2fr)', cell: ({ agent_id }) => <Name>{agent_id}</Name> },
    { id: 'framework', head: 'Framework', width: '96px', cell: ({ framework }) => framework ?? NONE },
    {
      id: 'version',
      head: 'Version',
      width: '80px',
      cell: ({ version }) => (version === null ? NONE : <Name>{version}</Name>),
    },
    {
      id: 'seen',
      head: 'Last event',
      width: '96px',
      cell: ({ last_seen_at }) => <Moment at={last_seen_at} form="ago" />,
    },
    { id: 'state', head: 'State', width: 'minmax(112px, 2fr)', cell: (agent) => <State agent={agent} /> },
  ];
  if (numbers === null) return own;
  const of = ({ agent_id }: Agent): AgentNumbers | undefined => numbers.get(agent_id);
  return [
    ...own,
    { id: 'traces', head: 'Traces, 7 d', width: '96px', align: 'end', cell: (agent) => count(of(agent)?.traces) },
    { id: 'errors', head: 'Failed', width: '72px', align: 'end', cell: (agent) => percent(of(agent)?.error_rate) },
    { id: 'cost', head: 'Cost, 7 d', width: '88px', align: 'end', cell: (agent) => money(of(agent)?.cost_usd) },
    { id: 'tokens', head: 'Tokens', width: '80px', align: 'end', cell: (agent) => compact(of(agent)?.tokens) },
  ];
}
