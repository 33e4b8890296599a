// Two evals of a judge: the difference of their means with its interval, what improved and what
// regressed, and each item with both answers and both reasons.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { count, exact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { choice, codec, optionalChoice, text } from '../../url/search_params.ts';
import { changeSearch, useSearchState } from '../../url/use_search_state.ts';
import styles from '../judges/judges.module.css';
import { VerdictBar, VerdictMark } from '../judges/verdicts.tsx';
import lists from '../sessions/sessions.module.css';
import { ComparedItemView } from './compared_item.tsx';
import { differenceWords } from './difference_words.ts';
import { meanText } from './eval_columns.tsx';
import type { ComparedItem, Comparison } from './eval_data.ts';

const CHANGES = ['improved', 'regressed', 'unchanged', 'incomparable'] as const;
const CODEC = codec({
  change: optionalChoice(CHANGES),
  sort: choice(['delta', 'item'], 'delta'),
  item: text(),
});
const PAGE = 100;

/** The identity of an item within its comparison. */
const keyOf = ({ item_index, trace_id }: ComparedItem): string =>
  item_index === undefined ? (trace_id ?? '') : String(item_index);

interface ComparisonQuery {
  baseline: string;
  candidate: string;
  sort: 'delta' | 'item';
  change?: string;
}

