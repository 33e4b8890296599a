// The dead letters: events and messages that the pipeline could not process, oldest first. The operator reads one with
// its body, replays those of events, and deletes those that nobody needs. Filters and the open letter stand in the
// address.
import { useInfiniteQuery, useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { type Answer, get, send } from '../../client/api.ts';
import { queryClient } from '../../client/query_client.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, NONE } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { toast } from '../../ui/toast.tsx';
import { codec, integer, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { LetterDialog } from './letter_dialog.tsx';
import styles from './operator.module.css';
import { Waiting } from './waiting.tsx';

export type Letter = Answer<'/admin/dead-letters'>['data'][number];

const CODEC = codec({ org_id: text(), stage: text(), seq: integer(1, Number.MAX_SAFE_INTEGER) });
const PAGE = 50;
const KEY = [null, '/admin/dead-letters'] as const;
const seqOf = ({ seq }: Letter): string => String(seq);

type Filter = { org_id: string; stage: string };

const queryOf = ({ org_id, stage }: Filter) => ({
  limit: PAGE,
  ...(org_id === '' ? {} : { org_id }),
  ...(stage === '' ? {} : { stage }),
});

const useLetters = (filter: Filter) =>
  useInfiniteQuery({
    queryKey: [...KEY, queryOf(filter)],
    queryFn: ({ pageParam, signal }) =>
      get(
        null,
        '/admin/dead-letters',
        { query: { ...queryOf(filter), ...(pageParam === null ? {} : { cursor: pageParam }) } },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ meta }) => meta.next_cursor,
  });

/** The page. */
export default function DeadLettersPage(): ReactElement {
  const [state, change] = useSearchState(CODEC);
  const pages = useLetters(state);
  const letters = pages.data?.pages.flatMap(({ data }) => data) ?? [];
  const total = pages.data?.pages[0]?.meta.total;
  usePageRequest(`/admin/dead-letters?${new URLSearchParams({ ...queryOf(state), limit: String(PAGE) }).toString()}`);
  return (
    <div className={styles.list}>
      <div className={styles.tools}>
        <Filters
          filter={state}
          onChange={(patch) => {
            change(patch);
          }}
        />
        <span className={styles.grow} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'dead letter' : 'dead letters'} in the service`}
        </span>
        <ReplayAll letters={letters} />
      </div>
      {pages.data === undefined ? (
        <Waiting query={pages} what="the dead letters" rows={12} />
      ) : letters.length === 0 && !pages.hasNextPage ? (
        <NoLetters filtered={state.org_id !== '' || state.stage !== ''} />
      ) : (
        <ListTable
          label="Dead letters"
          noun="dead letter"
          address={`operator/dead-letters?${state.org_id}&${state.stage}`}
          rows={letters}
          rowKey={seqOf}
          columns={columnsOf}
          onOpen={({ seq }) => {
            change({ seq });
          }}
          pages={pages}
        />
      )}
      {pages.hasNextPage && letters.length < PAGE && (
        <div className={styles.tools}>
          <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Look through more letters
          </Button>
        </div>
      )}
      {state.seq !== null && (
        <LetterDialog
          key={state.seq}
          seq={state.seq}
          onClose={() => {
            change({ seq: null });
          }}
          onGone={refreshLetters}
        />
      )}
    </div>
  );
}

function NoLetters({ filtered }: { filtered: boolean }): ReactElement {
  return (
    <div className={styles.page}>
      <EmptyState title={filtered ? 'No dead letter matches' : 'No dead letters'}>
        {filtered
          ? 'Clear the organization and the stage to see all of them.'
          : 'Events and messages that the pipeline cannot process wait here, with the reason, until they are replayed or deleted.'}
      </EmptyState>
    </div>
  );
}

const refreshLetters = (): Promise<void> => queryClient.invalidateQueries({ queryKey: KEY });

interface FiltersProps {
  filter: Filter;
  onChange: (patch: Partial<Filter>) => void;
}

function Filters({ filter, onChange }: FiltersProps): ReactElement {
  const [draft, setDraft] = useState({ org_id: filter.org_id, stage: filter.stage });
  const field = (name: keyof Filter, label: string): ReactElement => (
    <Field label={label}>
      {(control) => (
        <Input
          {...control}
          className={styles.filter}
          value={draft[name]}
          onChange={({ target }) => {
            setDraft({ ...draft, [name]: target.value });
          }}
        />
      )}
    </Field>
  );
  return (
    <form
      className={styles.tools}
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        onChange({ org_id: draft.org_id.trim(), stage: draft.stage.trim() });
      }}
    >
      {field('org_id', 'Organization')}
      {field('stage', 'Stage')}
      <Button type="submit" icon="filter">
        Filter
      </Button>
    </form>
  );
}

/** Replays the letters that are shown, one after the other, and stops at the first failure of the service. */
function ReplayAll({ letters }: { letters: readonly Letter[] }): ReactElement | null {
  const ready = letters.filter(({ replayable }) => replayable);
  const replay = useMutation({
    mutationFn: async () => {
      for (const { seq } of ready)
        await send(null, 'post', '/admin/dead-letters/{seq}/replay', { params: { path: { seq: String(seq) } } });
      return ready.length;
    },
    onSuccess: (replayed) => {
      toast({ text: `${count(replayed)} ${replayed === 1 ? 'event is' : 'events are'} replayed.` });
    },
    onError: (error) => {
      toast({ tone: 'error', text: `The replay stopped: ${error.message}` });
    },
    onSettled: refreshLetters,
  });
  if (ready.length === 0) return null;
  return (
    <Button
      icon="replay"
      busy={replay.isPending}
      onClick={() => {
        replay.mutate();
      }}
    >
      Replay {count(ready.length)} shown
    </Button>
  );
}

function columnsOf(narrow: boolean): Column<Letter>[] {
  const detail = ({ detail: words }: Letter): ReactElement => <span title={words}>{words}</span>;
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Dead letter',
        width: 'minmax(0, 1fr)',
        cell: (letter) => (
          <span className={styles.lines}>
            <span className={styles.name}>{letter.detail}</span>
            <span className={styles.quiet}>
              {letter.stage} · {letter.reason} · <Moment at={letter.died_at} form="ago" />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'died', head: 'Died', width: '128px', cell: ({ died_at }) => <Moment at={died_at} /> },
    { id: 'stage', head: 'Stage', width: '96px', cell: ({ stage }) => stage },
    { id: 'reason', head: 'Reason', width: '144px', cell: ({ reason }) => reason },
    { id: 'org', head: 'Organization', width: 'minmax(120px, 1fr)', cell: ({ org_id }) => org_id ?? NONE },
    { id: 'detail', head: 'Detail', width: 'minmax(200px, 3fr)', cell: detail },
    {
      id: 'event',
      head: 'Event',
      width: 'minmax(120px, 1fr)',
      cell: ({ event_id }) => (event_id === null ? NONE : <code>{event_id}</code>),
    },
  ];
}
