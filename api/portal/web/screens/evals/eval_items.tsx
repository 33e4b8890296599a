// The distribution of the scores of an eval, and its items as they stream; a row opens the item.
import { type ReactElement, useMemo } from 'react';
import { useOrganization } from '../../client/session.ts';
import { Chart } from '../../charts/chart.tsx';
import { ListTable } from '../../lists/list_table.tsx';
import type { Verdict } from '../../lists/marks.tsx';
import { count, exact } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { codec, optionalChoice, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { TRACES_MAX } from '../datasets/read_sources.ts';
import { QueueButton } from '../annotate/queue_button.tsx';
import { ToDatasetButton } from '../datasets/to_dataset_button.tsx';
import styles from '../judges/judges.module.css';
import { VerdictMark, VERDICTS_WORST_FIRST } from '../judges/verdicts.tsx';
import lists from '../sessions/sessions.module.css';
import { binsOf } from './bins.ts';
import type { Eval } from './eval_data.ts';
import { ItemView } from './item_view.tsx';
import { LINES_MAX, type ScoreLine } from './score_stream.ts';
import { useScores } from './use_scores.ts';

const CODEC = codec({ verdict: optionalChoice(['pass', 'warn', 'fail', 'error']), item: text() });
/** The scores of a running eval are read again with its progress if it is no larger than this. */
const REREAD_MAX = 2000;

/** The identity of a line within its eval. */
const keyOf = ({ item_index, trace_id }: ScoreLine): string =>
  item_index === undefined ? trace_id : String(item_index);

/** The panel. */
export function EvalItems({ one }: { one: Eval }): ReactElement {
  const { org_id } = useOrganization();
  const [{ verdict, item }, change] = useSearchState(CODEC);
  const renewed = `${one.status} ${one.queued_traces <= REREAD_MAX ? one.progress.done : ''}`;
  const { lines, state, error } = useScores(org_id, one.eval_id, '', renewed);
  const shown = useMemo(
    () => (verdict === null ? lines : lines.filter((line) => line.verdict === verdict)),
    [lines, verdict],
  );
  // A dataset takes so many traces at a time; the button is for those of stored traces that failed.
  const failed = useMemo(
    () =>
      one.dataset_id === undefined
        ? lines
            .filter((line) => line.verdict === 'fail')
            .slice(0, TRACES_MAX)
            .map(({ trace_id }) => trace_id)
        : [],
    [lines, one.dataset_id],
  );
  const open = item === '' ? undefined : lines.find((line) => keyOf(line) === item);
  const toggle = (which: Verdict): void => {
    change({ verdict: verdict === which ? null : which });
  };
  return (
    <>
      <Distribution lines={lines} />
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {wordsOf(shown.length, state)}
        </span>
        {VERDICTS_WORST_FIRST.map((which) => (
          <Chip
            key={which}
            pressed={verdict === which}
            onToggle={() => {
              toggle(which);
            }}
          >
            {which}
          </Chip>
        ))}
        {failed.length > 0 && <Failed trace_ids={failed} />}
      </div>
      {error !== null && <ErrorPanel error={error} what="the scores" />}
      <ListTable
        label="Judged items"
        noun="item"
        address={`${one.eval_id} ${verdict ?? ''}`}
        rows={shown}
        rowKey={keyOf}
        columns={(narrow) => (narrow ? NARROW : COLUMNS)}
        onOpen={(line) => {
          change({ item: keyOf(line) });
        }}
      />
      {open !== undefined && (
        <ItemView
          line={open}
          dataset_id={one.dataset_id}
          onClose={() => {
            change({ item: '' });
          }}
        />
      )}
    </>
  );
}

function wordsOf(shown: number, state: 'reading' | 'done' | 'cut'): string {
  const items = `${count(shown)} ${shown === 1 ? 'item' : 'items'}`;
  if (state === 'reading') return `Reading the scores: ${items}`;
  return state === 'cut' ? `${items} of the first ${count(LINES_MAX)}` : items;
}

function Distribution({ lines }: { lines: readonly ScoreLine[] }): ReactElement | null {
  const { points, values } = useMemo(() => binsOf(lines.flatMap(({ score }) => score ?? [])), [lines]);
  if (points.length === 0) return null;
  const most = points[values.indexOf(Math.max(...values))];
  return (
    <div className={styles.head}>
      <Chart
        name="Items by score"
        summary={`${count(values.reduce((sum, value) => sum + value, 0))} scores, most at ${most ?? ''}.`}
        axis="Score"
        points={points}
        series={[{ id: 'items', label: 'Items', values, colour: 'series-1', form: 'bar' }]}
        height={120}
        format={count}
      />
    </div>
  );
}

const nameOf = ({ item_index, trace_id }: ScoreLine): string =>
  item_index === undefined ? trace_id : `Item ${item_index}`;

const COLUMNS: readonly Column<ScoreLine>[] = [
  { id: 'verdict', head: 'Verdict', width: '112px', cell: ({ verdict }) => <VerdictMark verdict={verdict} /> },
  { id: 'score', head: 'Score', width: '72px', align: 'end', cell: ({ score }) => exact(score) },
  { id: 'item', head: 'Item', width: 'minmax(160px, 1fr)', cell: nameOf },
  { id: 'reason', head: 'Reason', width: 'minmax(200px, 3fr)', cell: ({ reason }) => reason.slice(0, 200) },
];

const NARROW: readonly Column<ScoreLine>[] = [
  {
    id: 'lines',
    head: 'Item',
    width: 'minmax(0, 1fr)',
    cell: (line) => (
      <span className={lists.lines}>
        <span className={lists.line}>
          <span className={lists.grow}>{nameOf(line)}</span>
          <VerdictMark verdict={line.verdict} />
        </span>
        <span className={lists.second}>{line.reason.slice(0, 120)}</span>
      </span>
    ),
  },
];

/** Buttons that put the failed traces into a dataset or an annotation queue. */
function Failed({ trace_ids }: { trace_ids: string[] }): ReactElement {
  return (
    <>
      <ToDatasetButton targets={() => ({ trace_ids })} />
      <QueueButton trace_ids={trace_ids} />
    </>
  );
}
