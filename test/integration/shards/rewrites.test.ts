// Retention, restores, erasures and deletions of organizations in two shards. Two databases of one
// engine stand for the shards; their cold storage is one folder.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { createRestore } from '../../../pipeline/cold/restore.ts';
import { createRetentionOfShards } from '../../../pipeline/retention/retention_of_shards.ts';
import { DEFAULT_RETENTION } from '../../../schemas/records/retention.ts';
import { ErasureStore } from '../../../sql/stores/erasure.ts';
import { ErasureOfShards } from '../../../sql/stores/erasure_of_shards.ts';
import { OrgErasureOfShards, OrgErasureStore } from '../../../sql/stores/org_erasure.ts';
import { RetentionStore } from '../../../sql/stores/retention.ts';
import { aText, DAY, on, openCold, type TestCold, textSum } from '../retention/a_cold.ts';

const { signal } = new AbortController();
const log = createLogger('test', 'silent');
const SCOPE = { org_id: 'org_a', job_id: 'job_00000000000000aa' };
let a: TestCold;
let b: TestCold;
beforeAll(async () => {
  a = await openCold(undefined, 'a');
  b = await openCold(`file://${a.folder}/objects`, 'b');
});
afterEach(async () => {
  for (const shard of [a, b]) {
    await shard.clean();
    await shard.store.database.run('TRUNCATE TABLE erasures');
  }
});
afterAll(async () => {
  await b.close();
  await a.close();
});

const retire = (day: number) =>
  createRetentionOfShards(
    [a, b].map(({ store, tables, cold }, index) => ({
      name: 'ab'.charAt(index),
      deps: {
        store: new RetentionStore(store.client),
        tables,
        cold,
        policies: () => Promise.resolve([]),
        tracesDeleted: () => Promise.resolve(),
      },
    })),
  )({ now: on(day), signal, log });

const restore = (trace_ids: string[] | null, progress: (done: number, total: number) => void = () => undefined) =>
  createRestore({
    shards: [a, b],
    retentionOf: () => DEFAULT_RETENTION,
    openJobs: () => new Set(),
    now: () => on(DAY + 31),
  })({
    job_id: 'job_00000000000000bb',
    org_id: 'org_a',
    args: { since_day: null, until_day: null, trace_ids },
    progress,
    signal,
    log,
  });

const both = (sql: string): Promise<string[]> => Promise.all([a, b].map((shard) => shard.value(sql)));
const tracesIn = (table: string): Promise<string[]> =>
  both(`SELECT arrayStringConcat(arraySort(groupUniqArray(trace_id)), ' ') FROM ${table}`);

it('moves the texts of each shard to objects of its own, and restores those that are asked for from both', async () => {
  await a.land([
    aText(DAY, { trace_id: 't_a1' }),
    aText(DAY, { trace_id: 't_a2' }),
    aText(DAY + 1, { trace_id: 't_a2' }),
  ]);
  await b.land([aText(DAY, { trace_id: 't_b' })]);
  const before = await both(textSum('org_a'));
  expect(await retire(DAY + 32)).toMatchObject({
    days_exported: 3,
    texts_exported: 4,
    texts_dropped: 4,
    days_failed: 0,
  });
  expect(a.files()).toEqual([
    'org=org_a/shard=a/day=2026-03-02.parquet',
    'org=org_a/shard=a/day=2026-03-03.parquet',
    'org=org_a/shard=b/day=2026-03-02.parquet',
  ]);
  expect(await both('SELECT count() FROM span_texts')).toEqual(['0', '0']);
  expect(await restore(['t_a1', 't_b', 't_nowhere'])).toEqual({
    days: 2,
    texts_found: 2,
    texts_restored: 2,
    unknown_trace_ids: 1,
  });
  expect(await tracesIn('span_texts')).toEqual(['t_a1', 't_b']);
  const steps: string[] = [];
  expect(await restore(null, (done, total) => steps.push(`${done}/${total}`))).toEqual({
    days: 3,
    texts_found: 4,
    texts_restored: 2,
  });
  expect([steps[0], steps.at(-1)]).toEqual(['0/3', '3/3']);
  expect(await both(textSum('org_a'))).toEqual(before);
});

it('retires the texts of a shard although an object of another one is missing, and fails with its error', async () => {
  await a.land([aText(DAY, { trace_id: 't_a' })]);
  await b.land([aText(DAY, { trace_id: 't_b' })]);
  await retire(DAY + 31);
  await a.land([aText(DAY, { trace_id: 't_a' })]);
  await b.land([aText(DAY, { trace_id: 't_b' })]);
  rmSync(path.join(a.folder, 'objects', 'org=org_a/shard=a/day=2026-03-02.parquet'));
  await expect(retire(DAY + 31)).rejects.toThrow(/shard=a\/day=2026-03-02.parquet cannot be read/);
  expect(await both('SELECT count() FROM span_texts')).toEqual(['1', '0']);
  expect(await b.restore('org_a')).toMatchObject({ texts_restored: 2 });
});

