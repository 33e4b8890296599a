// The list of evals: progress, mean score and verdicts of each. Two that are ticked can be compared.
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { codec, flag, list, optionalChoice, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { evalColumns } from './eval_columns.tsx';
import { type Eval, pollWhile, useDatasetNames, useJudges, useLiveEvals } from './eval_data.ts';
import { NewEvalDialog } from './new_eval_dialog.tsx';

const STATUSES = ['running', 'complete', 'failed', 'cancelled'] as const;
const CODEC = codec({
  judge_id: text(),
  dataset_id: text(),
  status: optionalChoice(STATUSES),
  new: flag(),
  trace_ids: list(),
});

function useEvals(org_id: string, query: Record<string, string>) {
  const pages = useInfiniteQuery({
    queryKey: [org_id, '/v1/evals', query],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, '/v1/evals', { query: { ...query, limit: 50, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: ({ meta }) => (meta.has_more ? meta.page * meta.per_page : null),
    refetchInterval: ({ state }) => pollWhile(state.data?.pages.flatMap(({ data }) => data) ?? []),
    placeholderData: keepPreviousData,
  });
  const rows = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  return { pages, rows, total: pages.data?.pages[0]?.meta.total };
}

/** Returns the two evals of a choice if they can be compared, or why they cannot. */
function comparisonOf(rows: readonly Eval[], chosen: ReadonlySet<string>): [Eval, Eval] | string {
  const [newer, older, more] = rows.filter(({ eval_id }) => chosen.has(eval_id));
  if (older === undefined || newer === undefined || more !== undefined) return 'Choose two evals to compare.';
  if (older.judge_id !== newer.judge_id) return 'The two evals have different judges.';
  if (older.dataset_id !== newer.dataset_id) return 'The two evals judge different datasets.';
  return [older, newer];
}

/** The page. */
export default function EvalsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const { judge_id, dataset_id, status } = state;
  const query = Object.fromEntries(
    Object.entries({ judge_id, dataset_id, status: status ?? '' }).filter(([, value]) => value !== ''),
  );
  const { pages, rows, total } = useEvals(org_id, query);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [, navigate] = useLocation();
  const base = `/o/${encodeURIComponent(org_id)}/evals`;
  const pair = comparisonOf(rows, chosen);
  const compare = (): void => {
    if (typeof pair === 'string') return;
    navigate(`${base}/compare/${encodeURIComponent(pair[0].eval_id)}/${encodeURIComponent(pair[1].eval_id)}`);
  };
  const open = (): void => {
    change({ new: true });
  };
  useLiveEvals(org_id);
  usePageRequest(`/v1/evals?${new URLSearchParams(query)}`);
  const mayRun = can('judges:run');
  useKeys('Evals', [
    { keys: 'c', label: 'Compare the two ticked evals', run: compare },
    ...(mayRun ? [{ keys: 'n', label: 'Run an eval', run: open }] : []),
  ]);
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {chosen.size > 0 && typeof pair === 'string' ? pair : countWords(total)}
        </span>
        <Filters state={state} onChange={change} />
        <Button icon="compare" keys="c" disabled={typeof pair === 'string'} onClick={compare}>
          Compare
        </Button>
        {mayRun && (
          <Button look="primary" icon="plus" keys="n" onClick={open}>
            Run eval
          </Button>
        )}
      </div>
      {pages.error !== null && total === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the evals" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 && !pages.isPlaceholderData ? (
        <div className={lists.state}>
          <NoEvals base={base} filtered={Object.keys(query).length > 0} />
        </div>
      ) : (
        <EvalTable base={base} rows={rows} pages={pages} total={total} chosen={chosen} onChosen={setChosen} />
      )}
      {state.new && mayRun && (
        <NewEvalDialog
          judge_id={judge_id}
          trace_ids={state.trace_ids}
          dataset_id={dataset_id}
          onClose={() => {
            change({ new: false, trace_ids: [] });
          }}
        />
      )}
    </div>
  );
}

type State = ReturnType<typeof CODEC.parse>;

/** The filters of the list. */
function Filters({
  state: { status, judge_id, dataset_id },
  onChange,
}: {
  state: State;
  onChange: (patch: Partial<State>) => void;
}): ReactElement {
  return (
    <>
      {STATUSES.map((one) => (
        <Chip
          key={one}
          pressed={status === one}
          onToggle={() => {
            onChange({ status: status === one ? null : one });
          }}
        >
          {one}
        </Chip>
      ))}
      {judge_id !== '' && (
        <Removable
          field="Judge"
          value={judge_id}
          onRemove={() => {
            onChange({ judge_id: '' });
          }}
        />
      )}
      {dataset_id !== '' && (
        <Removable
          field="Dataset"
          value={dataset_id}
          onRemove={() => {
            onChange({ dataset_id: '' });
          }}
        />
      )}
    </>
  );
}

function NoEvals({ base, filtered }: { base: string; filtered: boolean }): ReactElement {
  return (
    <EmptyState
      title={filtered ? 'No eval matches these filters' : 'No evals'}
      action={filtered ? <Link href={base}>Show all evals</Link> : undefined}
    >
      An eval runs one judge over stored traces or over the answers of a model to a dataset, so that two versions can be
      compared.
    </EmptyState>
  );
}

const countWords = (total: number | undefined): string =>
  total === undefined ? '' : `${count(total)} ${total === 1 ? 'eval' : 'evals'}`;

function Removable({ field, value, onRemove }: { field: string; value: string; onRemove: () => void }): ReactElement {
  return (
    <Chip field={field} onRemove={onRemove} removeLabel={`Remove the filter ${field}`}>
      {value}
    </Chip>
  );
}

interface EvalTableProps {
  base: string;
  rows: readonly Eval[];
  pages: ReturnType<typeof useEvals>['pages'];
  total: number | undefined;
  chosen: ReadonlySet<string>;
  onChosen: (chosen: ReadonlySet<string>) => void;
}

const evalIdOf = ({ eval_id }: Eval): string => eval_id;

function EvalTable({ base, rows, pages, total, chosen, onChosen }: EvalTableProps): ReactElement {
  const { org_id } = useOrganization();
  const judges = useJudges(org_id);
  const datasets = useDatasetNames();
  const names = useMemo(() => new Map(judges.map(({ judge_id, name }) => [judge_id, name])), [judges]);
  const hrefOf = (id: string): string => `${base}/${encodeURIComponent(id)}`;
  const tick = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChosen(next);
  };
  return (
    <ListTable
      label="Evals"
      noun="eval"
      address="evals"
      rows={rows}
      rowKey={evalIdOf}
      columns={(narrow) => evalColumns({ narrow, hrefOf, names, datasets, chosen, onTick: tick })}
      hrefOf={({ eval_id }) => hrefOf(eval_id)}
      keys={(active) => [
        {
          keys: 'x',
          label: 'Tick the eval',
          silent: true,
          run: () => {
            if (active !== undefined) tick(active.eval_id);
          },
        },
      ]}
      pages={pages}
      total={total}
      marked={chosen}
      loading={pages.isPending}
    />
  );
}
