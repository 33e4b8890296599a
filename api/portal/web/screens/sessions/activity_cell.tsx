// The sparkline of a session or a user: its traces over the time of the list. The rows that appear
// together are asked for together.
import { createContext, type ReactElement, type ReactNode, use, useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Query } from '../../lists/list_query.ts';
import { PreviewLoader } from '../../lists/preview_loader.ts';
import { Sparkline } from '../../lists/sparkline.tsx';
import { count } from '../../text/format.ts';
import { type Activity, readActivity } from './activity_read.ts';
import { IDS_MAX } from './activity_requests.ts';

const LoaderContext = createContext<PreviewLoader<Activity> | null>(null);

interface ActivityProviderProps {
  org_id: string;
  /** Field that names the group. */
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
    return new PreviewLoader<Activity>((ids, signal) => readActivity(org_id, by, time, ids, signal), IDS_MAX);
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
  return <Sparkline values={values} label={`${count(total)} ${total === 1 ? 'trace' : 'traces'} over time`} />;
}
