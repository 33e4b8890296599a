// The state of one open trace outside of React: what is folded, which part of the axis is in sight,
// what was found. Each change makes a new snapshot; components read the parts they show with
// useTrace and render only when those change.
import { createContext, use, useSyncExternalStore } from 'react';
import { type Axis, makeAxis, type View, wholeView } from './model/axis.ts';
import { findSpans, type Matches, mergeMatches } from './model/find.ts';
import { type Folds, isGroupRow, groupOfRow, rowStandingFor, unfoldTo, visibleRows } from './model/rows.ts';
import type { TraceModel } from './model/trace_model.ts';

export interface Snapshot {
  model: TraceModel;
  folds: Folds;
  rows: Int32Array;
  foldsIdle: boolean;
  axis: Axis;
  view: View;
  showsPath: boolean;
  /** True: the columns of cost and tokens show the span alone instead of its subtree. */
  showsOwn: boolean;
  /** Text that is looked for. */
  find: string;
  matches: Matches;
  /** Row that is selected: it has the focus of the treegrid, and the panel shows its span. */
  focusRow: number;
}

const NO_GAPS = { from: new Float64Array(0), to: new Float64Array(0) };
const NOTHING_FOLDED: Folds = { closedSpans: new Set(), openGroups: new Set() };

export class TraceStore {
  #snapshot: Snapshot;
  readonly #listeners = new Set<() => void>();
  #textMatches: readonly number[] = [];

  constructor(model: TraceModel, span: number) {
    const { tree, groups } = model;
    const axis = makeAxis(tree.from, tree.to, model.gaps);
    const folds = span < 0 ? NOTHING_FOLDED : unfoldTo(tree, groups, NOTHING_FOLDED, span);
    this.#snapshot = {
      model,
      folds,
      rows: visibleRows(tree, groups, folds),
      foldsIdle: model.gaps.from.length > 0,
      axis,
      view: wholeView(axis),
      showsPath: false,
      showsOwn: false,
      find: '',
      matches: findSpans(tree, ''),
      focusRow: Math.max(span, 0),
    };
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get = (): Snapshot => this.#snapshot;

  #change(patch: Partial<Snapshot>): void {
    this.#snapshot = { ...this.#snapshot, ...patch };
    for (const listener of this.#listeners) listener();
  }

  #fold(folds: Folds): void {
    const { model, focusRow } = this.#snapshot;
    if (folds === this.#snapshot.folds) return;
    const { tree, groups } = model;
    // The focus moves to the row that now stands for the hidden one.
    const span = isGroupRow(focusRow) ? (groups.first[groupOfRow(focusRow)] ?? 0) : focusRow;
    const stands = rowStandingFor(tree, groups, folds, span);
    const isHidden = stands !== span && !(isGroupRow(focusRow) && groups.groupOf[span] === groupOfRow(focusRow));
    this.#change({ folds, rows: visibleRows(tree, groups, folds), ...(isHidden ? { focusRow: stands } : {}) });
  }