it('erases a trace, its replays in other shards, and its scores in the first shard', async () => {
  await a.land([
    aText(DAY, { trace_id: 'bob_a', user_id: 'bob' }),
    aText(DAY, { trace_id: 'again_a', attributes: { replay_of: 'ann_b' } }),
  ]);
  await b.land([
    aText(DAY, { trace_id: 'ann_b', user_id: 'ann' }),
    aText(DAY + 1, { trace_id: 'judging_b', attributes: { judged_trace_id: 'again_a' } }),
    aText(DAY, { trace_id: 'bob_b', user_id: 'bob' }),
  ]);
  for (const table of ['judge_scores', 'user_scores', 'incident_traces'])
    await a.store.database.run(
      `INSERT INTO ${table} (org_id, trace_id) SELECT 'org_a', arrayJoin(['ann_b', 'judging_b', 'bob_b'])`,
    );
  await b.store.database.run(
    "INSERT INTO judge_scores (org_id, trace_id) VALUES ('org_a', 'ann_b'), ('org_a', 'bob_b')",
  );
  await a.store.database.run(
    "INSERT INTO incident_traces (org_id, cluster_id, trace_id, sample) VALUES ('org_a', 'clu_1', 'ann_b', 'of ann')",
  );
  await a.store.database.run(
    "INSERT INTO incidents (org_id, incident_id, cluster_id, status, sample) VALUES ('org_a', 'inc_1', 'clu_1', 'open', 'of ann')",
  );
  const shards = [a, b].map(({ store }) => new ErasureStore(store.client));
  const store = new ErasureOfShards(shards);
  const marks = [0, 1, 2, 3].map(() => Number.MAX_SAFE_INTEGER);
  for (let runs = 1; runs <= 2; runs++) {
    await store.collect(SCOPE, { attribute: 'user_id', values: ['ann'] });
    expect(await store.traces(SCOPE, '', 10)).toEqual(['again_a', 'ann_b', 'judging_b']);
    for (const shard of shards) expect(await shard.traceCount(SCOPE)).toBe(3);
    expect([...(await store.listed(SCOPE, ['ann_b', 'bob_b']))]).toEqual(['ann_b']);
    expect(await Promise.all(shards.map((shard) => shard.days(SCOPE)))).toEqual([[DAY], [DAY, DAY + 1]]);
    const found = await store.found(SCOPE);
    expect([found.get('spans'), found.get('judge_scores'), found.get('user_scores')]).toEqual([3, 3, 2]);
    expect((await store.samples(SCOPE, 10)).map(({ sample }) => sample)).toEqual(runs === 1 ? ['of ann'] : []);
    await store.emptySamples(SCOPE, signal);
    await store.erase(SCOPE, runs === 1 ? null : marks, signal);
    expect(await store.remaining(SCOPE, marks)).toEqual(new Map());
  }
  for (const table of ['spans', 'span_texts', 'traces'])
    expect([table, ...(await tracesIn(table))]).toEqual([table, 'bob_a', 'bob_b']);
  expect(await tracesIn('judge_scores')).toEqual(['bob_b', 'bob_b']);
  for (const table of ['user_scores', 'incident_traces'])
    expect([table, ...(await tracesIn(table))]).toEqual([table, 'bob_b', '']);
  expect(await a.value('SELECT sample FROM incidents FINAL')).toBe('');
  expect(await store.jobs()).toEqual([SCOPE.job_id]);
  await store.forget(SCOPE.job_id);
  expect(await store.jobs()).toEqual([]);
});

it('deletes the rows of an organization in both shards', async () => {
  for (const [name, shard] of [
    ['a', a],
    ['b', b],
  ] as const)
    await shard.land([
      aText(DAY, { trace_id: `t_${name}` }),
      aText(DAY, { org_id: 'org_b', trace_id: `kept_${name}` }),
    ]);
  await b.store.landSpans([aText(DAY, { trace_id: 't_b' })]);
  await a.store.database.run("INSERT INTO user_scores (org_id, trace_id) VALUES ('org_a', 't_b')");
  const store = new OrgErasureOfShards([a, b].map((shard) => new OrgErasureStore(shard.store.client)));
  const remaining = await store.remaining('org_a');
  expect(Object.fromEntries(remaining)).toMatchObject({
    spans: 3,
    span_texts: 2,
    span_texts_recent: 1,
    user_scores: 1,
  });
  const order = [...remaining.keys()];
  expect([order[0], order[1], order.at(-1)]).toEqual(['span_texts_recent', 'span_texts', 'trace_lookup']);
  await store.erase('org_a', order, signal);
  expect(await store.remaining('org_a')).toEqual(new Map());
  for (const table of ['spans', 'span_texts', 'traces'])
    expect([table, ...(await tracesIn(table))]).toEqual([table, 'kept_a', 'kept_b']);
});