function useComparison(org_id: string, query: ComparisonQuery) {
  const pages = useInfiniteQuery({
    queryKey: [org_id, '/v1/evals/compare', query],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, '/v1/evals/compare', { query: { ...query, limit: PAGE, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
    placeholderData: (before) => before,
  });
  const items = useMemo(() => pages.data?.pages.flatMap(({ data }) => data.items) ?? [], [pages.data]);
  return { pages, items, first: pages.data?.pages[0] };
}

/** The page. */
export default function CompareEvalsScreen(): ReactElement {
  const { org_id } = useOrganization();
  const param = useRouteParams();
  const [baseline, candidate] = [param('a'), param('b')];
  const [{ change: chosen, sort, item }, change] = useSearchState(CODEC);
  const query = { baseline, candidate, sort, ...(chosen === null ? {} : { change: chosen }) };
  const { pages, items, first } = useComparison(org_id, query);
  usePageRequest(`/v1/evals/compare?${new URLSearchParams(query)}`);
  if (first === undefined)
    return (
      <div className={lists.page}>
        {pages.error === null ? (
          <Skeleton rows={8} height={20} />
        ) : (
          <ErrorPanel error={pages.error} what="the comparison" onRetry={() => void pages.refetch()} />
        )}
      </div>
    );
  const open = item === '' ? undefined : items.find((one) => keyOf(one) === item);
  return (
    <div className={lists.screen}>
      <Head comparison={first.data} />
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {`${count(first.meta.total)} ${first.meta.total === 1 ? 'item' : 'items'}`}
        </span>
        {CHANGES.map((one) => (
          <Chip
            key={one}
            pressed={chosen === one}
            onToggle={() => {
              change({ change: chosen === one ? null : one });
            }}
          >
            {`${one} ${count(first.data[one])}`}
          </Chip>
        ))}
      </div>
      <ListTable
        label="Compared items"
        noun="item"
        address={`compare ${sort}`}
        rows={items}
        rowKey={keyOf}
        columns={(narrow) =>
          narrow
            ? NARROW
            : columnsOf(sort, (next) => {
                change({ sort: next });
              })
        }
        onOpen={(one) => {
          change({ item: keyOf(one) });
        }}
        pages={pages}
      />
      {open !== undefined && (
        <ComparedItemView
          item={open}
          dataset_id={first.data.candidate.dataset_id}
          onClose={() => {
            change({ item: '' });
          }}
        />
      )}
    </div>
  );
}

function Head({ comparison }: { comparison: Comparison }): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const { baseline, candidate, difference } = comparison;
  const base = `/o/${encodeURIComponent(org_id)}/evals`;
  const swap = (): void => {
    navigate(`${base}/compare/${encodeURIComponent(candidate.eval_id)}/${encodeURIComponent(baseline.eval_id)}`);
    changeSearch('', true);
  };
  useKeys('Comparison', [{ keys: 's', label: 'Swap the two evals', run: swap }]);
  return (
    <div className={styles.head}>
      <div className={styles.line}>
        <p className={styles.big} role="status">
          {differenceWords(difference)}
        </p>
        <Button icon="swap" keys="s" onClick={swap}>
          Swap
        </Button>
      </div>
      <div className={styles.fields}>
        {(
          [
            ['Baseline', baseline],
            ['Candidate', candidate],
          ] as const
        ).map(([label, side]) => (
          <section key={label} className={styles.stack} aria-label={label}>
            <span>
              {label}: <Link href={`${base}/${encodeURIComponent(side.eval_id)}`}>{side.eval_id}</Link>
            </span>
            <span>
              <span className={styles.quiet}>
                {[side.prompt_version, side.model].filter((part) => part != null).join(' · ') || 'Stored traces'}
              </span>{' '}
              mean {meanText(side.stats?.mean_score)}
            </span>
            {side.stats === null ? <span>{side.status}</span> : <VerdictBar counts={side.stats} />}
          </section>
        ))}
      </div>
    </div>
  );
}

const nameOf = ({ item_index, trace_id }: ComparedItem): string =>
  item_index === undefined ? (trace_id ?? '') : `Item ${item_index}`;
/** Returns the change of the score with its sign. */
const deltaText = (delta: number | null): string => (delta === null ? '–' : `${delta > 0 ? '+' : ''}${exact(delta)}`);

function columnsOf(sort: 'delta' | 'item', onSort: (sort: 'delta' | 'item') => void): Column<ComparedItem>[] {
  const verdict = (one: ComparedItem['baseline_verdict'], score: number | null): ReactElement =>
    one === null ? (
      <span className={styles.quiet}>not judged</span>
    ) : (
      <>
        <VerdictMark verdict={one} /> {exact(score)}
      </>
    );
  return [
    {
      id: 'item',
      head: 'Item',
      width: 'minmax(140px, 1fr)',
      cell: nameOf,
      ...(sort === 'item' ? { sorted: 'ascending' as const } : {}),
      onSort: () => {
        onSort('item');
      },
    },
    {
      id: 'delta',
      head: 'Change',
      width: '96px',
      align: 'end',
      cell: ({ delta }) => deltaText(delta),
      ...(sort === 'delta' ? { sorted: 'descending' as const } : {}),
      onSort: () => {
        onSort('delta');
      },
    },
    {
      id: 'baseline',
      head: 'Baseline',
      width: '128px',
      cell: ({ baseline_verdict, baseline_score }) => verdict(baseline_verdict, baseline_score),
    },
    {
      id: 'candidate',
      head: 'Candidate',
      width: '128px',
      cell: ({ candidate_verdict, candidate_score }) => verdict(candidate_verdict, candidate_score),
    },
    {
      id: 'reason',
      head: 'Reason of the candidate',
      width: 'minmax(200px, 3fr)',
      cell: ({ candidate_reason, baseline_reason }) => (candidate_reason ?? baseline_reason ?? '').slice(0, 200),
    },
  ];
}

const NARROW: readonly Column<ComparedItem>[] = [
  {
    id: 'lines',
    head: 'Item',
    width: 'minmax(0, 1fr)',
    cell: (one) => (
      <span className={lists.lines}>
        <span className={lists.line}>
          <span className={lists.grow}>{nameOf(one)}</span>
          {deltaText(one.delta)}
        </span>
        <span className={lists.second}>{`${one.baseline_verdict ?? '–'} → ${one.candidate_verdict ?? '–'}`}</span>
      </span>
    ),
  },
];
