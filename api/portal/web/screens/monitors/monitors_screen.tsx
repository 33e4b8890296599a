// The list of monitors: what each measures, its threshold, its state, and how many groups alert.
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { codec, optionalChoice } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import type { AnalyticsView, Monitor } from './draft.ts';
import { REREAD_MS, useViews } from './monitor_api.ts';
import { formatOf, measureWords, thresholdWords } from './monitor_words.ts';
import { StateMark, STATES } from './state_mark.tsx';

const PAGE_ROWS = 200;
const ALL_STATES = ['alerting', 'error', 'no_data', 'ok', 'disabled'] as const;
const CODEC = codec({ state: optionalChoice(ALL_STATES) });

function useMonitors(org_id: string, state: Monitor['state'] | null) {
  const filter = state === null ? {} : { state };
  const pages = useInfiniteQuery({
    queryKey: [org_id, '/v1/monitors', 'pages', state],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, '/v1/monitors', { query: { ...filter, limit: PAGE_ROWS, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
    placeholderData: keepPreviousData,
    refetchInterval: REREAD_MS,
  });
  const { data } = pages;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  return { pages, rows, total: data?.pages[0]?.meta.total };
}

/** The page. */
export default function MonitorsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [{ state }, change] = useSearchState(CODEC);
  const views = useViews();
  const { pages, rows, total } = useMonitors(org_id, state);
  const base = `/o/${encodeURIComponent(org_id)}/monitors`;
  const [, navigate] = useLocation();
  const create = (): void => {
    navigate(`${base}/new`);
  };
  usePageRequest(`/v1/monitors?limit=${PAGE_ROWS}${state === null ? '' : `&state=${state}`}`);
  const mayWrite = can('integrations:write');
  useKeys('Monitors', mayWrite ? [{ keys: 'n', label: 'Create a monitor', run: create }] : []);
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'monitor' : 'monitors'}`}
        </span>
        {ALL_STATES.map((one) => (
          <Chip
            key={one}
            pressed={state === one}
            onToggle={() => {
              change({ state: state === one ? null : one });
            }}
          >
            {STATES[one]}
          </Chip>
        ))}
        {mayWrite && (
          <ButtonLink href={`${base}/new`} look="primary" icon="plus" keys="n">
            Create monitor
          </ButtonLink>
        )}
      </div>
      {pages.error !== null && total === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the monitors" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 && !pages.isPlaceholderData ? (
        <div className={lists.state}>
          {state === null ? (
            <EmptyState title="No monitors">
              A monitor evaluates a measure every minute, such as the error rate by model or the cost by user. It
              notifies people and webhooks when the value passes a threshold, and again when it is back.
            </EmptyState>
          ) : (
            <EmptyState title="No monitor has this state" action={<Link href={base}>Show all monitors</Link>} />
          )}
        </div>
      ) : (
        <ListTable
          label="Monitors"
          noun="monitor"
          address={`monitors ${state ?? ''}`}
          rows={rows}
          rowKey={idOf}
          columns={(narrow) => columnsOf(base, views, narrow)}
          hrefOf={(monitor) => hrefOf(base, monitor)}
          pages={pages}
          loading={pages.isPending}
          total={total}
        />
      )}
    </div>
  );
}

const idOf = ({ monitor_id }: Monitor): string => monitor_id;
const hrefOf = (base: string, { monitor_id }: Monitor): string => `${base}/${encodeURIComponent(monitor_id)}`;

function columnsOf(base: string, views: readonly AnalyticsView[], narrow: boolean): Column<Monitor>[] {
  const name = (monitor: Monitor): ReactElement => (
    <Link href={hrefOf(base, monitor)} className={lists.name} tabIndex={-1} title={monitor.name}>
      {monitor.name}
    </Link>
  );
  const state = ({ state: one }: Monitor): ReactElement => <StateMark state={one} />;
  const limit = (monitor: Monitor): string => {
    const [measure] = monitor.query.measures;
    return thresholdWords(monitor, formatOf(views, monitor.query.view, measure?.measure ?? ''));
  };
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Monitor',
        width: 'minmax(0, 1fr)',
        cell: (monitor) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{name(monitor)}</span>
              {state(monitor)}
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{limit(monitor)}</span>
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'name', head: 'Name', width: 'minmax(180px, 3fr)', cell: name },
    { id: 'state', head: 'State', width: '120px', cell: state },
    { id: 'measure', head: 'Measure', width: 'minmax(200px, 3fr)', cell: measureWords },
    { id: 'threshold', head: 'Alerts', width: 'minmax(200px, 2fr)', cell: limit },
    { id: 'groups', head: 'Alerting groups', width: '120px', align: 'end', cell: groupsAlerting },
    { id: 'severity', head: 'Severity', width: '88px', cell: ({ severity }) => severity },
    {
      id: 'evaluated',
      head: 'Evaluated',
      width: '112px',
      cell: ({ evaluated_at }) => <Moment at={evaluated_at} form="ago" />,
    },
  ];
}

/** Returns how many groups alert; empty for a monitor without groups. */
function groupsAlerting({ group_by, groups }: Monitor): string {
  if (group_by.length === 0) return '';
  const alerting = groups.filter(({ state }) => state === 'alerting').length;
  return `${count(alerting)} of ${count(groups.length)}`;
}
