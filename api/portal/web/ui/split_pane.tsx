// Two panels with a handle between them. The handle moves by drag, by arrow keys and by Home and End
// (WCAG 2.5.7); a double click restores the default. Sizes are shares of the whole, kept by name.
import {
  type CSSProperties,
  type KeyboardEvent,
  type PointerEvent,
  type ReactElement,
  type ReactNode,
  useRef,
  useState,
} from 'react';
import { cx } from './cx.ts';
import styles from './split_pane.module.css';

const STEP = 0.02;

interface SplitPaneProps {
  /** Name under which the size is kept in this browser. */
  name: string;
  /** Name of the handle, for example "Size of the span panel". */
  label: string;
  /** `row`: panels side by side; `column`: one above the other. */
  direction?: 'row' | 'column';
  /** Share of the first panel before anybody moved the handle. */
  share?: number;
  min?: number;
  max?: number;
  children: readonly [ReactNode, ReactNode];
}

const keyOf = (name: string): string => `millrace.split.${name}`;

function storedShare(name: string, fallback: number): number {
  try {
    const share = Number(localStorage.getItem(keyOf(name)) ?? Number.NaN);
    return share > 0 && share < 1 ? share : fallback;
  } catch {
    return fallback;
  }
}

function storeShare(name: string, share: number): void {
  try {
    localStorage.setItem(keyOf(name), share.toFixed(3));
  } catch {
    // The size holds for this page.
  }
}

/** Two resizable panels. */
export function SplitPane(props: SplitPaneProps): ReactElement {
  const { name, label, direction = 'row', share: initial = 0.6, min = 0.2, max = 0.85, children } = props;
  const whole = useRef<HTMLDivElement>(null);
  const [share, setShare] = useState(() => storedShare(name, initial));
  const move = (to: number): void => {
    const next = Math.min(max, Math.max(min, to));
    setShare(next);
    storeShare(name, next);
  };
  const onPointerMove = (event: PointerEvent<HTMLDivElement>): void => {
    const box = whole.current?.getBoundingClientRect();
    if (box === undefined || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
    move(direction === 'row' ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const steps: Readonly<Record<string, number>> = {
      [direction === 'row' ? 'ArrowLeft' : 'ArrowUp']: share - STEP,
      [direction === 'row' ? 'ArrowRight' : 'ArrowDown']: share + STEP,
      Home: min,
      End: max,
    };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    move(to);
  };
  return (
    <div ref={whole} className={cx(styles.split, styles[direction])} style={{ '--share': share } as CSSProperties}>
      <div className={styles.first}>{children[0]}</div>
      <div
        role="separator"
        tabIndex={0}
        aria-label={label}
        aria-orientation={direction === 'row' ? 'vertical' : 'horizontal'}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={Math.round(min * 100)}
        aria-valuemax={Math.round(max * 100)}
        className={styles.handle}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={onPointerMove}
        onKeyDown={onKeyDown}
        onDoubleClick={() => {
          move(initial);
        }}
      />
      <div className={styles.second}>{children[1]}</div>
    </div>
  );
}
