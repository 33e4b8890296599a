// The part below the search field: the line on how the words were found, the hits, or why there are none.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { get } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import type { TraceItem } from '../../lists/trace_data.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import type { HitGroup } from './hit_groups.ts';
import { type HitActions, Hits } from './hits.tsx';
import styles from './search.module.css';
import type { SearchState } from './search_url.ts';
import type { SearchMeta, SnippetHit, useSearchHits } from './use_search.ts';

interface SearchResultsProps extends HitActions {
  answer: ReturnType<typeof useSearchHits>;
  state: SearchState;
  groups: readonly HitGroup<SnippetHit>[];
  unfolded: ReadonlySet<string>;
  onChange: (patch: Partial<SearchState>) => void;
}

/** The results. */
export function SearchResults({
  answer,
  state,
  groups,
  unfolded,
  onChange,
  ...actions
}: SearchResultsProps): ReactElement {
  const traces = useTraces(groups.map(({ trace_id }) => trace_id));
  const { data, error, isPending, isFetching, isPlaceholderData, typing } = answer;
  if (state.q.trim() === '')
    return (
      <EmptyState title="Search prompts and responses">
        Type words that a user or a model wrote. A span matches with any of them, and the best match comes first.
      </EmptyState>
    );
  if (error !== null && !isFetching) {
    if (error instanceof RequestError && error.status === 422) return <></>;
    return (
      <ErrorPanel
        error={error}
        what="the hits"
        onRetry={() => {
          void answer.refetch();
        }}
      />
    );
  }
  if (isPending || data === undefined) return <Skeleton rows={12} height={20} />;
  const stale = typing || isPlaceholderData;
  const top = Math.max(0, ...data.hits.map(({ score }) => score));
  return (
    <div className={cx(styles.results, stale && 'dimmed')} aria-busy={stale || undefined}>
      <Found meta={data.meta} />
      {groups.length === 0 ? (
        <NoHits meta={data.meta} state={state} onChange={onChange} />
      ) : (
        <ol className={styles.groups} aria-label="Hits by trace">
          {groups.map((group) => (
            <Hits
              key={group.trace_id}
              group={group}
              trace={traces.get(group.trace_id)}
              unfolded={unfolded.has(group.trace_id)}
              top={top}
              {...actions}
            />
          ))}
        </ol>
      )}
    </div>
  );
}

/** Returns the traces of the hits, which the hits do not need: their names come when they are there. */
function useTraces(trace_ids: readonly string[]): ReadonlyMap<string, TraceItem> {
  const { org_id } = useOrganization();
  const query = { trace_ids: trace_ids.join(','), limit: '200' };
  const traces = useQuery({
    queryKey: [org_id, '/v1/traces', query],
    queryFn: ({ signal }) => get(org_id, '/v1/traces', { query: query as object }, { signal }),
    enabled: trace_ids.length > 0,
    staleTime: 60_000,
  });
  return new Map((traces.data?.data ?? []).map((trace) => [trace.trace_id, trace]));
}

function Found({
  meta: { candidates, took_ms, terms = [], truncated, waiting = 0 },
}: {
  meta: SearchMeta;
}): ReactElement {
  return (
    <p className={styles.found} role="status">
      {count(candidates)} {candidates === 1 ? 'candidate' : 'candidates'}
      {took_ms !== undefined && `, ${count(took_ms)} ms`}
      {terms.length > 0 && ', words by rarity: '}
      {terms.map(({ word, df }, at) => (
        <span key={word}>
          {at > 0 && ', '}
          <em>{word}</em> {count(df)}
        </span>
      ))}
      {truncated && '. Not every span with these words was searched'}
      {waiting > 0 && `. ${waitingWords(waiting)}`}
    </p>
  );
}

const waitingWords = (waiting: number): string =>
  waiting === 1
    ? 'A text that has just arrived cannot be searched yet'
    : `${count(waiting)} texts that have just arrived cannot be searched yet`;

function NoHits({
  meta: { terms = [], waiting = 0 },
  state,
  onChange,
}: {
  meta: SearchMeta;
  state: SearchState;
  onChange: (patch: Partial<SearchState>) => void;
}): ReactElement {
  const nowhere = terms.filter(({ df }) => df === 0).map(({ word }) => word);
  const filtered = state.model !== '' || state.agent_id !== '' || state.outcome !== null;
  return (
    <EmptyState
      title="No span has these words"
      action={
        <>
          {filtered && (
            <Button
              onClick={() => {
                onChange({ model: '', agent_id: '', outcome: null, min_cost_usd: null, max_cost_usd: null });
              }}
            >
              Remove the filters
            </Button>
          )}
          {state.t !== '90d' && (
            <Button
              onClick={() => {
                onChange({ t: '90d', since: null, until: null });
              }}
            >
              Search the last 90 days
            </Button>
          )}
        </>
      }
    >
      {nowhere.length > 0 &&
        `${nowhere.map((word) => `“${word}”`).join(', ')} ${nowhere.length === 1 ? 'occurs' : 'occur'} nowhere in this time. `}
      {waiting > 0
        ? `${waitingWords(waiting)}. This page searches them by itself.`
        : 'Texts become searchable a few seconds after they arrive.'}
    </EmptyState>
  );
}
