// The items that a person labels, one after the other. The item on the screen and those after it are
// leased and loaded, so that saving shows the next one in the same frame; the answer is sent behind
// it. Answers are sent one at a time, in their order. One that fails brings its item back.
import { type Dispatch, type SetStateAction, useEffect, useRef, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { toast } from '../../ui/toast.tsx';
import { answerItem, type Item, leaseItems, rereadQueues, undoItem } from './annotate_api.ts';
import type { Values } from './score_keys.ts';

export interface Draft {
  values: Values;
  comment: string;
}
export const EMPTY_DRAFT: Draft = { values: {}, comment: '' };

interface Given {
  item: Item;
  draft: Draft;
}

interface Counts {
  total: number;
  done: number;
  left: number;
}

export interface Labels {
  /** The items that the person has, the one on the screen first. */
  items: readonly Item[];
  /** Null until the first answer of the API. */
  counts: Counts | null;
  error: unknown;
  /** True while the items are asked for that come after the last one. */
  loading: boolean;
  draft: Draft;
  setDraft: (draft: Draft) => void;
  /** Sends the answer of the item on the screen and shows the next one. */
  save: (skip: boolean) => void;
  /** Shows the item before with its answer. */
  back: () => void;
  /** Takes the last answer back and shows its item. */
  undo: () => void;
  canGoBack: boolean;
  retry: () => void;
}

/** @param wanted item to begin with; null: the next one */
export function useLabels(org_id: string, queue_id: string, wanted: string | null): Labels {
  const [items, setItems] = useState<readonly Item[]>([]);
  const [counts, setCounts] = useState<Counts | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [loading, setLoading] = useState(true);
  const [given, setGiven] = useState<readonly Given[]>([]);
  const [drafts, setDrafts] = useState<Readonly<Record<string, Draft>>>({});
  const queue = useSending(org_id, queue_id, { setItems, setCounts, setError, setLoading, setGiven });
  const { refill } = queue;
  useEffect(() => {
    refill(wanted);
  }, [refill, wanted]);
  const item = items[0];
  const draft = (item === undefined ? undefined : drafts[item.item_id]) ?? EMPTY_DRAFT;
  const show = (before: Given): void => {
    setItems((now) => [before.item, ...now.filter(({ item_id }) => item_id !== before.item.item_id)]);
    setDrafts((now) => ({ ...now, [before.item.item_id]: before.draft }));
    setGiven((now) => now.filter((one) => one !== before));
  };
  const last = given.at(-1);
  return {
    items,
    counts,
    error,
    loading,
    draft,
    setDraft: (next) => {
      if (item !== undefined) setDrafts((now) => ({ ...now, [item.item_id]: next }));
    },
    save: (skip) => {
      if (item === undefined) return;
      setItems((now) => now.filter(({ item_id }) => item_id !== item.item_id));
      setGiven((now) => [...now, { item, draft }]);
      setCounts((now) => (now === null || skip ? now : { ...now, done: now.done + 1, left: now.left - 1 }));
      queue.answer(item, skip ? EMPTY_DRAFT : draft, skip);
    },
    back: () => {
      if (last !== undefined) show(last);
    },
    undo: () => {
      if (last === undefined) return;
      show(last);
      queue.undo(last.item);
    },
    canGoBack: last !== undefined,
    retry: () => {
      refill(null);
    },
  };
}

interface Setters {
  setItems: Dispatch<SetStateAction<readonly Item[]>>;
  setCounts: Dispatch<SetStateAction<Counts | null>>;
  setError: Dispatch<SetStateAction<unknown>>;
  setLoading: Dispatch<SetStateAction<boolean>>;
  setGiven: Dispatch<SetStateAction<readonly Given[]>>;
}

interface Sending {
  refill: (wanted: string | null) => void;
  answer: (item: Item, draft: Draft, skip: boolean) => void;
  undo: (item: Item) => void;
}

/** Sends what the person does, one request after the other. */
function useSending(org_id: string, queue_id: string, setters: Setters): Sending {
  const [sending] = useState(() => ({ current: null as Sending | null }));
  const latest = useRef(setters);
  sending.current ??= makeSending(org_id, queue_id, latest.current);
  return sending.current;
}

function makeSending(org_id: string, queue_id: string, setters: Setters): Sending {
  const { setItems, setCounts, setError, setLoading, setGiven } = setters;
  let line = Promise.resolve();
  let waiting = 0;
  /** Requests for further items that are on their way or wait for the answers before them. */
  let refills = 0;
  /** Items that the person has answered and not gone back to. */
  const answered = new Set<string>();
  const enqueue = (work: () => Promise<void>): void => {
    waiting += 1;
    line = line.then(work).finally(() => {
      waiting -= 1;
    });
  };
  const refill = (wanted: string | null): void => {
    refills += 1;
    setLoading(true);
    enqueue(async () => {
      try {
        const { data, meta } = await leaseItems(org_id, queue_id, wanted);
        setItems((now) => {
          const known = new Set(now.map(({ item_id }) => item_id));
          const fresh = data.filter(({ item_id }) => !known.has(item_id) && !answered.has(item_id));
          return wanted === null ? [...now, ...fresh] : [...fresh, ...now];
        });
        // Answers on their way are in the numbers of the screen already.
        if (waiting <= 1) setCounts(meta.progress);
        setError(null);
      } catch (cause) {
        setError(cause);
      } finally {
        refills -= 1;
        if (refills === 0) setLoading(false);
      }
    });
  };
  return {
    refill,
    answer: (item, { values, comment }, skip) => {
      answered.add(item.item_id);
      enqueue(async () => {
        try {
          await answerItem(org_id, queue_id, item.item_id, { scores: values, comment, skip });
          rereadQueues(org_id);
        } catch (cause) {
          answered.delete(item.item_id);
          setGiven((now) => now.filter((one) => one.item.item_id !== item.item_id));
          const isLost = cause instanceof RequestError && cause.status === 409;
          if (!isLost) setItems((now) => [item, ...now.filter(({ item_id }) => item_id !== item.item_id)]);
          toast({ tone: 'error', text: isLost ? `The answer was not stored. ${cause.detail}` : failed(cause) });
        }
      });
      refill(null);
    },
    undo: (item) => {
      answered.delete(item.item_id);
      enqueue(async () => {
        try {
          const { meta } = await undoItem(org_id, queue_id, item.item_id);
          setCounts(meta.progress);
          rereadQueues(org_id);
        } catch (cause) {
          toast({ tone: 'error', text: failed(cause) });
        }
      });
    },
  };
}

const failed = (cause: unknown): string =>
  cause instanceof RequestError ? `The answer was not stored. ${cause.detail}` : 'The answer was not stored.';
