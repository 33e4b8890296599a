// Erasure as callers see it: a real API, a real worker, the real engine, and a folder of objects.
// After one of two people is erased, no endpoint returns anything about that person, and the other
// person's data is unchanged.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createHash } from 'node:crypto';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { anAccount, asOperator, type Caller } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';

const DAY_MS = 86_400_000;
const folder = tempDir('erasure');
let service: TestService;
let api: TestApi;
let org = '';
let owner: Caller = {};
let key: Caller = {};

beforeAll(async () => {
  service = await TestService.start({
    worker: {
      SERVICE_DATA_DIR: folder,
      SERVICE_OBJECT_STORE: `file://${folder}/objects`,
      SERVICE_TRACE_GRACE_MS: '50',
    },
  });
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
  removeDir(folder);
});

beforeEach(async () => {
  ({ org, owner, key } = await anAccount({ api }));
});

const data = ({ json }: Answer): Record<string, unknown> => json?.['data'] as Record<string, unknown>;
const list = ({ json }: Answer): Record<string, unknown>[] => json?.['data'] as Record<string, unknown>[];
const get = (path: string): Promise<Answer> => call(api, 'GET', path, { headers: key });
const erase = (body: unknown, headers = owner): Promise<Answer> =>
  call(api, 'POST', `/orgs/${org}/gdpr/erase`, { headers, body });

async function jobEnds(asked: Answer): Promise<Record<string, unknown>> {
  expect([asked.status, asked.text]).toEqual([202, expect.stringContaining('job_id')]);
  const id = String(data(asked)['job_id']);
  let job: Record<string, unknown> = {};
  await eventually(
    async () => {
      job = data(await call(api, 'GET', `/v1/jobs/${id}`, { headers: owner }));
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 120_000, what: 'the end of the job' },
  );
  return job;
}

/** Sends `steps` steps of a trace whose texts mention `word`. */
async function send(trace_id: string, word: string, attributes: Record<string, unknown>, steps = 1): Promise<void> {
  const events = Array.from({ length: steps }, (_, index) => ({
    name: 'step',
    event_type: 'llm',
    model: 'gpt-4o',
    outcome: 'success',
    duration_ms: 1,
    trace_id,
    span_id: `${trace_id}-${word}-${index}`,
    // Only the first step names the person; the others belong to the same trace.
    attributes: {
      prompt: `about ${word} ${index}`,
      response: `${word} said`,
      input_tokens: 10,
      output_tokens: 5,
      ...(index === 0 ? attributes : {}),
    },
  }));
  const sent = await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: key, body: { events } });
  expect([sent.status, sent.text]).toEqual([200, expect.any(String)]);
}
const textOf = async (trace_id: string): Promise<string> => (await get(`/v1/traces/${trace_id}/tree`)).text;
const landed = (trace_id: string, word: string): Promise<void> =>
  eventually(async () => (await textOf(trace_id)).includes(`${word} said`), { what: `the texts of ${trace_id}` });
const searched = (word: string): Promise<void> =>
  eventually(async () => list(await get(`/v1/spans/search?q=${word}`)).length > 0, { what: `${word} to be found` });

