// One agent: its registration, its traces and costs of 30 days, its budget, the judges that score it, its
// incidents and its newest traces. An id that sends without a registration has the same page.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { Tags } from '../../lists/marks.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { NONE } from '../../text/format.ts';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { Name } from '../../trace/name.tsx';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import { GrantLink } from '../settings/grant_link.tsx';
import { AgentActivity } from './agent_activity.tsx';
import { type Agent, agentQuery, sendersQuery } from './agent_data.ts';
import { AgentLinks } from './agent_links.tsx';
import styles from './agents.module.css';
import { ArchiveDialog } from './archive_dialog.tsx';
import { driftWords, isDrifting } from './drift_words.ts';
import { TokenDialog } from './token_dialog.tsx';

/** The page. */
export default function AgentScreen(): ReactElement {
  const { org_id } = useOrganization();
  const agent_id = useRouteParams()('agent_id');
  // An id of the senders without a registration has none to ask for.
  const senders = useQuery(sendersQuery(org_id));
  const isSender = senders.data?.data.some((sender) => sender.agent_id === agent_id) === true;
  const { data, error, refetch } = useQuery({
    ...agentQuery(org_id, agent_id),
    enabled: !senders.isPending && !isSender,
  });
  usePageTitle(oneLine(data?.data.name ?? agent_id));
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/agents/${encodeURIComponent(agent_id)}`);
  const isUnknown = isSender || (error instanceof RequestError && error.status === 404);
  if (data === undefined && !isUnknown)
    return (
      <div className={lists.page}>
        {error === null ? (
          <Skeleton rows={12} height={20} />
        ) : (
          <ErrorPanel error={error} what="the agent" onRetry={() => void refetch()} />
        )}
      </div>
    );
  return (
    <div className={lists.page}>
      <Actions agent_id={agent_id} agent={data?.data ?? null} />
      {data === undefined ? <Unknown /> : <Registration agent={data.data} />}
      <AgentActivity agent_id={agent_id} />
      <AgentLinks agent_id={agent_id} />
    </div>
  );
}

function Unknown(): ReactElement {
  return (
    <EmptyState title="No agent of this id is registered">
      Events that name the id in attributes.agent_id are stored and counted. A registration adds the name, the version
      and a notice when the agent falls silent.
    </EmptyState>
  );
}

function Actions({ agent_id, agent }: { agent_id: string; agent: Agent | null }): ReactElement {
  const { org_id, can } = useOrganization();
  const [open, setOpen] = useState<'archive' | 'register' | null>(null);
  const mayArchive = can('agents:write') && agent !== null && agent.status !== 'archived';
  const mayRegister = can('agents:invite') && agent === null;
  const archive = (): void => {
    setOpen('archive');
  };
  const close = (): void => {
    setOpen(null);
  };
  const base = `/o/${encodeURIComponent(org_id)}`;
  useKeys('Agent', mayArchive ? [{ keys: 'A', label: 'Archive the agent', run: archive }] : []);
  return (
    <div className={lists.actions}>
      {can('traces:read') && (
        <ButtonLink
          href={`${base}/traces?${new URLSearchParams({ agent_id: escapedValue(agent_id), t: '7d' })}`}
          icon="traces"
        >
          Show traces
        </ButtonLink>
      )}
      {mayRegister && (
        <Button
          look="primary"
          onClick={() => {
            setOpen('register');
          }}
        >
          Register agent
        </Button>
      )}
      {mayArchive && (
        <Button keys="A" onClick={archive}>
          Archive agent
        </Button>
      )}
      {agent !== null && <GrantLink type="agent" id={agent_id} />}
      {can('audit:view') && (
        <Link href={`${base}/audit?target_id=${encodeURIComponent(agent_id)}`}>Changes in the audit log</Link>
      )}
      {open === 'archive' && agent !== null && <ArchiveDialog agent={agent} onClose={close} />}
      {open === 'register' && <TokenDialog agent_id={agent_id} onClose={close} />}
    </div>
  );
}

function Registration({ agent }: { agent: Agent }): ReactElement {
  const now = Date.now();
  const facts: [string, ReactElement | string][] = [
    [
      'State',
      <span key="state" className={isDrifting(agent, now) ? styles.warn : undefined}>
        {driftWords(agent, now)}
      </span>,
    ],
    ['Id', <Name key="id">{agent.agent_id}</Name>],
    ['Framework', agent.framework ?? NONE],
    ['Version', agent.version === null ? NONE : <Name key="version">{agent.version}</Name>],
    ['Last event', <Moment key="seen" at={agent.last_seen_at} />],
    ['Registered', <Moment key="registered" at={agent.registered_at} />],
    // An address that an agent sent is shown as text: it may lead anywhere.
    ['Repository', agent.repo_url === null ? NONE : <Name key="repo">{agent.repo_url}</Name>],
  ];
  return (
    <>
      <dl className={lists.sums}>
        {facts.map(([label, value]) => (
          <div key={label} className={styles.fact}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {agent.tags.length > 0 && <Tags tags={agent.tags.map(oneLine)} />}
      {Object.keys(agent.metadata).length > 0 && (
        <section className={lists.section}>
          <h2>Metadata</h2>
          <JsonViewer given={{ value: agent.metadata }} label="Metadata" />
        </section>
      )}
    </>
  );
}
