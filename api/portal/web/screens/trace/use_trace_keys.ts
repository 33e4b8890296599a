// The table of keys of the trace screen.
import { useQueryClient } from '@tanstack/react-query';
import type { RefObject } from 'react';
import { useOrganization } from '../../client/session.ts';
import { type KeyBinding, useKeys } from '../../shell/keys.ts';
import { panBy, wholeView, zoomAt } from '../../trace/model/axis.ts';
import { stepThrough } from '../../trace/model/find.ts';
import { groupOfRow, isGroupRow, parentRow } from '../../trace/model/rows.ts';
import { type Snapshot, spanOfRow, type TraceStore, useTraceStore } from '../../trace/store.ts';
import { togglePanelSide } from './panel_side.ts';
import { goToNeighbour } from './neighbours.ts';
import type { TabName, ViewName } from './trace_url.ts';
import { fitRow } from './waterfall.tsx';

const PAN_SHARE = 0.2;
const ZOOM_STEP = 1.6;

type Run = () => void;

interface KeysContext {
  traceId: string;
  grid: RefObject<HTMLDivElement | null>;
  findField: RefObject<HTMLInputElement | null>;
  setView: (view: ViewName) => void;
  setTab: (tab: TabName) => void;
  onScore: Run;
  onReplay: Run;
}

const toRow =
  (store: TraceStore, grid: KeysContext['grid'], step: 1 | -1): Run =>
  () => {
    const { rows, focusRow } = store.get();
    const next = rows[rows.indexOf(focusRow) + step];
    if (next !== undefined) store.focus(next);
    grid.current?.focus({ preventScroll: true });
  };

const isOpenRow = ({ folds }: Snapshot, row: number): boolean =>
  isGroupRow(row) ? folds.openGroups.has(groupOfRow(row)) : !folds.closedSpans.has(row);

const hasChildren = ({ model }: Snapshot, row: number): boolean =>
  isGroupRow(row) || (model.tree.subtreeEnd[row] ?? 0) > row + 1;

/** Opens the selected row, or goes to its first child if it is open. */
const openOrChild =
  (store: TraceStore, grid: KeysContext['grid']): Run =>
  () => {
    const snapshot = store.get();
    const { rows, focusRow } = snapshot;
    grid.current?.focus({ preventScroll: true });
    if (!hasChildren(snapshot, focusRow)) return;
    if (isOpenRow(snapshot, focusRow)) store.focus(rows[rows.indexOf(focusRow) + 1] ?? focusRow);
    else store.setOpen(focusRow, true);
  };

/** Folds the selected row, or goes to its parent if there is nothing to fold. */
const foldOrParent =
  (store: TraceStore, grid: KeysContext['grid']): Run =>
  () => {
    const snapshot = store.get();
    const { focusRow, model } = snapshot;
    grid.current?.focus({ preventScroll: true });
    if (hasChildren(snapshot, focusRow) && isOpenRow(snapshot, focusRow)) store.setOpen(focusRow, false);
    else store.focus(parentRow(model.tree, model.groups, focusRow) ?? focusRow);
  };

const matchesOf = ({ matches }: Snapshot): Int32Array => matches.spans;
const failuresOf = ({ model }: Snapshot): Int32Array => model.failed;

const toNext =
  (store: TraceStore, listOf: (snapshot: Snapshot) => Int32Array, step: 1 | -1): Run =>
  () => {
    const snapshot = store.get();
    const next = stepThrough(listOf(snapshot), spanOfRow(snapshot.model, snapshot.focusRow), step);
    if (next >= 0) store.reveal(next);
  };

const zoomBy =
  (store: TraceStore, factor: number): Run =>
  () => {
    const { axis, view } = store.get();
    store.setView(zoomAt(axis, view, factor, 0.5));
  };

const panBySteps =
  (store: TraceStore, share: number): Run =>
  () => {
    const { axis, view } = store.get();
    store.setView(panBy(axis, view, share));
  };

const fitSelected = (store: TraceStore): void => {
  fitRow(store.get(), store.get().focusRow, (view) => {
    store.setView(view);
  });
};

