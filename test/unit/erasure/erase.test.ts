// How an erasure ends: verified, failed with what is left, to be retried, or found done. The stores
// are stand-ins here; test/integration/erasure uses the real ones.
import { expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { createErase, type EraseDeps } from '../../../pipeline/erasure/erase.ts';
import { StoreUnavailable } from '../../../sql/client/client.ts';

interface Stand {
  left?: Map<string, number>[];
  inLog?: number;
  ask?: Awaited<ReturnType<EraseDeps['asks']['read']>>;
  erase?: () => Promise<void>;
}

function stand({
  left = [],
  inLog = 0,
  ask = { value: 'ann', result: null },
  erase = () => Promise.resolve(),
}: Stand = {}) {
  const calls: string[] = [];
  const lost = new AbortController();
  const noted = (name: string) => () => {
    calls.push(name);
    return Promise.resolve();
  };
  const store: Partial<EraseDeps['store']> = {
    jobs: () => Promise.resolve(['job_mine', 'job_over', 'job_open']),
    forget: (id) => noted(`forget ${id}`)(),
    collect: noted('collect'),
    samples: () => Promise.resolve([]),
    emptySamples: noted('samples'),
    erase: async (_scope, mark) => {
      calls.push(`erase ${String(mark)}`);
      await erase();
    },
    traces: (_scope, after) => Promise.resolve(after === '' ? ['t_1', 't_2'] : []),
    remaining: () => Promise.resolve(left.shift() ?? new Map()),
    found: () => Promise.resolve(new Map([['spans', 4]])),
    traceCount: () => Promise.resolve(2),
  };
  const deps: EraseDeps = {
    store: store as EraseDeps['store'],
    // No day has an object.
    shards: [
      {
        store: { days: () => Promise.resolve([]), texts: () => ({ sql: '', params: {} }) },
        cold: {
          removeLeftovers: noted('removeLeftovers'),
          objectsOf: () => Promise.resolve([]),
          rewrite: () => Promise.resolve(0),
        },
      },
    ],
    asks: { read: () => Promise.resolve(ask), settle: noted('settle') },
    formsOf: (_org, _attribute, value) => Promise.resolve([value]),
    lease: () => Promise.resolve({ signal: lost.signal, release: noted('release') }),
    isOver: (id) => id === 'job_over',
    log: {
      end: () => Promise.resolve({ seqs: new Map(), positions: [7], newest: 7 }),
      folded: noted('folded'),
      landed: noted('landed'),
      erasePendingScores: () => noted('pending scores')().then(() => 1),
      purge: ({ newest }) => noted(`purge ${newest}`)().then(() => inLog),
      eraseDeadLetters: () => Promise.resolve(0),
    },
    logBase: 100,
    forget: (_org, ids) => noted(`forget ${ids.join()}`)(),
    emptyOpenSamples: noted('open samples'),
    deleteAnnotationItems: noted('annotation items'),
    sync: noted('sync'),
  };
  const run = () =>
    createErase(deps)({
      job_id: 'job_mine',
      org_id: 'org_a',
      args: { attribute: 'user_id', ask_id: 'x' },
      progress: () => undefined,
      signal: new AbortController().signal,
      log: createLogger('test', 'silent'),
    });
  return { calls, lost, run };
}

it('an erasure runs in the order that leaves nothing: land, record, delete, forget, delete again, remove from the log, verify', async () => {
  const { calls, run } = stand({ left: [new Map([['traces', 1]])] });
  expect(await run()).toMatchObject({
    matched_traces: 2,
    spans: 4,
    log_purged_through: 7,
    pending_scores: 2,
    remaining: 0,
  });
  expect(calls).toEqual([
    ...[
      'forget job_over',
      'folded',
      'landed',
      'collect',
      'pending scores',
      'open samples',
      'samples',
      'annotation items',
      'erase null',
      'forget t_1,t_2',
      'landed',
      'erase 107',
    ],
    // Forgotten once more: from here on an event that is sent again is new data.
    ...['sync', 'pending scores', 'purge 7', 'purge 7', 'forget t_1,t_2', 'settle', 'forget job_mine', 'release'],
  ]);
});

it.each([
  [
    { left: Array.from({ length: 6 }, () => new Map([['spans', 3]])) },
    'the erasure is not complete; left: 3 rows of spans',
  ],
  [{ inLog: 2 }, 'the erasure is not complete; left: 2 messages of the ingest log'],
  [{ ask: null }, /has expired/],
])('fails with what is left: %j', async (given: Stand, error) => {
  const { calls, run } = stand(given);
  await expect(run()).rejects.toThrow(error);
  expect(calls).not.toContain('settle');
  expect(calls).not.toContain('forget job_mine');
});

it('an erasure reports a store that is away and returns its lease, so that it is tried again', async () => {
  const away = stand({ erase: () => Promise.reject(new StoreUnavailable('away')) });
  await expect(away.run()).rejects.toThrow(StoreUnavailable);
  expect(away.calls.at(-1)).toBe('release');
  const robbed = stand({
    erase: () => {
      robbed.lost.abort(new Error('another has it'));
      return Promise.reject(new Error('aborted'));
    },
  });
  await expect(robbed.run()).rejects.toThrow(StoreUnavailable);
});

it('finished work is not repeated', async () => {
  const { calls, run } = stand({ ask: { value: null, result: { remaining: 0 } } });
  expect(await run()).toEqual({ remaining: 0 });
  expect(calls).toEqual(['forget job_over']);
});
