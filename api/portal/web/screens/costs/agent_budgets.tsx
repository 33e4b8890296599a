// The agents: those with limits of their own first, then the costliest others, each with the button
// that sets its limit.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { exact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import numbers from '../../ui/number_table.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import panels from '../home/home.module.css';
import { dayWords, rateOf, WORDS } from './amounts.ts';
import { type Budget, type Limits, type ResourceBudget, useAgentBudgets, useCostlyAgents } from './budget_api.ts';
import styles from './costs.module.css';
import { Gauge } from './gauge.tsx';
import { toneOf } from './status_tone.ts';
import { LimitDialog } from './limit_dialog.tsx';

const NO_LIMITS: Limits = { soft_limit: null, hard_limit: null };
const STATUS = { ok: 'Within limits', soft_exceeded: 'Soft limit reached', hard_exceeded: 'Refused' } as const;

interface AgentRow {
  agent_id: string;
  used: number;
  /** Null for an agent that the limits of the organization apply to. */
  own: ResourceBudget | null;
}

/** The section. */
export function AgentBudgets({ budget }: { budget: Budget | undefined }): ReactElement {
  const { can } = useOrganization();
  const limited = useAgentBudgets();
  const costly = useCostlyAgents(budget?.period_start);
  const [open, setOpen] = useState<{ agent_id: string; limits: Limits } | null>(null);
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
              setOpen({ agent_id: '', limits: NO_LIMITS });
            }}
          >
            Limit another agent
          </Button>
        )}
      </div>
      <p className={styles.note}>
        Limits of an agent are on tokens and replace those of the organization for its events. Agents with limits of
        their own come first, then those that cost most in this period.
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
              ? ({ agent_id, own }) => {
                  setOpen({ agent_id, limits: own ?? NO_LIMITS });
                }
              : null
          }
        />
      )}
      {open !== null && (
        <LimitDialog
          target={{ resource: 'tokens', agent_id: open.agent_id }}
          limits={open.limits}
          asksAgent={open.agent_id === ''}
          onClose={() => {
            setOpen(null);
          }}
        />
      )}
    </section>
  );
}

function rowsOf(
  limited: readonly { agent_id: string; tokens: ResourceBudget }[],
  costly: readonly { group: { agent_id?: string | null }; tokens: number }[],
): AgentRow[] {
  const own = limited.map(({ agent_id, tokens }) => ({ agent_id, used: tokens.used, own: tokens }));
  const known = new Set(own.map(({ agent_id }) => agent_id));
  const others = costly.flatMap(({ group: { agent_id }, tokens }) =>
    agent_id === null || agent_id === undefined || known.has(agent_id) ? [] : [{ agent_id, used: tokens, own: null }],
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
            <th scope="col">Tokens</th>
            <th scope="col">Soft limit</th>
            <th scope="col">Hard limit</th>
            <th scope="col">Use and run rate</th>
            <th scope="col">Status</th>
            {onEdit !== null && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Row key={row.agent_id} row={row} budget={budget} onEdit={onEdit} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ row, budget, onEdit }: { row: AgentRow } & Omit<AgentTableProps, 'rows'>): ReactElement {
  const { agent_id, used, own } = row;
  const { short } = WORDS.tokens;
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
        {agent_id}
      </th>
      <td title={exact(used)}>{short(used)}</td>
      <td>{own?.soft_limit == null ? '–' : short(own.soft_limit)}</td>
      <td>{own?.hard_limit == null ? '–' : short(own.hard_limit)}</td>
      <td className={styles.wide}>{own !== null && <Gauge {...own} projected={rate?.projected ?? used} />}</td>
      <td className={own === null ? undefined : toneOf(own.status)}>
        {own === null ? 'Limits of the organization' : STATUS[own.status]}
        {reached_at !== null && `, hard limit on ${dayWords(reached_at)}`}
      </td>
      {onEdit !== null && (
        <td>
          <Button
            look="quiet"
            aria-label={`Set limit of ${agent_id}`}
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
