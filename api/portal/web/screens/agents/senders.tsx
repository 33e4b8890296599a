// The ids that events name as their agent and that are not registered.
import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import type { Answer } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Name } from '../../trace/name.tsx';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import { agentPath, DAYS } from './agent_data.ts';
import { TokenDialog } from './token_dialog.tsx';

type Senders = Answer<'/orgs/{org_id}/unregistered-agents'>;

/** The list. */
export function Senders({ senders }: { senders: UseQueryResult<Senders> }): ReactElement {
  const { org_id, can } = useOrganization();
  const [registers, setRegisters] = useState<string | null>(null);
  const { data, error, refetch } = senders;
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/unregistered-agents?days=${DAYS}`);
  if (error !== null && data === undefined)
    return <ErrorPanel error={error} what="the senders" onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton rows={6} height={20} />;
  if (data.data.length === 0)
    return (
      <EmptyState title={`Every agent that sent events in the last ${DAYS} days is registered`}>
        Events name their agent in attributes.agent_id. An id that the registry does not have stands here.
      </EmptyState>
    );
  const base = `/o/${encodeURIComponent(org_id)}`;
  return (
    <>
      <p className={lists.quiet}>
        These ids sent events in the last {DAYS} days and are not registered. Their traces and costs are stored as those
        of any agent.{data.meta.truncated ? ' The newest 200 are shown.' : ''}
      </p>
      <ul className={lists.cards} aria-label="Agents that are not registered">
        {data.data.map(({ agent_id, last_seen_at }) => (
          <li key={agent_id} className={lists.card}>
            <span className={lists.cardName}>
              {can('traces:read') ? (
                <Link href={agentPath(org_id, agent_id)}>
                  <Name>{agent_id}</Name>
                </Link>
              ) : (
                <Name>{agent_id}</Name>
              )}
            </span>
            <Moment at={last_seen_at} form="ago" />
            {can('traces:read') && (
              <Link
                href={`${base}/traces?${new URLSearchParams({ agent_id: escapedValue(agent_id), t: '7d' })}`}
                aria-label={`Traces of ${oneLine(agent_id)}`}
              >
                Traces
              </Link>
            )}
            {can('agents:invite') && (
              <Button
                aria-label={`Register ${oneLine(agent_id)}`}
                onClick={() => {
                  setRegisters(agent_id);
                }}
              >
                Register
              </Button>
            )}
          </li>
        ))}
      </ul>
      {registers !== null && (
        <TokenDialog
          agent_id={registers}
          onClose={() => {
            setRegisters(null);
          }}
        />
      )}
    </>
  );
}
