// One row of the waterfall: a span, or a group of alike siblings.
import { memo, type ReactElement } from 'react';
import { compact, duration, money, NONE } from '../../text/format.ts';
import { Icon } from '../../ui/icons.tsx';
import { KindMark, OutcomeMark } from '../../ui/marks.tsx';
import { KIND_WORDS, Name, shownName } from '../../trace/name.tsx';
import { groupOfRow, isGroupRow } from '../../trace/model/rows.ts';
import { kindOf, modelOf, nameOf, outcomeOf } from '../../trace/model/tree.ts';
import type { TraceModel } from '../../trace/model/trace_model.ts';
import { type Snapshot, spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { NAME_ATTRIBUTE } from './name_tip.tsx';
import { Bars } from './waterfall_bar.tsx';
import styles from './waterfall.module.css';

interface RowProps {
  id: string;
  row: number;
  index: number;
  top: number;
  isSelected: boolean;
  onSelect: () => void;
  onOpen: () => void;
  onFit: () => void;
}

/** Deeper levels are indented no further, so that names keep their room. */
const INDENTED_LEVELS_MAX = 16;

interface Figures {
  duration: number;
  own: number | null;
  tokens: number;
  cost: number;
}

function figuresOf(model: TraceModel, row: number, showsOwn: boolean): Figures {
  const { tree } = model;
  if (isGroupRow(row)) {
    const sums = model.groupSums[groupOfRow(row)];
    if (sums === undefined) return { duration: 0, own: null, tokens: 0, cost: 0 };
    return { duration: sums.busy, own: null, tokens: sums.inputTokens + sums.outputTokens, cost: sums.cost };
  }
  const [input, output, cost] = showsOwn
    ? [tree.inputTokens, tree.outputTokens, tree.cost]
    : [model.inputTokens, model.outputTokens, model.cost];
  return {
    duration: (tree.end[row] ?? 0) - (tree.start[row] ?? 0),
    own: model.own[row] ?? 0,
    tokens: (input[row] ?? 0) + (output[row] ?? 0),
    cost: cost[row] ?? 0,
  };
}

function placeOf({ places, groups }: TraceModel, row: number) {
  if (!isGroupRow(row)) return { level: places.level[row], position: places.position[row], size: places.setSize[row] };
  const group = groupOfRow(row);
  return {
    level: (places.level[groups.first[group] ?? 0] ?? 2) - 1,
    position: places.groupPosition[group],
    size: places.groupSetSize[group],
  };
}

/** Returns whether a row can be folded and whether it is open; undefined for a row without children. */
function openState({ model, folds }: Snapshot, row: number): boolean | undefined {
  if (isGroupRow(row)) return folds.openGroups.has(groupOfRow(row));
  if ((model.tree.subtreeEnd[row] ?? 0) <= row + 1) return undefined;
  return !folds.closedSpans.has(row);
}

export const WaterfallRow = memo(
  function WaterfallRow({ id, row, index, top, isSelected, onSelect, onOpen, onFit }: RowProps): ReactElement {
    const store = useTraceStore();
    const model = useTrace((snapshot) => snapshot.model);
    const isOpen = useTrace((snapshot) => openState(snapshot, row));
    const showsOwn = useTrace((snapshot) => snapshot.showsOwn);
    const isMatch = useTrace(({ matches }) => !isGroupRow(row) && matches.isMatch[row] === 1);
    const isOnPath = useTrace(({ showsPath }) => showsPath && model.path.isOn[spanOfRow(model, row)] === 1);
    const figures = figuresOf(model, row, showsOwn);
    const { level = 1, position, size } = placeOf(model, row);
    return (
      <div
        id={id}
        role="row"
        aria-rowindex={index + 2}
        aria-level={level}
        aria-posinset={position}
        aria-setsize={size}
        aria-expanded={isOpen}
        aria-selected={isSelected}
        className={styles.row}
        data-match={isMatch}
        data-path={isOnPath}
        style={{ transform: `translateY(${top}px)` }}
        onClick={onSelect}
        onDoubleClick={onFit}
      >
        <span role="gridcell" className={styles.nameCell} onClick={onOpen}>
          <span className={styles.indent} style={{ width: `${Math.min(level - 1, INDENTED_LEVELS_MAX) * 14}px` }} />
          <Twisty
            isOpen={isOpen}
            onToggle={() => {
              store.setOpen(row, isOpen !== true);
            }}
          />
          <RowName model={model} row={row} />
        </span>
        <span role="gridcell" className={styles.number}>
          {duration(figures.duration)}
        </span>
        <span role="gridcell" className={styles.ownCell}>
          {figures.own === null ? NONE : duration(figures.own)}
        </span>
        <span role="gridcell" className={styles.tokensCell}>
          {figures.tokens === 0 ? '' : compact(figures.tokens)}
        </span>
        <span role="gridcell" className={styles.costCell}>
          {figures.cost === 0 ? '' : money(figures.cost)}
        </span>
        <span role="gridcell" className={styles.bars}>
          <Bars model={model} row={row} />
        </span>
      </div>
    );
  },
  (a, b) => a.id === b.id && a.row === b.row && a.index === b.index && a.top === b.top && a.isSelected === b.isSelected,
);

function Twisty({ isOpen, onToggle }: { isOpen: boolean | undefined; onToggle: () => void }): ReactElement {
  if (isOpen === undefined) return <span className={styles.twisty} />;
  return (
    <span
      className={styles.twisty}
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation();
        onToggle();
      }}
      onDoubleClick={(event) => {
        event.stopPropagation();
      }}
    >
      <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} size={14} />
    </span>
  );
}

function RowName({ model, row }: { model: TraceModel; row: number }): ReactElement {
  const { tree } = model;
  const span = spanOfRow(model, row);
  const kind = kindOf(tree, span);
  const name = nameOf(tree, span);
  const spanModel = modelOf(tree, span);
  const outcome = outcomeOf(tree, span);
  const members = isGroupRow(row) ? (model.groups.members[groupOfRow(row)] ?? 0) : 0;
  const failed = isGroupRow(row) ? (model.groupSums[groupOfRow(row)]?.failed ?? 0) : 0;
  return (
    <>
      <KindMark kind={kind} silent />
      <span className="visually-hidden">{KIND_WORDS[kind]} </span>
      <span className={styles.name} data-failed={members === 0 && outcome !== 'success'} {...{ [NAME_ATTRIBUTE]: '' }}>
        <Name>{shownName(name)}</Name>
        {members > 0 && <span className={styles.times}> ×{members}</span>}
        {members === 0 && spanModel !== '' && spanModel !== name && <span className={styles.model}> {spanModel}</span>}
      </span>
      {members === 0 && outcome !== 'success' && <OutcomeMark outcome={outcome} />}
      {failed > 0 && <span className={styles.failed}>{failed} failed</span>}
    </>
  );
}
