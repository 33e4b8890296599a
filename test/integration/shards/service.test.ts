// Jobs that rewrite rows, as a worker with two shards runs them: real engines, each with half of the
// partitions, and one folder of objects.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import { runStatement } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { PARTITIONS, startWorker, type TestWorker } from '../../support/pipeline.ts';
import {
  createShardDatabase,
  type ShardDatabase,
  type ShardEngines,
  startShardEngines,
} from '../../support/shard_engines.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';
import { type Account, anAccount, asOperator } from '../a_tenant.ts';
import type { TestService } from '../a_service.ts';
import { DAY_MS, priced, PricedTenant } from '../costs/a_repricing.ts';

const folder = tempDir('shards');
let engines: ShardEngines;
let database: ShardDatabase;
let nats: TestNats;
let worker: TestWorker;
let api: TestApi;
let account: Account;
let tenant: PricedTenant;

beforeAll(async () => {
  [engines, nats] = await Promise.all([startShardEngines(2), startTestNats()]);
  database = await createShardDatabase(engines);
  const [first = '', second = ''] = database.urls;
  worker = startWorker({
    natsUrl: nats.url,
    more: {
      SERVICE_CLICKHOUSE_SHARDS: `s1:0-1=${first} s2:2-3=${second}`,
      SERVICE_DATA_DIR: folder,
      SERVICE_OBJECT_STORE: `file://${folder}/objects`,
      SERVICE_TRACE_GRACE_MS: '50',
    },
  });
  await worker.ready;
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.allUrls[0] ?? '' });
  account = await anAccount({ api });
  const run = (sql: string): Promise<string> => runStatement(database.allUrls[0] ?? '', sql);
  tenant = new PricedTenant({ database: { run } } as unknown as TestService, api, account);
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.remove();
  await engines.remove();
  removeDir(folder);
});

const data = ({ json }: Answer): Record<string, unknown> => json?.['data'] as Record<string, unknown>;
const both = (sql: string): Promise<string[]> =>
  Promise.all(database.urls.map(async (url) => (await runStatement(url, sql)).trim()));
const countIn = (table: string, where = '1'): Promise<string[]> =>
  both(`SELECT count() FROM ${table} WHERE ${where} SETTINGS apply_deleted_mask = 0`);

/** Returns an id of a trace that begins with a name and is in a shard: 0 or 1. */
function traceIn(shard: number, name: string): string {
  for (let number = 0; ; number++) {
    const trace_id = `${name}-${number}`;
    if (Math.floor(partitionOf(account.org, trace_id, PARTITIONS) / 2) === shard) return trace_id;
  }
}

async function jobEnds(asked: Answer, as: Account['owner'], jobs = '/v1/jobs'): Promise<Record<string, unknown>> {
  expect([asked.status, asked.text]).toEqual([202, expect.stringContaining('job_id')]);
  let job: Record<string, unknown> = {};
  await eventually(
    async () => {
      job = data(await call(api, 'GET', `${jobs}/${String(data(asked)['job_id'])}`, { headers: as }));
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 120_000, what: 'the end of the job' },
  );
  return job;
}

/** Sends a call of each person for each shard, and resolves once they have landed. */
async function land(which: string): Promise<void> {
  for (const shard of [0, 1])
    for (const who of ['ann', 'bob'])
      await tenant.send({ trace_id: traceIn(shard, `${who}-${which}`), attributes: { user_id: who } });
  for (const table of ['spans', 'traces'])
    await eventually(
      async () => (await countIn(table, `org_id = '${account.org}'`)).every((rows) => Number(rows) >= 2),
      {
        what: `rows of ${table} in both shards`,
      },
    );
}

