// The aligned spans of both traces in one table: what became of each, both durations, and both bars on
// one scale. Unchanged stretches are folded.
import { type CSSProperties, type ReactElement, useMemo } from 'react';
import { useNarrow } from '../../lists/use_narrow.ts';
import { count, duration } from '../../text/format.ts';
import { type Column, DataTable } from '../../ui/data_table.tsx';
import { Icon } from '../../ui/icons.tsx';
import { KindMark, OutcomeMark } from '../../ui/marks.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import type { Alignment } from '../../trace/compare/align.ts';
import { type RowState, type ShownRow, stateOf } from '../../trace/compare/compared_rows.ts';
import { changeNames } from '../../trace/compare/span_changes.ts';
import { kindOf, nameOf, outcomeOf, type Tree } from '../../trace/model/tree.ts';
import styles from './compare.module.css';

export interface Trees {
  left: Tree;
  right: Tree;
}

interface AlignedRowsProps {
  alignment: Alignment;
  trees: Trees;
  rows: readonly ShownRow[];
  /** Row of the alignment that is open; -1 for none. */
  open: number;
  onMove: (row: ShownRow) => void;
  onOpen: (row: ShownRow) => void;
}

export const STATE_WORDS: Readonly<Record<RowState, string>> = {
  same: 'unchanged',
  changed: 'changed',
  left: 'only in the baseline',
  right: 'only in the candidate',
};
const SIGNS: Readonly<Record<RowState, string>> = { same: '', changed: '≠', left: '−', right: '+' };
const INDENT_PX = 12;
const INDENT_MAX = 12;

export const firstOf = (row: ShownRow): number => ('row' in row ? row.row : row.from);

export function AlignedRows({ alignment, trees, rows, open, onMove, onOpen }: AlignedRowsProps): ReactElement {
  const narrow = useNarrow();
  const columns = useMemo(() => columnsOf(alignment, trees, narrow), [alignment, trees, narrow]);
  const cursor = useMemo(() => rows.findIndex((row) => firstOf(row) === open), [rows, open]);
  return (
    <DataTable
      label="Aligned spans"
      columns={columns}
      rows={rows}
      rowKey={(row) => String(firstOf(row))}
      cursor={cursor}
      onCursor={(index) => {
        const row = rows[index];
        if (row !== undefined) onMove(row);
      }}
      onOpen={onOpen}
    />
  );
}

function columnsOf(alignment: Alignment, trees: Trees, narrow: boolean): Column<ShownRow>[] {
  const cell = (show: (row: number) => ReactElement | string) => (row: ShownRow) => ('row' in row ? show(row.row) : '');
  const durations = (row: number): [number | null, number | null] => [
    durationOf(trees.left, alignment.left[row] ?? -1),
    durationOf(trees.right, alignment.right[row] ?? -1),
  ];
  const name: Column<ShownRow> = {
    id: 'name',
    head: 'Span',
    width: 'minmax(180px, 4fr)',
    cell: (row) =>
      'row' in row ? (
        <SpanName alignment={alignment} trees={trees} row={row.row} />
      ) : (
        <span className={styles.folded} style={indent(alignment.depth[row.from] ?? 0)}>
          <Icon name="unfold" size={12} />
          {count(row.to - row.from)} unchanged {row.to - row.from === 1 ? 'span' : 'spans'}
        </span>
      ),
  };
  const change: Column<ShownRow> = {
    id: 'change',
    head: 'Change',
    width: '76px',
    align: 'end',
    cell: cell((row) => changeOf(...durations(row))),
  };
  if (narrow) return [name, change];
  return [
    name,
    {
      id: 'what',
      head: 'Changed',
      width: 'minmax(96px, 2fr)',
      cell: cell((row) => <Changed names={changeNames(alignment.changes[row] ?? 0)} />),
    },
    {
      id: 'left',
      head: 'Baseline',
      width: '80px',
      align: 'end',
      cell: cell((row) => shownDuration(durations(row)[0])),
    },
    {
      id: 'right',
      head: 'Candidate',
      width: '80px',
      align: 'end',
      cell: cell((row) => shownDuration(durations(row)[1])),
    },
    change,
    {
      id: 'bars',
      head: 'Time',
      width: 'minmax(96px, 3fr)',
      cell: cell((row) => <Bars alignment={alignment} trees={trees} row={row} />),
    },
  ];
}

/** The fields of a pair that differ; a name that does not fit ends in dots. */
function Changed({ names }: { names: readonly string[] }): ReactElement {
  return <Name>{names.join(', ')}</Name>;
}

const indent = (depth: number): CSSProperties => ({ paddingInlineStart: Math.min(depth, INDENT_MAX) * INDENT_PX });

const durationOf = (tree: Tree, span: number): number | null =>
  span < 0 ? null : (tree.end[span] ?? 0) - (tree.start[span] ?? 0);
const shownDuration = (ms: number | null): string => (ms === null ? '' : duration(ms));

/** Writes the change of a duration with its sign; nothing where there is none. */
function changeOf(left: number | null, right: number | null): string {
  if (left === null || right === null || left === right) return '';
  return `${right > left ? '+' : '−'}${duration(Math.abs(right - left))}`;
}

function SpanName({ alignment, trees, row }: { alignment: Alignment; trees: Trees; row: number }): ReactElement {
  const state = stateOf(alignment, row);
  const [a, b] = [alignment.left[row] ?? -1, alignment.right[row] ?? -1];
  const [tree, span] = a >= 0 ? [trees.left, a] : [trees.right, b];
  const outcome = b >= 0 ? outcomeOf(trees.right, b) : outcomeOf(trees.left, a);
  const name = shownName(nameOf(tree, span));
  const other = b >= 0 ? shownName(nameOf(trees.right, b)) : name;
  return (
    <span className={styles.span} style={indent(alignment.depth[row] ?? 0)} data-state={state}>
      <span className={styles.sign} aria-hidden="true">
        {SIGNS[state]}
      </span>
      <span className="visually-hidden">{STATE_WORDS[state]}</span>
      <KindMark kind={kindOf(tree, span)} />
      <Name>{name}</Name>
      {other !== name && (
        <>
          → <Name>{other}</Name>
        </>
      )}
      {outcome !== 'success' && <OutcomeMark outcome={outcome} />}
    </span>
  );
}

/** Both bars of a row. Both traces begin at the same place, and the longer one fills the cell. */
function Bars({ alignment, trees, row }: { alignment: Alignment; trees: Trees; row: number }): ReactElement {
  const whole = Math.max(1, trees.left.to - trees.left.from, trees.right.to - trees.right.from);
  const bar = (tree: Tree, span: number): CSSProperties | undefined =>
    span < 0
      ? undefined
      : {
          insetInlineStart: `${(100 * ((tree.start[span] ?? 0) - tree.from)) / whole}%`,
          inlineSize: `max(2px, ${(100 * (durationOf(tree, span) ?? 0)) / whole}%)`,
        };
  const [left, right] = [bar(trees.left, alignment.left[row] ?? -1), bar(trees.right, alignment.right[row] ?? -1)];
  return (
    <span className={styles.bars} aria-hidden="true">
      {left !== undefined && <span className={styles.bar} data-side="left" style={left} />}
      {right !== undefined && <span className={styles.bar} data-side="right" style={right} />}
    </span>
  );
}
