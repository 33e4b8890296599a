// Keeps the address and the store of the trace in step. The store changes in the same frame as a key
// is pressed; the address follows when the keys rest, since browsers limit how often it may change.
import { useEffect, useRef } from 'react';
import type { ChangeOptions } from '../../url/use_search_state.ts';
import { isWhole, timeAt, unitAt, viewBetween, wholeView } from '../../trace/model/axis.ts';
import { isGroupRow } from '../../trace/model/rows.ts';
import { type Snapshot, useTraceStore } from '../../trace/store.ts';
import type { traceUrl, Zoom } from './trace_url.ts';

const REST_MS = 250;

type Url = ReturnType<typeof traceUrl.parse>;
type Change = (patch: Partial<Url>, options?: ChangeOptions) => void;

/** Returns the span that the address names; none for a row that was not chosen by the person. */
function spanOf({ model, focusRow }: Snapshot, present: string): string {
  if (isGroupRow(focusRow)) return present;
  const id = model.tree.spanId[focusRow] ?? '';
  const opened = model.cause?.span ?? model.root;
  return focusRow === opened ? '' : id;
}

function zoomOf({ axis, view }: Snapshot): Zoom | null {
  if (isWhole(axis, view)) return null;
  return { from: timeAt(axis, view.from), to: timeAt(axis, view.to) };
}

const isSameZoom = (a: Zoom | null, b: Zoom | null): boolean =>
  a === b || (a !== null && b !== null && Math.abs(a.from - b.from) + Math.abs(a.to - b.to) < 0.01);

export function useTraceUrl(url: Url, change: Change): void {
  const store = useTraceStore();
  const written = useRef(url);
  useEffect(() => {
    let timer = 0;
    let last = store.get();
    const write = (): void => {
      const snapshot = store.get();
      const patch = { span: spanOf(snapshot, written.current.span), zoom: zoomOf(snapshot) };
      written.current = { ...written.current, ...patch };
      change(patch, { replace: true });
    };
    const stop = store.subscribe(() => {
      const next = store.get();
      if (next.focusRow === last.focusRow && next.view === last.view) return;
      last = next;
      clearTimeout(timer);
      timer = window.setTimeout(write, REST_MS);
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [store, change]);
  // The address changed from outside: Back, Forward, a link to another span.
  useEffect(() => {
    const before = written.current;
    written.current = url;
    const { model, axis } = store.get();
    if (url.span !== before.span) {
      const span = url.span === '' ? (model.cause?.span ?? model.root) : model.tree.indexOf.get(url.span);
      if (span !== undefined) store.reveal(span);
    }
    if (!isSameZoom(url.zoom, before.zoom)) store.setView(viewOf(axis, url.zoom));
  }, [url, store]);
  useEffect(() => {
    const { axis } = store.get();
    if (written.current.zoom !== null) store.setView(viewOf(axis, written.current.zoom));
  }, [store]);
}

const viewOf = (axis: Snapshot['axis'], zoom: Zoom | null): Snapshot['view'] =>
  zoom === null ? wholeView(axis) : viewBetween(axis, unitAt(axis, zoom.from), unitAt(axis, zoom.to));