it('retention, repricing, an erasure, a restore and the deletion of an organization work in both shards', async () => {
  const { org, owner } = account;
  await call(api, 'PUT', `/orgs/${org}/retention`, {
    headers: owner,
    body: { telemetry_events: { full_prompt_response_days: 5 } },
  });
  await tenant.setPrices(priced(1, 1));
  await land('cold');
  const retired = await call(api, 'POST', '/admin/jobs/retention/run', {
    headers: asOperator,
    body: { now: new Date(Date.now() + 10 * DAY_MS).toISOString() },
  });
  expect(data(retired)).toMatchObject({ result: { days_exported: 2, texts_exported: 4, texts_dropped: 4 } });
  expect(await countIn('span_texts')).toEqual(['0', '0']);
  expect(await both("SELECT groupUniqArray(extract(object_key, 'shard=[^/]*')) FROM cold_objects FINAL")).toEqual([
    "['shard=s1']",
    "['shard=s2']",
  ]);

  await land('warm');
  await eventually(async () => (await countIn('spans')).join() === '4,4', { what: 'all spans' });
  const costs = () => both('SELECT toFloat64(sum(cost_usd)) * 1e6 FROM spans');
  const use = () => both('SELECT toFloat64(sum(cost_usd)) * 1e6 FROM usage_events');
  expect([await costs(), await use()]).toEqual([
    ['4400', '4400'],
    ['4400', '4400'],
  ]);
  await tenant.setPrices(priced(2, 2));
  expect(await tenant.repriced()).toMatchObject({ spans: 8, repriced: 8 });
  expect([await costs(), await use()]).toEqual([
    ['8800', '8800'],
    ['8800', '8800'],
  ]);

  const replay = traceIn(0, 'replay');
  await tenant.send({ trace_id: replay, attributes: { replay_of: traceIn(1, 'ann-warm') } });
  await eventually(async () => (await countIn('spans'))[0] === '5', { what: 'the replay' });
  const score = { trace_id: traceIn(1, 'ann-warm'), name: 'helpful', value: true };
  expect((await tenant.call('POST', '/v1/scores', { body: score })).status).toBe(201);
  // Scores of people are in the first shard, whatever the shard of their trace.
  await eventually(async () => (await countIn('user_scores')).join() === '1,0', { what: 'the score' });

  const asked = await call(api, 'POST', `/orgs/${org}/gdpr/erase`, {
    headers: owner,
    body: { attribute: 'user_id', value: 'ann' },
  });
  expect(await jobEnds(asked, owner)).toMatchObject({
    status: 'complete',
    error: null,
    result: { matched_traces: 5, spans: 5, objects_rewritten: 2, cold_texts: 2, remaining: 0 },
  });
  const names = ['spans', 'traces', 'span_texts', 'span_texts_recent', 'user_scores'];
  for (const table of names)
    expect([table, await countIn(table, `startsWith(trace_id, 'ann') OR trace_id = '${replay}'`)]).toEqual([
      table,
      ['0', '0'],
    ]);
  expect(await countIn('spans')).toEqual(['2', '2']);
  expect(await countIn('erasures')).toEqual(['0', '0']);

  const restored = await jobEnds(
    await call(api, 'POST', `/orgs/${org}/cold-storage/restore`, {
      headers: owner,
      body: { since: '2020-01-01', trace_ids: [traceIn(0, 'bob-cold'), traceIn(1, 'bob-cold'), 'nowhere'] },
    }),
    owner,
  );
  expect(restored).toMatchObject({
    status: 'complete',
    result: { days: 2, texts_found: 2, texts_restored: 2, unknown_trace_ids: 1 },
  });
  for (const table of ['span_texts', 'span_texts_recent'])
    expect(await countIn(table, "startsWith(trace_id, 'bob-cold')")).toEqual(
      table === 'span_texts' ? ['1', '1'] : ['0', '0'],
    );

  const gone = await jobEnds(
    await call(api, 'DELETE', `/admin/orgs/${org}`, { headers: asOperator }),
    asOperator,
    '/admin/jobs',
  );
  expect(gone).toMatchObject({ status: 'complete', result: { rows: { spans: 4 }, objects: 2, remaining: 0 } });
  for (const table of ['spans', 'traces', 'usage_events', 'span_texts', 'trace_lookup', 'cold_objects'])
    expect([table, await countIn(table, `org_id = '${org}'`)]).toEqual([table, ['0', '0']]);
  const objects = readdirSync(path.join(folder, 'objects'), { recursive: true, withFileTypes: true });
  expect(objects.filter((entry) => entry.isFile())).toEqual([]);
});
