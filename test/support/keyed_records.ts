// An in-memory store of the records of Idempotency-Keys.
import type { IdempotencyDeps } from '../../api/http/idempotency.ts';

export interface KeyedRecords {
  store: IdempotencyDeps['store'];
  /** Returns every stored record as text. */
  texts: () => string[];
}

export function keyedRecords(): KeyedRecords {
  const records = new Map<string, { text: string; revision: number }>();
  let revision = 0;
  return {
    store: {
      checkConnected: () => undefined,
      write: ({ at }, text, expected) => {
        if ((records.get(at)?.revision ?? 0) !== expected) return Promise.resolve(null);
        records.set(at, { text, revision: ++revision });
        return Promise.resolve(revision);
      },
      read: ({ at }) => Promise.resolve(records.get(at) ?? null),
      remove: ({ at }, expected) => {
        if (records.get(at)?.revision !== expected) return Promise.reject(new Error('another revision'));
        records.delete(at);
        return Promise.resolve();
      },
    },
    texts: () => [...records.values()].map(({ text }) => text),
  };
}
