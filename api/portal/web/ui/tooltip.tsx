// A tooltip that shows on hover and on focus, stays while the pointer is on it, and goes with Escape
// (WCAG 1.4.13). The element inside names the tooltip as its description.
import { type ReactElement, type ReactNode, useEffect, useId, useRef } from 'react';
import { cx } from './cx.ts';
import styles from './layer.module.css';
import { placeLayer } from './place.ts';

const SHOW_MS = 300;
const HIDE_MS = 100;

/** An element with a tooltip; the element takes `aria-describedby` from the argument. */
export function Tooltip({
  text,
  children,
}: {
  text: ReactNode;
  children: (describedBy: string) => ReactElement;
}): ReactElement {
  const id = useId();
  const anchor = useRef<HTMLSpanElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const later = (open: boolean, ms: number): void => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const at = anchor.current?.firstElementChild;
      if (layer.current === null || at === null || at === undefined) return;
      layer.current.togglePopover(open);
      if (open) placeLayer(layer.current, at);
    }, ms);
  };
  useEffect(
    () => () => {
      clearTimeout(timer.current);
    },
    [],
  );
  return (
    <span
      ref={anchor}
      style={{ display: 'contents' }}
      onPointerEnter={() => {
        later(true, SHOW_MS);
      }}
      onPointerLeave={() => {
        later(false, HIDE_MS);
      }}
      onFocus={() => {
        later(true, 0);
      }}
      onBlur={() => {
        later(false, 0);
      }}
      onKeyDown={({ key }) => {
        if (key === 'Escape') later(false, 0);
      }}
    >
      {children(id)}
      <div ref={layer} id={id} role="tooltip" popover="manual" className={cx(styles.layer, styles.tooltip)}>
        {text}
      </div>
    </span>
  );
}