function storeKeys(store: TraceStore, grid: KeysContext['grid']): KeyBinding[] {
  return [
    { keys: ['j', 'ArrowDown'], label: 'Next row', silent: true, run: toRow(store, grid, 1) },
    { keys: ['k', 'ArrowUp'], label: 'Previous row', silent: true, run: toRow(store, grid, -1) },
    {
      keys: 'ArrowRight',
      label: 'Open the row, or go to its first child',
      silent: true,
      run: openOrChild(store, grid),
    },
    { keys: 'ArrowLeft', label: 'Fold the row, or go to its parent', silent: true, run: foldOrParent(store, grid) },
    { keys: 'n', label: 'Next match', run: toNext(store, matchesOf, 1) },
    { keys: 'N', label: 'Previous match', run: toNext(store, matchesOf, -1) },
    { keys: '.', label: 'Next error', run: toNext(store, failuresOf, 1) },
    { keys: ',', label: 'Previous error', run: toNext(store, failuresOf, -1) },
    { keys: '+', label: 'Zoom in', run: zoomBy(store, ZOOM_STEP) },
    { keys: '-', label: 'Zoom out', run: zoomBy(store, 1 / ZOOM_STEP) },
    { keys: 'Shift+ArrowLeft', label: 'Move the view left', silent: true, run: panBySteps(store, -PAN_SHARE) },
    { keys: 'Shift+ArrowRight', label: 'Move the view right', silent: true, run: panBySteps(store, PAN_SHARE) },
    {
      keys: 'p',
      label: 'Underline the critical path',
      run: () => {
        store.togglePath();
      },
    },
    {
      keys: '0',
      label: 'Show the whole trace',
      run: () => {
        store.setView(wholeView(store.get().axis));
      },
    },
    {
      keys: 'z',
      label: 'Zoom to the span',
      run: () => {
        fitSelected(store);
      },
    },
  ];
}

const VIEW_KEYS: readonly [keys: string, view: ViewName, label: string][] = [
  ['1', 'waterfall', 'Show the waterfall'],
  ['2', 'graph', 'Show the graph of steps'],
  ['3', 'conversation', 'Show the conversation'],
  ['4', 'json', 'Show the outline as JSON'],
];
const TAB_KEYS: readonly [keys: string, tab: TabName, label: string][] = [
  ['m', 'messages', 'Show messages'],
  ['i', 'io', 'Show input and output'],
  ['A', 'attributes', 'Show attributes'],
  ['S', 'scores', 'Show scores'],
  ['R', 'raw', 'Show the raw record'],
];

/** Returns one shortcut for each row of a table. */
const choices = <T>(table: readonly [string, T, string][], choose: (value: T) => void): KeyBinding[] =>
  table.map(([keys, value, label]) => ({
    keys,
    label,
    run: () => {
      choose(value);
    },
  }));

export function useTraceKeys(context: KeysContext): void {
  const { traceId, grid, findField, setView, setTab, onScore, onReplay } = context;
  const store = useTraceStore();
  const queries = useQueryClient();
  const { org_id, can } = useOrganization();
  const neighbour =
    (step: 1 | -1): Run =>
    () => {
      goToNeighbour(queries, org_id, traceId, step);
    };
  const focusFind = (): void => {
    findField.current?.focus();
    findField.current?.select();
  };
  useKeys('Trace', [
    ...storeKeys(store, grid),
    ...choices(VIEW_KEYS, setView),
    ...choices(TAB_KEYS, setTab),
    { keys: ['/', 'Mod+f'], label: 'Find in the trace', run: focusFind },
    { keys: 'o', label: 'Move the span panel to the other side', run: togglePanelSide },
    { keys: 'J', label: 'Next trace of the list', run: neighbour(1) },
    { keys: 'K', label: 'Previous trace of the list', run: neighbour(-1) },
    ...(can('ingest:write') ? [{ keys: 'b', label: 'Add a score', run: onScore }] : []),
    { keys: 'r', label: 'Replay the trace', run: onReplay },
  ]);
}
