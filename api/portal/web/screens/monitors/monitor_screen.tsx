// One monitor: its definition and state, its values over the past with the threshold, the states of
// its groups, and its changes. `?edit=1` opens the editor.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Menu } from '../../ui/menu.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { choice, codec, flag } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { DeleteDialog } from './delete_dialog.tsx';
import { draftOf, type Monitor } from './draft.ts';
import { EditorForm } from './editor_form.tsx';
import { REREAD_MS, useChange, useViews } from './monitor_api.ts';
import { MonitorChanges } from './monitor_changes.tsx';
import { MonitorGroups } from './monitor_groups.tsx';
import { MonitorValues, SPANS } from './monitor_values.tsx';
import { formatOf, measureWords, minutesWords, OPS_WORDS, thresholdWords } from './monitor_words.ts';
import { isMuted, StateMark } from './state_mark.tsx';
import styles from './monitors.module.css';

const CODEC = codec({ edit: flag(), hours: choice(SPANS, '24') });
const HOUR_MS = 3_600_000;
const MUTES = [
  ['1 hour', 1],
  ['8 hours', 8],
  ['24 hours', 24],
  ['7 days', 168],
] as const;

/** The page. */
export default function MonitorScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const monitor_id = useRouteParams()('monitor_id');
  const [{ edit }] = useSearchState(CODEC);
  const { data, error, refetch } = useQuery({
    ...apiQuery(org_id, '/v1/monitors/{monitor_id}', { path: { monitor_id } }),
    refetchInterval: REREAD_MS,
  });
  usePageTitle(data?.data.name ?? null);
  usePageRequest(`/v1/monitors/${encodeURIComponent(monitor_id)}`);
  if (data === undefined)
    return (
      <div className={lists.page}>
        {error === null ? (
          <Skeleton rows={8} height={20} />
        ) : (
          <ErrorPanel error={error} what="the monitor" onRetry={() => void refetch()} />
        )}
      </div>
    );
  if (edit && can('integrations:write'))
    return <EditorForm key={data.data.updated_at} monitor={data.data} initial={draftOf(data.data)} />;
  return <Shown monitor={data.data} />;
}

function Shown({ monitor }: { monitor: Monitor }): ReactElement {
  const { can } = useOrganization();
  const [{ hours }, change] = useSearchState(CODEC);
  const views = useViews();
  const format = formatOf(views, monitor.query.view, monitor.query.measures[0]?.measure ?? '');
  return (
    <div className={lists.page}>
      {can('integrations:write') && (
        <Actions
          monitor={monitor}
          onEdit={() => {
            change({ edit: true });
          }}
        />
      )}
      {monitor.error !== null && (
        <p role="alert" className={styles.warning}>
          The monitor could not be evaluated and alerts for nothing: {monitor.error}
        </p>
      )}
      <Definition monitor={monitor} format={format} />
      <MonitorValues
        monitor={monitor}
        hours={hours}
        format={format}
        onHours={(next) => {
          change({ hours: next });
        }}
      />
      <MonitorGroups monitor={monitor} format={format} />
      <MonitorChanges monitor_id={monitor.monitor_id} format={format} />
    </div>
  );
}

/** Actions of those who may change monitors. */
function Actions({ monitor, onEdit }: { monitor: Monitor; onEdit: () => void }): ReactElement {
  const [deleting, setDeleting] = useState(false);
  const change = useChange(monitor.monitor_id);
  const openDelete = (): void => {
    setDeleting(true);
  };
  const mute = (words: string, hours: number): void => {
    const muted_until = new Date(Date.now() + hours * HOUR_MS).toISOString();
    change.mutate({ patch: { muted_until }, done: `Muted for ${words}. The monitor is still evaluated.` });
  };
  useKeys('Monitor', [
    { keys: 'e', label: 'Edit the monitor', run: onEdit },
    { keys: 'Delete', label: 'Delete the monitor', run: openDelete },
  ]);
  return (
    <div className={lists.actions}>
      <Button look="primary" keys="e" onClick={onEdit}>
        Edit monitor
      </Button>
      {isMuted(monitor, Date.now()) ? (
        <Button
          busy={change.isPending}
          onClick={() => {
            change.mutate({ patch: { muted_until: null }, done: 'Unmuted.' });
          }}
        >
          Unmute monitor
        </Button>
      ) : (
        <Menu
          label="Mute monitor"
          items={MUTES.map(([words, hours]) => ({
            label: `For ${words}`,
            onSelect: () => {
              mute(words, hours);
            },
          }))}
        >
          Mute monitor
        </Menu>
      )}
      <Button
        busy={change.isPending}
        onClick={() => {
          const enabled = !monitor.enabled;
          change.mutate({ patch: { enabled }, done: enabled ? 'Enabled.' : 'Disabled. Its alerts are resolved.' });
        }}
      >
        {monitor.enabled ? 'Disable monitor' : 'Enable monitor'}
      </Button>
      <Button look="quiet" icon="trash" keys="Delete" hint="Delete monitor" onClick={openDelete} />
      {deleting && (
        <DeleteDialog
          monitor={monitor}
          onClose={() => {
            setDeleting(false);
          }}
        />
      )}
    </div>
  );
}

interface DefinitionProps {
  monitor: Monitor;
  format: (value: number | null) => string;
}

function Definition({ monitor, format }: DefinitionProps): ReactElement {
  const { for_minutes, muted_until } = monitor;
  const facts: [string, ReactElement | string][] = [
    ['State', <StateMark key="state" state={monitor.state} />],
    ['Measure', measureWords(monitor)],
    ['Alerts', thresholdWords(monitor, format)],
    ...(for_minutes === 0 ? [] : [['For at least', minutesWords(for_minutes)] as [string, string]]),
    ...monitor.query.filters.map(({ field, op, value }): [string, string] => [
      `Filter on ${field}`,
      `${OPS_WORDS[op] ?? op} ${Array.isArray(value) ? value.join(', ') : String(value)}`,
    ]),
    ['Severity', monitor.severity],
    ['Notifies', receivers(monitor)],
    ...(isMuted(monitor, Date.now())
      ? [['Muted until', <Moment key="muted" at={muted_until} form="full" />] as [string, ReactElement]]
      : []),
    ['Evaluated', <Moment key="evaluated" at={monitor.evaluated_at} form="ago" />],
    ['Changed', <Moment key="changed" at={monitor.updated_at} />],
  ];
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

/** Returns who is notified besides the subscribed endpoints. */
function receivers({ channels }: Monitor): string {
  const named = channels.flatMap(({ webhook_id, to }) => [
    ...(typeof webhook_id === 'string' ? [webhook_id] : []),
    ...(Array.isArray(to) ? to.map(String) : []),
  ]);
  return ['subscribed webhooks', ...named].join(', ');
}
