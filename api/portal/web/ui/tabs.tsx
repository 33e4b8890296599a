// Tabs after the pattern of the ARIA Authoring Practices: arrows move and choose, one tab stop.
import { type KeyboardEvent, type ReactElement, type ReactNode, useEffect, useId, useRef } from 'react';
import styles from './tabs.module.css';

export interface Tab {
  id: string;
  label: ReactNode;
  /** Shortcut that chooses the tab. */
  keys?: string;
}

interface TabsProps {
  /** Name of the row of tabs. */
  label: string;
  tabs: readonly Tab[];
  selected: string;
  onSelect: (id: string) => void;
  /** Content of the selected tab; without it only the row is shown. */
  children?: ReactNode;
  /** Elements at the end of the row. */
  aside?: ReactNode;
}

/** Width of the fade at the end of a row that can be scrolled further, pixels, as the style sheet has it. */
const FADE_PX = 40;
const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

/** A row of tabs and the panel of the selected one. */
export function Tabs({ label, tabs, selected, onSelect, children, aside }: TabsProps): ReactElement {
  const id = useId();
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    showSelected(row.current);
  }, [selected]);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const at = tabs.findIndex((tab) => tab.id === selected);
    const step = STEPS[event.key];
    const next =
      event.key === 'Home'
        ? 0
        : event.key === 'End'
          ? tabs.length - 1
          : step === undefined
            ? -1
            : (at + step + tabs.length) % tabs.length;
    const tab = tabs[next];
    if (tab === undefined || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    onSelect(tab.id);
    event.currentTarget.querySelectorAll<HTMLElement>('[role="tab"]')[next]?.focus();
  };
  return (
    <>
      <div className={styles.bar}>
        <div ref={row} role="tablist" aria-label={label} className={styles.tabs} onKeyDown={onKeyDown}>
          {tabs.map((tab) => (
            <button
              key={tab.id}
              type="button"
              role="tab"
              id={`${id}-${tab.id}`}
              className={styles.tab}
              aria-selected={tab.id === selected}
              aria-controls={children === undefined ? undefined : `${id}-panel`}
              aria-keyshortcuts={tab.keys}
              title={tab.keys === undefined ? undefined : `Shortcut (${tab.keys})`}
              tabIndex={tab.id === selected ? 0 : -1}
              onClick={() => {
                onSelect(tab.id);
              }}
            >
              {tab.label}
            </button>
          ))}
        </div>
        {aside}
      </div>
      {children !== undefined && (
        <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${selected}`} className={styles.panel}>
          {children}
        </div>
      )}
    </>
  );
}

/** Scrolls a row that is wider than the screen to its selected tab. */
function showSelected(row: HTMLElement | null): void {
  const tab = row?.querySelector<HTMLElement>('[aria-selected="true"]') ?? null;
  if (row === null || tab === null || row.scrollWidth <= row.clientWidth) return;
  const [place, bounds] = [tab.getBoundingClientRect(), row.getBoundingClientRect()];
  // The row fades out at its end, which must not dim the selected tab.
  const [left, right] = [place.left - FADE_PX, place.right + FADE_PX];
  if (left < bounds.left) row.scrollLeft -= bounds.left - left;
  else if (right > bounds.right) row.scrollLeft += right - bounds.right;
}
