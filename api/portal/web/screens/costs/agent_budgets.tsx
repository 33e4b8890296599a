// The agents: those with limits of their own first, then the costliest others, each with the button
// that sets its limit.
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { cx } from '../../ui/cx.ts';
import numbers from '../../ui/number_table.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import { agentPath } from '../agents/agent_data.ts';
import panels from '../home/home.module.css';
import { dayWords, exactAmount, rateOf, WORDS } from './amounts.ts';
import {
  AGENT_RESOURCES,
  type AgentResource,
  type Budget,
  type Limits,
  type ResourceBudget,
  useAgentBudgets,
  useCostlyAgents,
} from './budget_api.ts';
import styles from './costs.module.css';
import { Gauge } from './gauge.tsx';
import { toneOf } from './status_tone.ts';
import { LimitDialog } from './limit_dialog.tsx';

const NO_LIMITS: Limits = { soft_limit: null, hard_limit: null };
const STATUS = { ok: 'Within limits', soft_exceeded: 'Soft limit reached', hard_exceeded: 'Refused' } as const;

interface AgentRow {
  agent_id: string;
  resource: AgentResource;
  used: number;
  /** Null for an agent that the limits of the organization apply to. */
  own: ResourceBudget | null;
}

/** The section. */
export function AgentBudgets({ budget }: { budget: Budget | undefined }): ReactElement {
  const { can } = useOrganization();
  const limited = useAgentBudgets();
  const costly = useCostlyAgents(budget?.period_start);
  const [open, setOpen] = useState<{ agent_id: string; resource: AgentResource } | null>(null);
  const error = limited.error ?? costly.error;
  const rows = rowsOf(limited.data ?? [], costly.data ?? []);
  const mayEdit = can('budgets:write');
  return (
    <section className={panels.section}>
      <div className={styles.head}>
        <h2>Agents</h2>
        {mayEdit && (
          <Button
            icon="plus"
            onClick={() => {
              setOpen({ agent_id: '', resource: 'tokens' });
            }}
          >
            Limit another agent
          </Button>
        )}
      </div>
      <p className={styles.note}>
        Limits of an agent are on tokens or cost and replace those of the organization on the same resource for its
        events. Agents with limits of their own come first, then those that cost most in this period.
      </p>
      {error !== null && (
        <ErrorPanel
          error={error}
          what="the agents"
          onRetry={() => {
            void limited.refetch();
            void costly.refetch();
          }}
        />
      )}
      {error === null && (limited.data === undefined || costly.data === undefined) && <Skeleton rows={4} height={20} />}
      {error === null && limited.data !== undefined && costly.data !== undefined && rows.length === 0 && (
        <p className={styles.note}>No event of this period names an agent_id.</p>
      )}
      {rows.length > 0 && (
        <AgentTable
          rows={rows}
          budget={budget}
          onEdit={
            mayEdit
              ? ({ agent_id, resource }) => {
                  setOpen({ agent_id, resource });
                }
              : null
          }
        />
      )}
      {open !== null && (
        <LimitDialog
          target={open}
          limits={ownOf(limited.data, open.agent_id)[open.resource]}
          own={ownOf(limited.data, open.agent_id)}
          asksAgent={open.agent_id === ''}
          onClose={() => {
            setOpen(null);
          }}
        />
      )}
    </section>
  );
}

type AgentBudget = { agent_id: string } & Record<AgentResource, ResourceBudget>;

/** Returns the limits of an agent by resource. */
function ownOf(limited: readonly AgentBudget[] | undefined, agent_id: string): Record<AgentResource, Limits> {
  const own = limited?.find((one) => one.agent_id === agent_id);
  return { tokens: own?.tokens ?? NO_LIMITS, cost_usd: own?.cost_usd ?? NO_LIMITS };
}

const isLimited = ({ soft_limit, hard_limit }: Limits): boolean => soft_limit !== null || hard_limit !== null;

/** Returns a row for each limited resource of an agent, then one for each other agent. */
function rowsOf(
  limited: readonly AgentBudget[],
  costly: readonly { group: { agent_id?: string | null }; tokens: number }[],
): AgentRow[] {
  const own = limited.flatMap((agent) =>
    AGENT_RESOURCES.filter((resource) => isLimited(agent[resource])).map((resource) => ({
      agent_id: agent.agent_id,
      resource,
      used: agent[resource].used,
      own: agent[resource],
    })),
  );
  const known = new Set(own.map(({ agent_id }) => agent_id));
  const others = costly.flatMap(({ group: { agent_id }, tokens }) =>
    agent_id === null || agent_id === undefined || known.has(agent_id)
      ? []
      : [{ agent_id, resource: 'tokens' as const, used: tokens, own: null }],
  );
  return [...own, ...others];
}

interface AgentTableProps {
  rows: readonly AgentRow[];
  budget: Budget | undefined;
  onEdit: ((row: AgentRow) => void) | null;
}

function AgentTable({ rows, budget, onEdit }: AgentTableProps): ReactElement {
  return (
    <div className={numbers.scroll} role="region" aria-label="Agents" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Agent</th>
            <th scope="col" className={numbers.words}>
              Resource
            </th>
            <th scope="col">Used</th>
            <th scope="col">Soft limit</th>
            <th scope="col">Hard limit</th>
            <th scope="col" className={numbers.words}>
              Use and run rate
            </th>
            <th scope="col" className={numbers.words}>
              Status
            </th>
            {onEdit !== null && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={`${row.resource} ${row.agent_id}`} row={row} budget={budget} onEdit={onEdit} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row, budget, onEdit }: { row: AgentRow } & Omit<AgentTableProps, 'rows'>): ReactElement {
  const { org_id } = useOrganization();
  const { agent_id, resource, used, own } = row;
  const { name, short } = WORDS[resource];
  const rate =
    budget === undefined || own === null
      ? null
      : rateOf(
          { used, limit: own.hard_limit },
          { start: Date.parse(budget.period_start), end: Date.parse(budget.period_end), now: Date.now() },
        );
  const reached_at = rate?.reached_at ?? null;
  return (
    <tr>
      <th scope="row" className={styles.name}>
        <Link href={agentPath(org_id, agent_id)}>{agent_id}</Link>
      </th>
      <td className={numbers.words}>{name}</td>
      <td title={exactAmount(resource, used)}>{short(used)}</td>
      <td>{own?.soft_limit == null ? '–' : short(own.soft_limit)}</td>
      <td>{own?.hard_limit == null ? '–' : short(own.hard_limit)}</td>
      <td className={styles.wide}>{own !== null && <Gauge {...own} projected={rate?.projected ?? used} />}</td>
      <td className={cx(numbers.words, own !== null && toneOf(own.status))}>
        {own === null ? 'No own limit' : STATUS[own.status]}
        {reached_at !== null && `, hard limit on ${dayWords(reached_at)}`}
      </td>
      {onEdit !== null && (
        <td>
          <Button
            look="quiet"
            className={styles.flush}
            aria-label={resource === 'tokens' ? `Set limit of ${agent_id}` : `Set cost limit of ${agent_id}`}
            onClick={() => {
              onEdit(row);
            }}
          >
            Set limit
          </Button>
        </td>
      )}
    </tr>
  );
}
