// Search over the texts of all spans: ranked hits while somebody types, grouped by trace, each with the
// reason for its place.
import {
  type KeyboardEvent,
  type ReactElement,
  type RefObject,
  useEffect,
  useEffectEvent,
  useMemo,
  useRef,
  useState,
} from 'react';
import { useLocation } from 'wouter';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { TimeMenu } from '../../lists/time_menu.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Icon } from '../../ui/icons.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import { groupHits, shownHits } from './hit_groups.ts';
import { hitElementId } from './hits.tsx';
import { SearchFacets } from './search_facets.tsx';
import { SearchResults } from './search_results.tsx';
import styles from './search.module.css';
import { type SearchState, searchUrl, timeOf } from './search_url.ts';
import { type SnippetHit, useSearchHits } from './use_search.ts';

/** The hits with what acts on them: the active one, unfolded traces, the explained one. */
function useHits(org_id: string, state: SearchState, answer: ReturnType<typeof useSearchHits>) {
  const groups = useMemo(() => groupHits(answer.data?.hits ?? []), [answer.data]);
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const [active, setActive] = useState<string | null>(null);
  const [explained, setExplained] = useState<string | null>(null);
  const shown = useMemo(() => shownHits(groups, unfolded), [groups, unfolded]);
  const move = (by: number): void => {
    const at = shown.findIndex(({ span_id }) => span_id === active);
    const next = shown[Math.min(shown.length - 1, Math.max(0, at + by))];
    if (next === undefined) return;
    setActive(next.span_id);
    document.getElementById(hitElementId(next.span_id))?.focus();
  };
  const explain = (span_id: string): void => {
    setExplained((now) => (now === span_id ? null : span_id));
  };
  const fold = (trace_id: string): void => {
    setUnfolded((now) => toggledIn(now, trace_id));
  };
  const current = shown.find(({ span_id }) => span_id === active);
  const hrefOf = (hit: SnippetHit): string => spanHref(org_id, hit, state.q);
  return { groups, unfolded, active, setActive, explained, move, explain, fold, current, hrefOf };
}

function useSearchKeys(field: RefObject<HTMLInputElement | null>, hits: ReturnType<typeof useHits>): void {
  const [, navigate] = useLocation();
  const { current, move } = hits;
  useKeys('Search', [
    {
      keys: '/',
      label: 'Search',
      run: () => {
        field.current?.focus();
        field.current?.select();
      },
    },
    {
      keys: ['j', 'ArrowDown'],
      label: 'Next hit',
      silent: true,
      run: () => {
        move(1);
      },
    },
    {
      keys: ['k', 'ArrowUp'],
      label: 'Previous hit',
      silent: true,
      run: () => {
        move(-1);
      },
    },
    {
      keys: 'Enter',
      label: 'Open the span',
      silent: true,
      run: () => {
        if (current !== undefined) navigate(hits.hrefOf(current));
      },
    },
    {
      keys: 'i',
      label: 'Explain the rank of the hit',
      silent: true,
      run: () => {
        if (current !== undefined) hits.explain(current.span_id);
      },
    },
  ]);
}

/** Returns the function that opens the best hit for what is typed, as soon as that is known. */
function useOpenBest(hits: ReturnType<typeof useHits>, answer: ReturnType<typeof useSearchHits>): () => void {
  const [, navigate] = useLocation();
  const [isAsked, setAsked] = useState(false);
  const isCurrent = !answer.typing && !answer.isFetching && answer.data !== undefined;
  const best = hits.groups[0]?.hits[0];
  const open = useEffectEvent(() => {
    if (best !== undefined) navigate(hits.hrefOf(best));
  });
  useEffect(() => {
    if (isAsked && isCurrent) open();
  }, [isAsked, isCurrent]);
  useEffect(() => {
    // Words that are typed after Enter are another question.
    if (answer.typing) setAsked(false);
  }, [answer.typing]);
  return () => {
    setAsked(true);
  };
}

/** The page. */
export default function SearchScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useSearchState(searchUrl);
  const answer = useSearchHits(org_id, state);
  const field = useRef<HTMLInputElement>(null);
  const hits = useHits(org_id, state, answer);
  const openBest = useOpenBest(hits, answer);
  usePageRequest(`/v1/spans/search?${new URLSearchParams({ ...answer.query, snippets: 'true' })}`);
  useSearchKeys(field, hits);
  const fieldError =
    answer.error instanceof RequestError && answer.error.status === 422 ? refusalWords(answer.error.detail) : null;
  return (
    <div className={styles.screen}>
      <SearchField
        state={state}
        onChange={change}
        field={field}
        error={fieldError}
        onDown={() => {
          hits.move(1);
        }}
        onEnter={openBest}
      />
      <div className={styles.content}>
        <div className={styles.main}>
          <SearchResults
            answer={answer}
            state={state}
            groups={hits.groups}
            unfolded={hits.unfolded}
            active={hits.active}
            explained={hits.explained}
            hrefOf={hits.hrefOf}
            onActive={hits.setActive}
            onExplain={hits.explain}
            onFold={hits.fold}
            onChange={change}
          />
        </div>
        {hits.groups.length > 0 && <SearchFacets hits={answer.data?.hits ?? []} state={state} onChange={change} />}
      </div>
    </div>
  );
}

/** Returns why the API refused a search; it names the parameter, which people see as the search itself. */
const refusalWords = (detail: string): string => detail.replace(/^q: /, 'The search ');

/** Returns the address of a hit: its trace with the span selected and the words found. */
function spanHref(org_id: string, { trace_id, span_id }: SnippetHit, q: string): string {
  const query = new URLSearchParams({ span: span_id, find: q.trim() });
  return `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}?${query}`;
}

function toggledIn(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

interface SearchFieldProps {
  state: SearchState;
  onChange: (patch: Partial<SearchState>, options?: { replace?: boolean }) => void;
  field: RefObject<HTMLInputElement | null>;
  error: string | null;
  /** Called when the arrow key leaves the field for the hits. */
  onDown: () => void;
  /** Called by Enter in the field. */
  onEnter: () => void;
}

function SearchField({ state, onChange, field, error, onDown, onEnter }: SearchFieldProps): ReactElement {
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    if (event.key === 'ArrowDown' || event.key === 'Enter') event.preventDefault();
    if (event.key === 'ArrowDown') onDown();
    if (event.key === 'Enter') onEnter();
    if (event.key === 'Escape') event.currentTarget.blur();
  };
  return (
    <search className={styles.tools}>
      <div className={styles.field}>
        <Icon name="search" />
        <input
          ref={field}
          className={styles.input}
          type="search"
          aria-label="Search prompts and responses"
          aria-keyshortcuts="/"
          aria-invalid={error !== null || undefined}
          aria-describedby={error === null ? undefined : 'search-error'}
          placeholder="Words from a prompt or a response"
          autoFocus
          autoComplete="off"
          spellCheck={false}
          value={state.q}
          onChange={(event) => {
            onChange({ q: event.currentTarget.value }, { replace: true });
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <TimeMenu
        time={timeOf(state)}
        onChange={(time) => {
          if ('last' in time) onChange({ t: time.last, since: null, until: null });
          else onChange(time);
        }}
      />
      {error !== null && (
        <p id="search-error" role="alert" className={styles.error}>
          {error}
        </p>
      )}
    </search>
  );
}
