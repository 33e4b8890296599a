// The rows of a comparison. Those in sight are mounted; a screen reader hears which lines were
// removed and which were added.
import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactElement, type ReactNode, useMemo, useRef, useState } from 'react';
import { count } from '../text/format.ts';
import { oneLine } from '../trace/text/one_line.ts';
import { Icon } from '../ui/icons.tsx';
import styles from './diff.module.css';
import type { Diff, DiffLine, DiffPart, DiffRow } from './shape.ts';
import type { Columns } from './use_diff.ts';
import { foldRows, inOneColumn } from './view_rows.ts';

const ROW_PX = 20;
/** Fewer rows are shown whole, without a window of their own. */
const WHOLE_ROWS_MAX = 60;

interface DiffRowsProps {
  diff: Diff;
  columns: Columns;
  title: string;
  sides: readonly [left: string, right: string];
  showsAll: boolean;
}

export function DiffRows({ diff, columns, title, sides, showsAll }: DiffRowsProps): ReactElement {
  const scroller = useRef<HTMLDivElement>(null);
  const [unfolded, setUnfolded] = useState<{ of: unknown; rows: ReadonlySet<number> }>({ of: null, rows: new Set() });
  const rows = useMemo(() => (columns === 'two' ? diff.rows : inOneColumn(diff.rows)), [diff, columns]);
  const opened = useMemo(() => (unfolded.of === rows ? unfolded.rows : new Set<number>()), [unfolded, rows]);
  const shown = useMemo(() => foldRows(rows, showsAll ? null : opened), [rows, opened, showsAll]);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  const rowOf = (index: number): ReactElement | null => {
    const item = shown[index];
    if (item === undefined) return null;
    if ('at' in item) {
      const row = rows[item.at];
      return row === undefined ? null : columns === 'two' ? <TwoSides row={row} /> : <OneSide row={row} />;
    }
    const { from, to } = item;
    return (
      <button
        type="button"
        className={styles.fold}
        onClick={() => {
          setUnfolded({ of: rows, rows: new Set([...opened, from]) });
        }}
      >
        <Icon name="unfold" size={12} />
        {count(to - from)} equal lines
      </button>
    );
  };
  const isWhole = shown.length <= WHOLE_ROWS_MAX;
  return (
    <div className={styles.box} data-columns={columns}>
      <div className={styles.sides}>
        <span>{sides[0]}</span>
        <span>{sides[1]}</span>
      </div>
      <div
        ref={scroller}
        role="region"
        aria-label={`${title}: ${sides[0]} and ${sides[1]}`}
        tabIndex={0}
        className={styles.scroll}
      >
        {isWhole ? (
          shown.map((_, index) => <div key={index}>{rowOf(index)}</div>)
        ) : (
          <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
            {virtual.getVirtualItems().map(({ index, start, key }) => (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className={styles.placed}
                style={{ transform: `translateY(${start}px)` }}
              >
                {rowOf(index)}
              </div>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}

function TwoSides({ row: { kind, left, right } }: { row: DiffRow }): ReactElement {
  return (
    <div className={styles.row}>
      <Side line={left} side={kind === 'same' ? 'same' : 'left'} />
      <Side line={right} side={kind === 'same' ? 'same' : 'right'} />
    </div>
  );
}

function OneSide({ row: { kind, left, right } }: { row: DiffRow }): ReactElement {
  const side = kind === 'same' ? 'same' : right === null ? 'left' : 'right';
  return (
    <div className={styles.row}>
      <Side line={left ?? right} side={side} />
    </div>
  );
}

type SideName = 'same' | 'left' | 'right';
const SIGNS: Record<SideName, string> = { same: ' ', left: '−', right: '+' };
const WORDS: Record<SideName, string> = { same: '', left: 'removed: ', right: 'added: ' };

function Side({ line, side }: { line: DiffLine | null; side: SideName }): ReactElement {
  if (line === null) return <div className={styles.side} data-side="none" />;
  return (
    <div className={styles.side} data-side={side}>
      <span className={styles.number}>{line.number === 0 ? '' : line.number}</span>
      <span className={styles.sign} aria-hidden="true">
        {line.number === 0 ? ' ' : SIGNS[side]}
      </span>
      <span className={styles.text} dir="auto">
        {side !== 'same' && <span className="visually-hidden">{WORDS[side]}</span>}
        {line.parts.map((part, index) => (
          <Part key={index} part={part} side={side} isWhole={line.parts.length === 1} />
        ))}
      </span>
    </div>
  );
}

/** A part of a line; a changed one shows also the characters that nobody sees. */
function Part({ part, side, isWhole }: { part: DiffPart; side: SideName; isWhole: boolean }): ReactNode {
  if (!part.changed || side === 'same') return part.text;
  const text = part.text.trim() === '' ? oneLine(part.text) : part.text.split('\t').map(oneLine).join('\t');
  if (isWhole) return text;
  return side === 'left' ? <del>{text}</del> : <ins>{text}</ins>;
}