it('an erasure removes one person from every read, table, object and the log; other persons, costs and budgets stay', async () => {
  await call(api, 'PUT', `/orgs/${org}/retention`, {
    headers: owner,
    body: { telemetry_events: { full_prompt_response_days: 5 } },
  });
  for (const who of ['ann', 'bob']) {
    await send(`${who}-cold`, `zanzibar${who}`, { user_id: who, session_id: `s-${who}` }, 2);
    await landed(`${who}-cold`, `zanzibar${who}`);
    await searched(`zanzibar${who}`);
  }
  const retired = await call(api, 'POST', '/admin/jobs/retention/run', {
    headers: asOperator,
    body: { now: new Date(Date.now() + 10 * DAY_MS).toISOString() },
  });
  expect(data(retired)).toMatchObject({ result: { texts_exported: 4 } });
  for (const who of ['ann', 'bob']) {
    await send(`${who}-warm`, `kilwa${who}`, { user_id: who, session_id: `s-${who}` }, 2);
    await landed(`${who}-warm`, `kilwa${who}`);
  }
  await searched('kilwaann');
  await searched('kilwabob');
  const score = await call(api, 'POST', '/v1/scores', {
    headers: key,
    body: { trace_id: 'ann-warm', name: 'helpful', value: true, comment: 'ann liked it' },
  });
  expect(score.status).toBe(201);
  await eventually(async () => list(await get('/v1/scores?trace_id=ann-warm')).length === 1, { what: 'the score' });
  const treeOf = async (trace_id: string): Promise<unknown> => data(await get(`/v1/traces/${trace_id}/tree`))['spans'];
  const bob = [await treeOf('bob-warm'), await treeOf('bob-cold')];
  const money = async () => [data(await get('/v1/cost/summary')), data(await get('/v1/budgets'))];
  const before = await money();

  const job = await jobEnds(await erase({ attribute: 'user_id', value: 'ann' }));
  expect(job).toMatchObject({
    kind: 'erase',
    status: 'complete',
    error: null,
    result: { matched_traces: 2, spans: 4, texts: 2, objects_rewritten: 1, cold_texts: 2, remaining: 0 },
  });

  for (const trace of ['ann-warm', 'ann-cold']) {
    for (const path of ['tree', 'timeline']) expect((await get(`/v1/traces/${trace}/${path}`)).status).toBe(404);
    expect((await call(api, 'POST', `/v1/traces/${trace}/export`, { headers: key, body: {} })).status).toBe(404);
  }
  expect(
    list(await get('/v1/traces'))
      .map(({ trace_id }) => trace_id)
      .sort(),
  ).toEqual(['bob-cold', 'bob-warm']);
  for (const path of ['/v1/traces?user_id=ann', '/v1/traces?search=kilwaann', '/v1/spans/search?q=kilwaann'])
    expect([path, list(await get(path))]).toEqual([path, []]);
  for (const path of ['/v1/sessions', '/v1/users']) {
    const { status, text } = await get(path);
    expect([status, text.includes('ann'), text.includes('bob')]).toEqual([200, false, true]);
  }
  const names = [
    'spans',
    'span_texts',
    'span_texts_recent',
    'traces',
    'user_scores',
    'judge_scores',
    'incident_traces',
  ];
  for (const table of names)
    expect([
      table,
      await service.database.run(
        `SELECT count() FROM ${table} WHERE org_id = '${org}' AND startsWith(trace_id, 'ann') SETTINGS apply_deleted_mask = 0`,
      ),
    ]).toEqual([table, '0\n']);
  expect(await service.database.run('SELECT count() FROM erasures')).toBe('0\n');
  expect([await treeOf('bob-warm'), await treeOf('bob-cold')]).toEqual(bob);
  expect(await money()).toEqual(before);
  const { state } = await api.log.jsm.streams.info(INGEST_STREAM);
  expect([
    state.messages === 0 || state.first_seq > Number((job['result'] as Record<string, unknown>)['log_purged_through']),
  ]).toEqual([true]);

  const restored = await jobEnds(
    await call(api, 'POST', `/orgs/${org}/cold-storage/restore`, { headers: owner, body: { since: '2020-01-01' } }),
  );
  expect(restored).toMatchObject({ status: 'complete', result: { texts_found: 2, texts_restored: 2 } });
  expect(await treeOf('bob-cold')).toMatchObject([{ response: 'zanzibarbob said' }, { response: 'zanzibarbob said' }]);

  // Neither the audit log nor the stored record of the job names the person.
  let audit = '';
  await eventually(
    async () => {
      audit = (await call(api, 'GET', `/orgs/${org}/audit-log?action=gdpr.erase`, { headers: owner })).text;
      return audit.includes('value_sha256');
    },
    { what: 'the audit record' },
  );
  expect(audit).toContain(createHash('sha256').update(`${org}\nann`).digest('hex'));
  expect(audit).toContain('"attribute":"user_id"');
  expect(audit).not.toContain('"ann"');
  for (const bucket of ['job_records', 'erase_asks'] as const) {
    const kv = await api.log.bucket(bucket);
    for await (const name of await kv.keys()) expect((await kv.get(name))?.string()).not.toContain('"ann"');
  }

  // A late event starts the trace over: no erased data comes back.
  await send('ann-warm', 'later', {});
  await landed('ann-warm', 'later');
  await eventually(async () => list(await get('/v1/traces')).length === 3, { what: 'the trace' });
  const anew = list(await get('/v1/traces')).find(({ trace_id }) => trace_id === 'ann-warm');
  expect([anew?.['user_id'], anew?.['session_id']]).toEqual([null, null]);
  expect((await get('/v1/traces?user_id=ann')).json?.['data']).toEqual([]);
  expect((await get('/v1/traces')).json?.['meta']).toMatchObject({ total: 3 });
});

