// The keys that act on the rows of the list.
import type { ChangeList } from '../../lists/use_list_url.ts';
import { type KeyBinding, useKeys } from '../../shell/keys.ts';

interface RowKeys {
  ids: readonly string[];
  cursor: number;
  active: string | null;
  peek: string | null;
  hasSelection: boolean;
  move: (index: number) => void;
  change: ChangeList;
  toggle: (trace_id: string, range: boolean) => void;
  onClear: () => void;
  onCompare: () => void;
  onOpen: (trace_id: string) => void;
}

/** Registers the keys while the list is on the screen. */
export function useRowKeys(rows: RowKeys): void {
  const { ids, cursor, active, peek, move, change, toggle, onClear, onCompare, onOpen, hasSelection } = rows;
  const step = (by: number): void => {
    if (ids.length > 0) move(Math.min(ids.length - 1, Math.max(0, cursor + by)));
  };
  const onActive = (act: (trace_id: string) => void): void => {
    if (active !== null) act(active);
  };
  const lookAt = (): void => {
    const next = active ?? ids[0];
    if (next === undefined) return;
    if (active === null) move(0);
    change((now) => ({ ...now, peek: now.peek === next ? null : next }));
  };
  const goBack = (): void => {
    if (peek !== null) change((now) => ({ ...now, peek: null }));
    else if (hasSelection) onClear();
  };
  useKeys('Rows of the list', [
    rowKey(['j', 'ArrowDown'], 'Next row', () => {
      step(1);
    }),
    rowKey(['k', 'ArrowUp'], 'Previous row', () => {
      step(-1);
    }),
    rowKey('Enter', 'Open the trace', () => {
      onActive(onOpen);
    }),
    rowKey('Space', 'Look at the trace beside the list', lookAt),
    rowKey('x', 'Select the row', () => {
      onActive((id) => {
        toggle(id, false);
      });
    }),
    rowKey('X', 'Select up to the row', () => {
      onActive((id) => {
        toggle(id, true);
      });
    }),
    rowKey('c', 'Compare the two selected traces', onCompare),
    rowKey('Escape', 'Close the panel, or clear the selection', goBack),
  ]);
}

const rowKey = (keys: string | readonly string[], label: string, run: () => void): KeyBinding => ({
  keys,
  label,
  run,
  silent: true,
});