  /** Puts a newer outline of the same trace in the place of the old one; spans keep their state by their ids. */
  setModel(model: TraceModel): void {
    const before = this.#snapshot;
    const old = before.model.tree;
    const indexOf = (i: number): number => model.tree.indexOf.get(old.spanId[i] ?? '') ?? -1;
    const closed = [...before.folds.closedSpans].map(indexOf).filter((i) => i >= 0);
    const open = [...before.folds.openGroups].map((g) => {
      const first = indexOf(before.model.groups.first[g] ?? -1);
      return model.groups.groupOf[first] ?? -1;
    });
    const folds = { closedSpans: new Set(closed), openGroups: new Set(open.filter((g) => g >= 0)) };
    const axis = makeAxis(model.tree.from, model.tree.to, before.foldsIdle ? model.gaps : NO_GAPS);
    const isWholeView = before.view.to - before.view.from >= before.axis.length;
    const focused = Math.max(0, indexOf(spanOfRow(before.model, before.focusRow)));
    this.#change({
      model,
      folds,
      rows: visibleRows(model.tree, model.groups, folds),
      axis,
      view: isWholeView ? wholeView(axis) : before.view,
      matches: mergeMatches(model.tree, findSpans(model.tree, before.find), this.#textMatches.map(indexOf)),
      focusRow: rowStandingFor(model.tree, model.groups, folds, focused),
    });
  }

  setOpen(row: number, isOpen: boolean): void {
    const { folds } = this.#snapshot;
    if (isGroupRow(row)) {
      const openGroups = new Set(folds.openGroups);
      if (isOpen) openGroups.add(groupOfRow(row));
      else openGroups.delete(groupOfRow(row));
      this.#fold({ ...folds, openGroups });
    } else {
      const closedSpans = new Set(folds.closedSpans);
      if (isOpen) closedSpans.delete(row);
      else closedSpans.add(row);
      this.#fold({ ...folds, closedSpans });
    }
  }

  setAllOpen(isOpen: boolean): void {
    const { model } = this.#snapshot;
    const spans: number[] = [];
    for (let i = 0; !isOpen && i < model.tree.size; i += 1) {
      if ((model.tree.depth[i] ?? 0) > 0 && (model.tree.subtreeEnd[i] ?? 0) > i + 1) spans.push(i);
    }
    const openGroups = new Set(isOpen ? model.groups.first.keys() : []);
    this.#fold({ closedSpans: new Set(spans), openGroups });
  }

  /** Makes the row of a span visible and gives it the focus of the treegrid. */
  reveal(span: number): void {
    const { model, folds } = this.#snapshot;
    if (span < 0 || span >= model.tree.size) return;
    this.#fold(unfoldTo(model.tree, model.groups, folds, span));
    if (this.#snapshot.focusRow !== span) this.#change({ focusRow: span });
  }

  focus(row: number): void {
    if (this.#snapshot.focusRow !== row) this.#change({ focusRow: row });
  }

  setView(view: View): void {
    const { from, to } = this.#snapshot.view;
    if (view.from !== from || view.to !== to) this.#change({ view });
  }

  setFoldsIdle(foldsIdle: boolean): void {
    const { model } = this.#snapshot;
    const axis = makeAxis(model.tree.from, model.tree.to, foldsIdle ? model.gaps : NO_GAPS);
    this.#change({ foldsIdle, axis, view: wholeView(axis) });
  }

  togglePath(): void {
    this.#change({ showsPath: !this.#snapshot.showsPath });
  }

  toggleOwn(): void {
    this.#change({ showsOwn: !this.#snapshot.showsOwn });
  }

  setFind(find: string): void {
    if (find === this.#snapshot.find) return;
    this.#textMatches = [];
    this.#change({ find, matches: findSpans(this.#snapshot.model.tree, find) });
  }

  /** Adds the spans whose texts the server found for the present text. */
  addTextMatches(spans: readonly number[]): void {
    const { model, find } = this.#snapshot;
    this.#textMatches = spans;
    this.#change({ matches: mergeMatches(model.tree, findSpans(model.tree, find), this.#textMatches) });
  }
}

export const TraceContext = createContext<TraceStore | null>(null);

/** Returns the store of the open trace. */
export function useTraceStore(): TraceStore {
  const store = use(TraceContext);
  if (store === null) throw new Error('useTraceStore needs an open trace');
  return store;
}

/** Returns a part of the snapshot. The part must be a value that stays the same while it does not change. */
export function useTrace<T>(select: (snapshot: Snapshot) => T): T {
  const store = useTraceStore();
  return useSyncExternalStore(store.subscribe, () => select(store.get()));
}

/** Returns the span that a row stands for: its own, or the first member of its group. */
export const spanOfRow = ({ groups }: TraceModel, row: number): number =>
  isGroupRow(row) ? (groups.first[groupOfRow(row)] ?? 0) : row;
