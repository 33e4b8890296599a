// Find on the trace screen: names, models, ids and errors at once in the browser, texts by the
// service beside them.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import type { ChangeOptions } from '../../url/use_search_state.ts';
import { stepThrough } from '../../trace/model/find.ts';
import { spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { matchesQuery } from './trace_api.ts';

/** Pause after the last key before the texts are searched. */
const PAUSE_MS = 180;
/** The service searches words; shorter texts are looked for in the outline only. */
const WORD_CHARS_MIN = 2;
const QUERY_CHARS_MAX = 1000;

export interface TraceFind {
  text: string;
  total: number;
  at: number;
  isSearching: boolean;
  /** Why the texts were not searched; null if they were. */
  problem: string | null;
  onChange: (text: string) => void;
  onStep: (step: 1 | -1) => void;
}

function useRested(text: string): string {
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => {
      setRested(text);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [text]);
  return rested;
}

export function useTraceFind(
  traceId: string,
  inAddress: string,
  change: (patch: { find: string }, options?: ChangeOptions) => void,
): TraceFind {
  const store = useTraceStore();
  const { org_id } = useOrganization();
  const [text, setText] = useState(inAddress);
  const [seen, setSeen] = useState(inAddress);
  if (inAddress !== seen) {
    setSeen(inAddress);
    setText(inAddress);
  }
  const rested = useRested(text);
  const wanted = rested.trim();
  const query = useQuery({
    ...matchesQuery(org_id, traceId, wanted),
    enabled: wanted.length >= WORD_CHARS_MIN && wanted.length <= QUERY_CHARS_MAX,
    retry: false,
  });
  const found = query.data?.data;
  useEffect(() => {
    store.setFind(text);
  }, [store, text]);
  useEffect(() => {
    change({ find: rested }, { replace: true });
  }, [change, rested]);
  useEffect(() => {
    if (found === undefined || store.get().find.trim() !== wanted) return;
    const { indexOf } = store.get().model.tree;
    store.addTextMatches(found.map(({ span_id }) => indexOf.get(span_id) ?? -1));
  }, [store, found, wanted, text]);
  const matches = useTrace((snapshot) => snapshot.matches);
  const span = useTrace(({ model, focusRow }) => spanOfRow(model, focusRow));
  return {
    text,
    total: matches.spans.length,
    at: Math.max(0, matches.spans.indexOf(span)),
    isSearching: query.isFetching,
    problem: query.isError ? query.error.message : null,
    onChange: setText,
    onStep: (step) => {
      const next = stepThrough(matches.spans, span, step);
      if (next >= 0) store.reveal(next);
    },
  };
}
