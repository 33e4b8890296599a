// The handle at the right of the column of names. It moves by drag, by arrow keys and by Home and End
// (WCAG 2.5.7); a double click restores the default.
import type { KeyboardEvent, PointerEvent, ReactElement } from 'react';
import { setPreferences, usePreferences } from '../../shell/preferences.ts';
import { boundedWidth, NAME_PX_MAX, NAME_PX_MIN, widthByKey } from './name_width.ts';
import styles from './waterfall.module.css';

/** Width that the separator says before anybody moved it and before it was measured. */
const DEFAULT_PX = 280;

/** The cell that the handle stands in; its start is where the width is measured from. */
const cellOf = (handle: Element): DOMRect | undefined => handle.parentElement?.getBoundingClientRect();

export function NameHandle(): ReactElement {
  const { trace_name_px } = usePreferences();
  const onPointerMove = (event: PointerEvent<HTMLElement>): void => {
    const cell = cellOf(event.currentTarget);
    if (cell === undefined || !event.currentTarget.hasPointerCapture(event.pointerId)) return;
    setPreferences({ trace_name_px: boundedWidth(event.clientX - cell.left) });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const width = widthByKey(event.key, cellOf(event.currentTarget)?.width ?? DEFAULT_PX);
    if (width === null) return;
    event.preventDefault();
    event.stopPropagation();
    setPreferences({ trace_name_px: width });
  };
  return (
    <span
      role="separator"
      tabIndex={0}
      aria-label="Width of the names"
      aria-orientation="vertical"
      aria-valuemin={NAME_PX_MIN}
      aria-valuemax={NAME_PX_MAX}
      aria-valuenow={trace_name_px ?? DEFAULT_PX}
      aria-valuetext={trace_name_px === null ? 'Default' : `${trace_name_px} pixels`}
      title="Drag to change the width of the names. Double click restores it."
      className={styles.handle}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={onPointerMove}
      onKeyDown={onKeyDown}
      onDoubleClick={() => {
        setPreferences({ trace_name_px: null });
      }}
    />
  );
}