it('an erasure also removes events accepted before it that have not landed, and finds values stored as a hash', async () => {
  const policy = { enabled: true, mode: 'hash' };
  expect((await call(api, 'PUT', `/orgs/${org}/pii-policy`, { headers: key, body: policy })).status).toBe(200);
  let tries = 0;
  await eventually(
    async () => {
      const trace = `warm-up-${tries++}`;
      await send(trace, 'pemba', { user_id: 'warm@example.com' });
      await landed(trace, 'pemba');
      return !(await textOf(trace)).includes('warm@example.com');
    },
    { what: 'the policy to hold' },
  );
  await send('ann-1', 'mafia', { user_id: 'ann@example.com' });
  await landed('ann-1', 'mafia');
  await service.killWorker();
  await send('ann-2', 'mafia', { user_id: 'ann@example.com' });
  await send('bob-2', 'mafia', { user_id: 'bob@example.com' });
  const asked = await erase({ attribute: 'user_id', value: 'ann@example.com' });
  await service.startWorker();
  const job = await jobEnds(asked);
  expect(job).toMatchObject({ status: 'complete', result: { matched_traces: 2, spans: 2, remaining: 0 } });
  expect([(await get('/v1/traces/ann-1/tree')).status, (await get('/v1/traces/ann-2/tree')).status]).toEqual([
    404, 404,
  ]);
  await landed('bob-2', 'mafia');
  const nobody = await jobEnds(await erase({ attribute: 'user_id', value: '[EMAIL]' }));
  expect(nobody).toMatchObject({ status: 'complete', result: { matched_traces: 0, remaining: 0 } });
});

it('an identical event sent after its erasure is stored as new data, once, also after a restart', async () => {
  const count = async (): Promise<string> =>
    service.database.run(`SELECT count() FROM spans WHERE org_id = '${org}' AND trace_id = 'ann-again'`);
  const sent = () => send('ann-again', 'unguja', { user_id: 'ann' });
  // Sends a further step of the trace and waits until it has landed: by then the worker has decided
  // about every earlier event.
  let fences = 0;
  const fence = async (): Promise<void> => {
    fences += 1;
    await send('ann-again', `fence${fences}`, {});
    await landed('ann-again', `fence${fences}`);
  };
  await sent();
  await landed('ann-again', 'unguja');
  await sent();
  await fence();
  expect(await count()).toBe('2\n');
  expect(await jobEnds(await erase({ attribute: 'user_id', value: 'ann' }))).toMatchObject({
    status: 'complete',
    result: { spans: 2 },
  });
  expect(await count()).toBe('0\n');

  await sent();
  await landed('ann-again', 'unguja');
  // An identical event sent again is a duplicate.
  await sent();
  await fence();
  expect(await count()).toBe('2\n');

  // A worker that takes over knows of the erasure from the store alone.
  expect(await jobEnds(await erase({ attribute: 'user_id', value: 'ann' }))).toMatchObject({
    status: 'complete',
    result: { spans: 2 },
  });
  await service.killWorker();
  await service.startWorker();
  await sent();
  await landed('ann-again', 'unguja');
  await sent();
  await fence();
  expect(await count()).toBe('2\n');
});

it.each([
  [{}, 'attribute'],
  [{ attribute: '', value: 'x' }, 'attribute'],
  [{ attribute: ' ', value: 'x' }, 'attribute'],
  [{ attribute: 'user_id\n', value: 'x' }, 'attribute'],
  [{ attribute: 'user_id' }, 'value'],
  [{ attribute: 'user_id', value: '' }, 'value'],
  [{ attribute: 'user_id', value: 7 }, 'value'],
  [{ attribute: 'user_id', value: 'x'.repeat(1025) }, 'value'],
  [{ attribute: 'user_id', value: 'x', all: true }, 'all'],
])('an erasure request rejects %j, naming the field', async (body, field) => {
  const refused = await erase(body);
  expect([refused.status, refused.json?.['code']]).toEqual([422, 'invalid_request']);
  expect(refused.json?.['detail']).toContain(field);
});

it('only an owner may request an erasure, and no key', async () => {
  expect((await erase({ attribute: 'user_id', value: 'x' }, key)).status).toBe(403);
});
