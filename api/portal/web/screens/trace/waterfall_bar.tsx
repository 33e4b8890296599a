// The bars of one row on the time axis, with their text for assistive technology.
import type { CSSProperties, ReactElement } from 'react';
import { duration } from '../../text/format.ts';
import { shareOf } from '../../trace/model/axis.ts';
import { groupOfRow, isGroupRow } from '../../trace/model/rows.ts';
import type { TraceModel } from '../../trace/model/trace_model.ts';
import { kindOf, outcomeOf } from '../../trace/model/tree.ts';
import { type Snapshot, spanOfRow, useTrace } from '../../trace/store.ts';
import styles from './waterfall.module.css';

/** A group draws at most this many bars of its own; a larger one is drawn as its extent. */
const GROUP_BARS_MAX = 100;

type Scale = Pick<Snapshot, 'axis' | 'view'>;

/** Percent of the axis up to which a label has room at the right of its bar, and from which at the left. */
const LABEL_END_MAX = 84;
const LABEL_START_MIN = 16;

interface Extent {
  left: number;
  width: number;
}

/** Returns where a stretch of time stands in the view, in percent; null outside of it. */
function extentOf({ axis, view }: Scale, from: number, to: number): Extent | null {
  const left = shareOf(axis, view, from);
  const right = shareOf(axis, view, to);
  if (right < 0 || left > 1) return null;
  const low = Math.max(left, -0.01);
  return { left: low * 100, width: (Math.min(right, 1.01) - low) * 100 };
}

const styleOf = ({ left, width }: Extent): CSSProperties => ({ left: `${left}%`, width: `max(2px, ${width}%)` });

function membersOf(model: TraceModel, row: number): number[] {
  const { groups, tree } = model;
  const group = groupOfRow(row);
  const end = tree.subtreeEnd[groups.last[group] ?? 0] ?? 0;
  const members: number[] = [];
  if ((groups.members[group] ?? 0) > GROUP_BARS_MAX) return members;
  for (let i = groups.first[group] ?? end; i < end; i = tree.subtreeEnd[i] ?? end) members.push(i);
  return members;
}

export function Bars({ model, row }: { model: TraceModel; row: number }): ReactElement {
  const axis = useTrace((state) => state.axis);
  const view = useTrace((state) => state.view);
  const scale = { axis, view };
  const { tree } = model;
  const isGroup = isGroupRow(row);
  const span = spanOfRow(model, row);
  const sums = isGroup ? model.groupSums[groupOfRow(row)] : undefined;
  const from = sums?.from ?? tree.start[span] ?? 0;
  const to = sums?.to ?? tree.end[span] ?? 0;
  const members = isGroup ? membersOf(model, row) : [span];
  return (
    <>
      <span className="visually-hidden">
        starts at {duration(from)}, {duration(to - from)}
      </span>
      <span aria-hidden="true">
        {scale.axis.breaks.map(({ from: low, to: high }) => {
          const extent = extentOf(scale, low, high);
          return extent && <span key={low} className={styles.break} style={styleOf(extent)} />;
        })}
        {isGroup && <Bar extent={extentOf(scale, from, to)} className={styles.extent} />}
        {members.map((i) => (
          <SpanBar key={i} model={model} scale={scale} span={i} isAlone={!isGroup} />
        ))}
      </span>
    </>
  );
}

function Bar({ extent, className }: { extent: Extent | null; className: string | undefined }): ReactElement | null {
  return extent && <span className={className} style={styleOf(extent)} />;
}

interface SpanBarProps {
  model: TraceModel;
  scale: Scale;
  span: number;
  /** False for the bars of a group, which have no words beside them. */
  isAlone: boolean;
}

function SpanBar({ model, scale, span, isAlone }: SpanBarProps): ReactElement | null {
  const { tree } = model;
  const from = tree.start[span] ?? 0;
  const to = tree.end[span] ?? 0;
  const extent = extentOf(scale, from, to);
  if (extent === null) return null;
  const firstToken = tree.firstToken[span] ?? -1;
  const notch = firstToken > 0 && to > from ? Math.min(1, firstToken / (to - from)) : null;
  const end = extent.left + extent.width;
  return (
    <>
      <span
        className={styles.bar}
        data-kind={kindOf(tree, span)}
        data-failed={outcomeOf(tree, span) !== 'success'}
        style={styleOf(extent)}
        title={notch === null ? undefined : `First token after ${duration(firstToken)}`}
      >
        {notch !== null && isAlone && <span className={styles.notch} style={{ left: `${notch * 100}%` }} />}
      </span>
      {isAlone && (end < LABEL_END_MAX || extent.left > LABEL_START_MIN) && (
        <span
          className={styles.label}
          style={end < LABEL_END_MAX ? { left: `${end}%` } : { right: `${100 - extent.left}%` }}
        >
          {duration(to - from)}
        </span>
      )}
    </>
  );
}
