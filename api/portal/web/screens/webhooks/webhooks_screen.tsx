// The webhook endpoints: how many of their deliveries succeed, what waits for them, and what was given up.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, percent } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import lists from '../sessions/sessions.module.css';
import { WebhookEvents } from './webhook_events.tsx';
import { statsQuery, type Webhook, webhookPath, type WebhookStats, webhooksQuery } from './webhook_data.ts';

const WebhookDialog = deferred(() => import('./webhook_dialog.tsx'));

interface Row {
  webhook: Webhook;
  /** undefined until the statistics are there. */
  stats: WebhookStats | undefined;
}
type Open = 'create' | { webhook_id: string; secret: string } | null;

/** The page. */
export default function WebhooksScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const pages = useInfiniteQuery(webhooksQuery(org_id));
  const stats = useQuery(statsQuery(org_id));
  const [open, setOpen] = useState<Open>(null);
  const { data } = pages;
  const rows = useMemo(() => {
    const byId = new Map(stats.data?.data.map((one) => [one.webhook_id, one]));
    const all = data?.pages.flatMap((page) => page.data) ?? [];
    return all.map((webhook): Row => ({ webhook, stats: byId.get(webhook.webhook_id) }));
  }, [data, stats.data]);
  const letters = stats.data?.data.reduce((sum, { dead_letters }) => sum + dead_letters, 0) ?? 0;
  const total = data?.pages[0]?.meta.total;
  const create = (): void => {
    setOpen('create');
  };
  const mayWrite = can('integrations:write');
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/webhooks`);
  useKeys('Webhooks', mayWrite ? [{ keys: 'n', label: 'Create an endpoint', run: create }] : []);
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'endpoint' : 'endpoints'}`}
        </span>
        <ButtonLink href={`/o/${encodeURIComponent(org_id)}/webhooks/dead-letters`}>
          {letters === 0 ? 'Dead letters' : `Dead letters (${count(letters)})`}
        </ButtonLink>
        {mayWrite && (
          <Button look="primary" icon="plus" keys="n" onClick={create}>
            Create endpoint
          </Button>
        )}
      </div>
      {pages.error !== null && data === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the endpoints" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 ? (
        <div className={lists.page}>
          <EmptyState title="No endpoints">
            An endpoint receives the events that it subscribes to as signed HTTP requests. These events exist:
          </EmptyState>
          <WebhookEvents />
        </div>
      ) : (
        <>
          {stats.error !== null && (
            <div className={lists.state}>
              <ErrorPanel error={stats.error} what="the statistics" onRetry={() => void stats.refetch()} />
            </div>
          )}
          <ListTable
            label="Webhook endpoints"
            noun="endpoint"
            address="webhooks"
            rows={rows}
            rowKey={webhookIdOf}
            columns={(narrow) => columnsOf(org_id, narrow)}
            hrefOf={({ webhook }) => webhookPath(org_id, webhook.webhook_id)}
            pages={pages}
            loading={pages.isPending}
          />
        </>
      )}
      {open !== null && <OpenDialog open={open} onOpen={setOpen} />}
    </div>
  );
}

function OpenDialog({ open, onOpen }: { open: Exclude<Open, null>; onOpen: (open: Open) => void }): ReactElement {
  const { org_id } = useOrganization();
  if (open !== 'create')
    return (
      <SecretDialog
        title="Signing secret of the endpoint"
        secret={open.secret}
        onClose={() => {
          navigate(webhookPath(org_id, open.webhook_id));
        }}
      >
        <p>The receiver verifies each delivery with this secret. It is shown now and not again.</p>
      </SecretDialog>
    );
  return (
    <WebhookDialog
      webhook={null}
      onClose={() => {
        onOpen(null);
      }}
      onCreated={(webhook_id, secret) => {
        onOpen({ webhook_id, secret });
      }}
    />
  );
}

const webhookIdOf = ({ webhook }: Row): string => webhook.webhook_id;
const stateOf = ({ webhook }: Row): string => (webhook.enabled ? 'Enabled' : 'Disabled');

/** Success rate, with the numbers behind it in its tooltip. */
function Rate({ row: { stats } }: { row: Row }): ReactElement | null {
  if (stats === undefined) return null;
  const { delivered, failed, dead_lettered } = stats;
  return (
    <span title={`${count(delivered)} delivered, ${count(failed)} refused, ${count(dead_lettered)} given up in 7 days`}>
      {percent(stats.success_rate)}
    </span>
  );
}

function columnsOf(org_id: string, narrow: boolean): Column<Row>[] {
  const address = ({ webhook: { webhook_id, url, description } }: Row): ReactElement => (
    <Link
      href={webhookPath(org_id, webhook_id)}
      className={lists.name}
      tabIndex={-1}
      title={description === '' ? oneLine(url) : `${oneLine(url)}: ${oneLine(description)}`}
    >
      <bdi>{oneLine(url)}</bdi>
    </Link>
  );
  const letters = ({ stats }: Row): ReactElement | string =>
    (stats?.dead_letters ?? 0) === 0 ? (
      count(stats?.dead_letters)
    ) : (
      <span className={lists.failed}>{count(stats?.dead_letters)}</span>
    );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Endpoint',
        width: 'minmax(0, 1fr)',
        cell: (row) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{address(row)}</span>
              <Rate row={row} />
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{stateOf(row)}</span>
              <span>Waiting {count(row.stats?.waiting)}</span>
              <span>Dead letters {letters(row)}</span>
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'url', head: 'Address', width: 'minmax(240px, 3fr)', cell: address },
    {
      id: 'description',
      head: 'Description',
      width: 'minmax(120px, 2fr)',
      cell: ({ webhook }) => <bdi className={lists.name}>{oneLine(webhook.description)}</bdi>,
    },
    {
      id: 'events',
      head: 'Events',
      width: '72px',
      align: 'end',
      cell: ({ webhook }) => <span title={webhook.events.join(', ')}>{count(webhook.events.length)}</span>,
    },
    { id: 'state', head: 'State', width: '88px', cell: stateOf },
    { id: 'rate', head: 'Delivered, 7 d', width: '112px', align: 'end', cell: (row) => <Rate row={row} /> },
    { id: 'waiting', head: 'Waiting', width: '80px', align: 'end', cell: ({ stats }) => count(stats?.waiting) },
    { id: 'letters', head: 'Dead letters', width: '96px', align: 'end', cell: letters },
    {
      id: 'last',
      head: 'Last attempt',
      width: '112px',
      cell: ({ stats }) => (stats === undefined ? null : <Moment at={stats.last_attempt_at} form="ago" />),
    },
  ];
}
