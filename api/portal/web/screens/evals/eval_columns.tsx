// The columns of the list of evals.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { count, exact, percent } from '../../text/format.ts';
import type { Column } from '../../ui/data_table.tsx';
import { Moment } from '../../ui/moment.tsx';
import { VerdictBar } from '../judges/verdicts.tsx';
import lists from '../sessions/sessions.module.css';
import { type Eval, subjectWords } from './eval_data.ts';

interface EvalColumns {
  narrow: boolean;
  hrefOf: (id: string) => string;
  /** Names of judges by id. */
  names: ReadonlyMap<string, string>;
  /** Names of datasets by id. */
  datasets: ReadonlyMap<string, string>;
  chosen: ReadonlySet<string>;
  onTick: (eval_id: string) => void;
}

/** Returns a mean score with three decimals. */
export const meanText = (mean: number | null | undefined): string =>
  exact(mean == null ? mean : Math.round(mean * 1000) / 1000);

/** Returns the state of an eval in words: how far it is, or how it ended. */
export function stateWords({ status, progress }: Eval): string {
  if (status !== 'running') return status;
  return `${percent(progress.total === 0 ? 0 : progress.done / progress.total)} of ${count(progress.total)}`;
}

/** Returns the columns. */
export function evalColumns({ narrow, hrefOf, names, datasets, chosen, onTick }: EvalColumns): Column<Eval>[] {
  const nameOf = ({ judge_id }: Eval): string => names.get(judge_id) ?? judge_id;
  const name = (one: Eval): ReactElement => (
    <Link href={hrefOf(one.eval_id)} className={lists.name} tabIndex={-1} title={one.eval_id}>
      {nameOf(one)} <span className={lists.quiet}>v{one.judge_version}</span>
    </Link>
  );
  const tick = (one: Eval): ReactElement => (
    <input
      type="checkbox"
      tabIndex={-1}
      aria-label={`Tick the eval of ${nameOf(one)} for a comparison (x)`}
      checked={chosen.has(one.eval_id)}
      onChange={() => {
        onTick(one.eval_id);
      }}
    />
  );
  const marks: Column<Eval> = {
    id: 'tick',
    head: <span className="visually-hidden">Ticked</span>,
    width: '32px',
    cell: tick,
  };
  if (narrow)
    return [
      marks,
      {
        id: 'lines',
        head: 'Eval',
        width: 'minmax(0, 1fr)',
        cell: (one) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{name(one)}</span>
              {meanText(one.stats?.mean_score)}
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{stateWords(one)}</span>
              <Moment at={one.started_at} form="ago" />
            </span>
          </span>
        ),
      },
    ];
  return [
    marks,
    { id: 'judge', head: 'Judge', width: 'minmax(160px, 2fr)', cell: name },
    { id: 'subject', head: 'Judged', width: 'minmax(140px, 3fr)', cell: (one) => subjectWords(one, datasets) },
    { id: 'state', head: 'State', width: '96px', cell: stateWords },
    { id: 'traces', head: 'Items', width: '72px', align: 'end', cell: ({ queued_traces }) => count(queued_traces) },
    { id: 'mean', head: 'Mean', width: '72px', align: 'end', cell: ({ stats }) => meanText(stats?.mean_score) },
    {
      id: 'bar',
      head: 'Verdicts',
      width: '112px',
      cell: ({ stats }) => (stats === null ? null : <VerdictBar counts={stats} />),
    },
    { id: 'started', head: 'Started', width: '112px', cell: ({ started_at }) => <Moment at={started_at} /> },
  ];
}
