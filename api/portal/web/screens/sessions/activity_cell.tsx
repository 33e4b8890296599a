// The sparkline of a session or a user: its traces over the time of the list. Rows on the screen are
// asked for, a few at a time.
import { createContext, type ReactElement, type ReactNode, use, useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Query } from '../../lists/list_query.ts';
import { PreviewLoader } from '../../lists/preview_loader.ts';
import { seriesQuery } from '../../lists/series.ts';
import { Sparkline } from '../../lists/sparkline.tsx';
import { queryClient } from '../../client/query_client.ts';
import { count } from '../../text/format.ts';

const BUCKETS_MAX = 24;
const ROWS_AT_ONCE = 4;

type Activity = readonly number[];
const LoaderContext = createContext<PreviewLoader<Activity> | null>(null);

interface ActivityProviderProps {
  org_id: string;
  /** Filter that names the group. */
  by: 'session_id' | 'user_id';
  /** The time of the list. */
  query: Query;
  children: ReactNode;
}

/** Loads the activity of the groups below it. */
export function ActivityProvider({ org_id, by, query, children }: ActivityProviderProps): ReactElement {
  const { since, until } = query;
  const loader = useMemo(() => {
    const time = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
    const read = async (id: string): Promise<[string, Activity]> => {
      const { data } = await queryClient.query({
        ...seriesQuery(org_id, { ...time, [by]: id }, BUCKETS_MAX),
        staleTime: 60_000,
      });
      return [id, data.series[0]?.traces ?? []];
    };
    return new PreviewLoader<Activity>(async (ids) => new Map(await Promise.all(ids.map(read))), ROWS_AT_ONCE);
  }, [org_id, by, since, until]);
  useEffect(
    () => () => {
      loader.close();
    },
    [loader],
  );
  return <LoaderContext value={loader}>{children}</LoaderContext>;
}

/** The sparkline of one group; empty until its numbers are there. */
export function ActivityCell({ id }: { id: string }): ReactElement | null {
  const loader = use(LoaderContext);
  const subscribe = useMemo(
    () => (listener: () => void) => loader?.subscribe(id, listener) ?? (() => undefined),
    [loader, id],
  );
  const values = useSyncExternalStore(subscribe, () => loader?.get(id));
  if (values === undefined || values.length === 0) return null;
  const total = values.reduce((sum, value) => sum + value, 0);
  return <Sparkline values={values} label={`${count(total)} traces over time`} />;
}
