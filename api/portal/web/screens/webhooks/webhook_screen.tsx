// One endpoint: its state and success rate, its actions, and as tabs its attempts, its dead letters, its
// events and the code that verifies a signature.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { count, percent } from '../../text/format.ts';
import { Name } from '../../trace/name.tsx';
import { preview } from '../../trace/text/one_line.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { Attempts } from './attempts.tsx';
import { DeadLetters } from './dead_letters.tsx';
import { VerifyCode } from './verify_code.tsx';
import { WebhookActions } from './webhook_actions.tsx';
import { statsQuery, type Webhook, webhookQuery } from './webhook_data.ts';
import { TABS, webhookUrl } from './webhook_url.ts';
import { WebhookEvents } from './webhook_events.tsx';
import styles from './webhooks.module.css';

const TITLE_CHARS_MAX = 80;

/** The page. */
export default function WebhookScreen(): ReactElement {
  const { org_id } = useOrganization();
  const webhook_id = useRouteParams()('id');
  const { data, error, refetch } = useQuery(webhookQuery(org_id, webhook_id));
  usePageTitle(data === undefined ? null : preview(data.data.url, TITLE_CHARS_MAX));
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/webhooks/${encodeURIComponent(webhook_id)}`);
  if (data !== undefined) return <Shown webhook={data.data} />;
  return (
    <div className={lists.page}>
      {error === null ? (
        <Skeleton rows={12} height={20} />
      ) : (
        <ErrorPanel error={error} what="the endpoint" onRetry={() => void refetch()} />
      )}
    </div>
  );
}

function Shown({ webhook }: { webhook: Webhook }): ReactElement {
  const [{ tab }, change] = useSearchState(webhookUrl);
  const { webhook_id } = webhook;
  return (
    <div className={lists.page}>
      <WebhookActions webhook={webhook} />
      <Facts webhook={webhook} />
      <Tabs
        label="Parts of the endpoint"
        tabs={[
          { id: 'attempts', label: 'Attempts' },
          { id: 'letters', label: 'Dead letters' },
          { id: 'events', label: 'Events' },
          { id: 'verify', label: 'Verify signatures' },
        ]}
        selected={tab}
        onSelect={(next) => {
          change({ tab: TABS.find((one) => one === next) ?? 'attempts' });
        }}
      >
        {tab === 'attempts' && <Attempts webhook={webhook} />}
        {tab === 'letters' && <DeadLetters webhook_id={webhook_id} enabled={webhook.enabled} />}
        {tab === 'events' && <WebhookEvents names={webhook.events} />}
        {tab === 'verify' && <VerifyCode />}
      </Tabs>
    </div>
  );
}

function Facts({ webhook }: { webhook: Webhook }): ReactElement {
  const { org_id } = useOrganization();
  const { data, error, refetch } = useQuery(statsQuery(org_id));
  const stats = data?.data.find(({ webhook_id }) => webhook_id === webhook.webhook_id);
  const facts: [string, ReactElement | string][] = [
    ['State', webhook.enabled ? 'Enabled' : 'Disabled'],
    ['Delivered, 7 d', percent(stats?.success_rate)],
    ['Attempts, 7 d', count(stats?.attempts)],
    ['Waiting', count(stats?.waiting)],
    ['Dead letters', count(stats?.dead_letters)],
    ['Created', <Moment key="created" at={webhook.created_at} />],
  ];
  if (webhook.description !== '') facts.push(['Description', <Name key="description">{webhook.description}</Name>]);
  return (
    <>
      {error !== null && data === undefined && (
        <ErrorPanel error={error} what="the statistics" onRetry={() => void refetch()} />
      )}
      <dl className={lists.sums}>
        {facts.map(([label, value]) => (
          <div key={label} className={styles.address}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}
