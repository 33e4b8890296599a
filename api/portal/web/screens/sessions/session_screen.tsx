// One session: its sums, and its turns as a conversation.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import { get } from '../../client/api.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { OneGroup, useOneGroup } from './one_group.tsx';
import { Sums } from './sums.tsx';
import { turnElementId, Turns } from './turns.tsx';

const PATH = '/v1/sessions/{session_id}';
const PAGE = 50;

/** The page. */
export default function SessionScreen(): ReactElement {
  const { org_id, id: session_id, root } = useOneGroup();
  usePageRequest(`/v1/sessions/${encodeURIComponent(session_id)}`);
  const pages = useInfiniteQuery({
    queryKey: [org_id, PATH, session_id],
    queryFn: ({ pageParam, signal }) => {
      const query = { limit: String(PAGE), ...(pageParam === null ? {} : { cursor: pageParam }) };
      return get(org_id, PATH, { path: { session_id }, query: query as object }, { signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.meta.next_cursor,
  });
  const turns = useMemo(() => pages.data?.pages.flatMap(({ data }) => data.turns) ?? [], [pages.data]);
  const hrefOf = (trace_id: string): string => `${root}/traces/${encodeURIComponent(trace_id)}`;
  const cursor = useTurnKeys(
    turns.map(({ trace_id }) => trace_id),
    hrefOf,
  );
  return (
    <OneGroup
      kind="session"
      id={session_id}
      traces={{
        href: `${root}/traces?session_id=${encodeURIComponent(session_id)}&t=90d`,
        label: 'Show as list of traces',
      }}
      answer={{ data: pages.data?.pages[0]?.data, error: pages.error, refetch: pages.refetch }}
    >
      {(session) => (
        <>
          <Sums sums={session} />
          <Turns turns={turns} cursor={cursor} hrefOf={hrefOf} />
          {pages.hasNextPage && (
            <Button
              busy={pages.isFetchingNextPage}
              onClick={() => {
                void pages.fetchNextPage();
              }}
            >
              Show the next turns ({count(session.traces - turns.length)} more)
            </Button>
          )}
        </>
      )}
    </OneGroup>
  );
}

/** Moves through the turns with j and k; returns the turn that the keys act on. */
export function useTurnKeys(trace_ids: readonly string[], hrefOf: (trace_id: string) => string): number {
  const [cursor, setCursor] = useState(-1);
  const [, navigate] = useLocation();
  const active = trace_ids[cursor];
  useEffect(() => {
    if (active !== undefined) document.getElementById(turnElementId(active))?.scrollIntoView({ block: 'nearest' });
  }, [active]);
  useKeys('Turns', [
    {
      keys: 'j',
      label: 'Next turn',
      silent: true,
      run: () => {
        setCursor(Math.min(trace_ids.length - 1, cursor + 1));
      },
    },
    {
      keys: 'k',
      label: 'Previous turn',
      silent: true,
      run: () => {
        setCursor(Math.max(0, cursor - 1));
      },
    },
    {
      keys: 'Enter',
      label: 'Open the trace of the turn',
      silent: true,
      run: () => {
        if (active !== undefined) navigate(hrefOf(active));
      },
    },
  ]);
  return cursor;
}
