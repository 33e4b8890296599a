// Says why the list is empty: the filter that excludes most, a time without traces, or no data at all.
import { useQueries, useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { fieldWords } from '../../lists/chips.tsx';
import type { Query } from '../../lists/list_query.ts';
import { withFilter, type ListUrl } from '../../lists/list_url.ts';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { count } from '../../text/format.ts';
import { fullTime } from '../../text/format_time.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';

/** Filters of which the effect is counted. */
const COUNTED_MAX = 6;
/** Time around the newest trace that is shown, when somebody asks for it. */
const AROUND_MS = 3_600_000;

interface EmptyTracesProps {
  state: ListUrl;
  query: Query;
  onChange: ChangeList;
}

/** The empty list. */
export default function EmptyTraces(props: EmptyTracesProps): ReactElement {
  return props.state.filters.size > 0 ? <ExcludedByFilters {...props} /> : <NoneInTime {...props} />;
}

function countQuery(org_id: string, query: Query) {
  const params = { ...query, limit: '1' };
  return {
    queryKey: [org_id, '/v1/traces', params],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      get(org_id, '/v1/traces', { query: params as object }, { signal }),
  };
}

function ExcludedByFilters({ state, query, onChange }: EmptyTracesProps): ReactElement {
  const { org_id } = useOrganization();
  const names = [...state.filters.keys()].slice(0, COUNTED_MAX);
  const without = useQueries({
    queries: names.map((name) =>
      countQuery(org_id, Object.fromEntries(Object.entries(query).filter(([other]) => other !== name))),
    ),
  });
  const found = names
    .map((name, at) => ({ name, traces: without[at]?.data?.meta.total ?? 0 }))
    .filter(({ traces }) => traces > 0)
    .toSorted((a, b) => b.traces - a.traces);
  return (
    <EmptyState
      title="No trace matches all filters"
      action={
        <>
          {found.slice(0, 3).map(({ name, traces }) => (
            <Button
              key={name}
              onClick={() => {
                onChange((now) => withFilter(now, name, []));
              }}
            >
              Without {fieldWords(name)}: {count(traces)}
            </Button>
          ))}
          <Button
            look="quiet"
            onClick={() => {
              onChange((now) => ({ ...now, filters: new Map(), view: null }));
            }}
          >
            Remove all filters
          </Button>
        </>
      }
    >
      {found.length === 0
        ? 'No single filter is the reason. A longer time range may hold more.'
        : 'Removing one of these filters shows traces.'}
    </EmptyState>
  );
}

function NoneInTime({ state, onChange }: EmptyTracesProps): ReactElement | null {
  const { org_id } = useOrganization();
  const { zone } = usePreferences();
  const any = useQuery(countQuery(org_id, {}));
  const newest = any.data?.data[0];
  if (any.isPending) return null;
  if (newest === undefined)
    return (
      <EmptyState
        title="No traces yet"
        action={
          <ButtonLink href={`/o/${org_id}/start`} look="primary">
            Send the first trace
          </ButtonLink>
        }
      >
        This page lists the runs of your agents: what failed, how long each took and what it cost.
      </EmptyState>
    );
  const at = Date.parse(newest.started_at);
  return (
    <EmptyState
      title={'last' in state.time ? 'No traces in this time range' : 'No traces between these times'}
      action={
        <Button
          onClick={() => {
            const since = new Date(at - AROUND_MS).toISOString();
            onChange((now) => ({ ...now, time: { since, until: null } }));
          }}
        >
          Show the hour up to the newest trace
        </Button>
      }
    >
      The newest trace started on {fullTime(newest.started_at, zone)}.
    </EmptyState>
  );
}
