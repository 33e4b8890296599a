// The head of the waterfall: names of the columns, and the axis with its ticks and breaks.
import type { ReactElement } from 'react';
import { duration } from '../../text/format.ts';
import { type Axis, shareOf, ticksOf, type View } from '../../trace/model/axis.ts';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import { tickName } from '../../trace/tick_name.ts';
import { NameHandle } from './name_handle.tsx';
import { AXIS_ATTRIBUTE } from './use_zoom_pointer.ts';
import styles from './waterfall.module.css';

const TICKS = 5;
/** Least share of the axis between two names, and room that the last one needs at the right. */
const NAME_SHARE = 0.17;

/** Returns the ticks of the axis; one that has no room for its name is a line only. */
function shownTicks(axis: Axis, view: View): { time: number; at: number; isNamed: boolean }[] {
  let last = -1;
  const times = ticksOf(axis, view, TICKS);
  return times.map((time) => {
    const at = shareOf(axis, view, time);
    const isNamed = at - last >= NAME_SHARE && at <= 1 - NAME_SHARE;
    if (isNamed) last = at;
    return { time, at, isNamed };
  });
}

export function WaterfallHead(): ReactElement {
  const store = useTraceStore();
  const showsOwn = useTrace((snapshot) => snapshot.showsOwn);
  const scope = showsOwn ? 'of the span alone' : 'of the span and everything below it';
  const toggle = (label: string): ReactElement => (
    <button
      type="button"
      tabIndex={-1}
      className={styles.toggle}
      title={`${label} ${scope}. Select to switch.`}
      onClick={() => {
        store.toggleOwn();
      }}
    >
      {label}
      {showsOwn ? ' (own)' : ''}
    </button>
  );
  return (
    <div role="rowgroup" className={styles.head}>
      <div role="row" aria-rowindex={1} className={styles.headRow}>
        <span role="columnheader" className={styles.nameHead}>
          Name
          <NameHandle />
        </span>
        <span role="columnheader" className={styles.number}>
          Duration
        </span>
        <span role="columnheader" className={styles.ownCell} title="Time in which no child runs">
          Own time
        </span>
        <span role="columnheader" className={styles.tokensCell}>
          {toggle('Tokens')}
        </span>
        <span role="columnheader" className={styles.costCell}>
          {toggle('Cost')}
        </span>
        <span role="columnheader" className={styles.axis} {...{ [AXIS_ATTRIBUTE]: '' }}>
          <span className="visually-hidden">Time</span>
          <Ticks />
        </span>
      </div>
    </div>
  );
}

function Ticks(): ReactElement {
  const axis = useTrace((snapshot) => snapshot.axis);
  const view = useTrace((snapshot) => snapshot.view);
  const ticks = shownTicks(axis, view);
  const stepMs = (ticks[1]?.time ?? 0) - (ticks[0]?.time ?? 0);
  return (
    <span aria-hidden="true">
      {ticks.map(({ time, at, isNamed }) => (
        <span key={time} className={styles.tick} style={{ left: `${at * 100}%` }}>
          {isNamed && <span className={styles.tickName}>{tickName(time, stepMs)}</span>}
        </span>
      ))}
      {axis.breaks.map(({ from, to }) => {
        const left = shareOf(axis, view, from);
        const right = shareOf(axis, view, to);
        return right < 0 || left > 1 ? null : (
          <span
            key={from}
            className={styles.headBreak}
            style={{ left: `${left * 100}%`, width: `${(right - left) * 100}%` }}
            title={`${duration(to - from)} without a running span, folded`}
          />
        );
      })}
    </span>
  );
}
