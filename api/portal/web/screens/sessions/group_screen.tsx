// The list of sessions, and that of users: filters in the address, rows by the last activity.
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, type RefObject, useMemo, useRef } from 'react';
import { useOrganization } from '../../client/session.ts';
import { FilterChips } from '../../lists/chips.tsx';
import { queryClient, readAhead } from '../../client/query_client.ts';
import type { Query } from '../../lists/list_query.ts';
import { parseListUrl, writeListUrl } from '../../lists/list_url.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { TimeMenu } from '../../lists/time_menu.tsx';
import { useListUrl } from '../../lists/use_list_url.ts';
import { loadQuery, useLoadQuery } from '../../lists/use_trace_rows.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import type { PreloadContext } from '../../shell/routes.tsx';
import { count } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { ActivityProvider } from './activity_cell.tsx';
import { type GroupPath, groupPagesQuery, sentOf } from './group_query.ts';
import { groupColumns } from './group_table.tsx';
import styles from './sessions.module.css';

interface GroupScreenProps {
  /** Words of the page. */
  title: 'Sessions' | 'Users';
  path: GroupPath;
  by: 'session_id' | 'user_id';
  /** How to send data that makes such groups. */
  hint: string;
}

/** Asks for the rows of a list. */
export function preloadGroups(path: GroupPath, { org_id, search }: PreloadContext): void {
  readAhead(queryClient.infiniteQuery(groupPagesQuery(org_id, path, loadQuery(parseListUrl(search)))));
}

/** Returns the pages of the list, and the parameters of their requests. */
function useGroups({ path }: GroupScreenProps, org_id: string, query: Query) {
  const sent = sentOf(query);
  const pages = useInfiniteQuery({ ...groupPagesQuery(org_id, path, query), placeholderData: keepPreviousData });
  const { data } = pages;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  return { sent, pages, rows, total: data?.pages[0]?.meta.total };
}

/** The page. */
export function GroupScreen(props: GroupScreenProps): ReactElement {
  const { title, path, by, hint } = props;
  const { org_id } = useOrganization();
  const [state, change] = useListUrl();
  const { query } = useLoadQuery(state);
  const groups = useGroups(props, org_id, query);
  const { sent, pages, total } = groups;
  const time = useRef<HTMLSpanElement>(null);
  const words = title.toLowerCase();
  usePageRequest(`/v1/${path}?${new URLSearchParams(sent)}`);
  return (
    <div className={styles.screen}>
      <div className={styles.tools}>
        <span className={styles.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? words.slice(0, -1) : words}`}
        </span>
        <FilterChips state={state} onChange={change} />
        <TimeMenu
          ref={time}
          time={state.time}
          onChange={(next) => {
            change((now) => ({ ...now, time: next }));
          }}
        />
      </div>
      {pages.error !== null && total === undefined ? (
        <div className={styles.state}>
          <ErrorPanel
            error={pages.error}
            what={`the ${words}`}
            onRetry={() => {
              void pages.refetch();
            }}
          />
        </div>
      ) : total === 0 && !pages.isPlaceholderData ? (
        <div className={styles.state}>
          <EmptyState
            title={`No ${words} in this time`}
            action={<ButtonLink href={`/o/${encodeURIComponent(org_id)}/start`}>See how to send data</ButtonLink>}
          >
            {hint}
          </EmptyState>
        </div>
      ) : (
        <ActivityProvider org_id={org_id} by={by} query={sent}>
          <GroupRows {...props} org_id={org_id} groups={groups} address={writeListUrl(state)} time={time} />
        </ActivityProvider>
      )}
    </div>
  );
}

type GroupRowsProps = GroupScreenProps & {
  org_id: string;
  groups: ReturnType<typeof useGroups>;
  address: string;
  time: RefObject<HTMLElement | null>;
};

const idOf = ({ id }: { id: string }): string => id;

function GroupRows({ title, path, org_id, groups, address, time }: GroupRowsProps): ReactElement {
  const { rows, pages, total } = groups;
  const hrefOf = (id: string): string => `/o/${encodeURIComponent(org_id)}/${path}/${encodeURIComponent(id)}`;
  const noun = title.slice(0, -1);
  return (
    <ListTable
      label={title}
      noun={noun.toLowerCase()}
      address={`${path} ${address}`}
      rows={rows}
      rowKey={idOf}
      columns={(narrow) => groupColumns({ title: noun, narrow, hrefOf })}
      hrefOf={({ id }) => hrefOf(id)}
      keys={() => [
        { keys: 't', label: 'Choose the time range', run: () => time.current?.querySelector('button')?.click() },
      ]}
      pages={pages}
      total={total}
      loading={pages.isPending}
    />
  );
}
