// Deleting an organization: real APIs, real workers that are killed, the real engine, a folder of objects. An org that has something of
// everything is deleted: no table, bucket, stream or object holds anything of it, its neighbour is as before, and its id can be used again.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BucketName, BUCKETS, DEAD_LETTERS_STREAM, deadLetterSubject, streamConfigs } from '../../../ops/streams.ts';
import { freshDelivery, letterOf, publishDelivery, WebhookDeadLetters } from '../../../ops/webhook_queue.ts';
import { publishRecord } from '../../../ops/nats/publish_record.ts';
import { orgTenantToken } from '../../../ops/tenant_token.ts';
import { deadLetterCodec } from '../../../schemas/codec.ts';
import { agentOrgToken } from '../../../schemas/records/agent.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { after, score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, ORG, type TestApi, tokenOf } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

/** A name that is a part of no other text of the service. */
const GONE = 'org_quagga';
/** Begins with the other's name: what goes by a prefix would go with it. */
const NEIGHBOUR = 'org_quagga2';
const DAY_MS = 86_400_000;
const folder = tempDir('org-deletion');
const admin = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
type Headers = Record<string, string | undefined>;
type Data = Record<string, unknown>;

let service: TestService;
let upstream: TestUpstream;
let receiver: Receiver;
let api: TestApi;
let other: TestApi;

beforeAll(async () => {
  [upstream, receiver] = await Promise.all([startUpstream(), startReceiver()]);
  service = await TestService.start({
    api: { llmUrl: upstream.url },
    worker: {
      SERVICE_DATA_DIR: folder,
      SERVICE_OBJECT_STORE: `file://${folder}/objects`,
      SERVICE_TRACE_GRACE_MS: '50',
      SERVICE_LLM_BASE_URL: upstream.url,
    },
  });
  [api, other] = await Promise.all([service.startApi(), service.startApi()]);
}, 120_000);

afterAll(async () => {
  await service.close();
  await upstream.close();
  await receiver.close();
  removeDir(folder);
});

const data = ({ json }: Answer): Data => json?.['data'] as Data;
const list = ({ json }: Answer): Data[] => json?.['data'] as Data[];
async function ok(answer: Promise<Answer>): Promise<Answer> {
  const got = await answer;
  expect([got.status < 300, got.text]).toEqual([true, expect.any(String)]);
  return got;
}

interface TestOrg {
  org: string;
  key: Headers;
  owner: Headers;
}

async function makeOrg(org: string): Promise<TestOrg> {
  const body = {
    org_id: org,
    name: `Name of ${org}`,
    plan_name: 'enterprise',
    owner: { user_id: `u_${org}`, email: `${org}@example.com` },
  };
  const headers = { ...admin, 'Idempotency-Key': crypto.randomUUID() };
  await ok(call(api, 'POST', '/admin/orgs', { headers, body }));
  const made = await ok(call(api, 'POST', `/admin/orgs/${org}/api-keys`, { headers: admin, body: { name: 'key', scopes: ['*'] } }));
  const key = { 'X-Org-Api-Key': String(made.json?.['raw_key']), 'X-Org-Id': org };
  return { org, key, owner: asUser(await tokenOf({ sub: `u_${org}` }), org) };
}

const anEvent = (trace_id: string, over: Data = {}): Data => ({
  name: 'step',
  event_type: 'llm',
  model: 'gpt-4o',
  outcome: 'success',
  duration_ms: 1,
  trace_id,
  span_id: `${trace_id}-s`,
  attributes: { prompt: `what of ${trace_id}`, response: `${trace_id} said`, input_tokens: 10, output_tokens: 5, agent_id: 'a1' },
  ...over,
});
const ingest = ({ org, key }: TestOrg, events: Data[], through = api): Promise<Answer> =>
  call(through, 'POST', `/orgs/${org}/ingest/custom`, { headers: { ...key, 'Idempotency-Key': crypto.randomUUID() }, body: { events } });
const landed = ({ key }: TestOrg, trace_id: string): Promise<void> =>
  eventually(async () => (await call(api, 'GET', `/v1/traces/${trace_id}/tree`, { headers: key })).text.includes(`${trace_id} said`), {
    what: `the texts of ${trace_id}`,
  });
const post = async (path: string, { key }: TestOrg, body: unknown): Promise<Data> =>
  data(await ok(call(api, 'POST', path, { headers: key, body })));

async function firstKey(keys: AsyncIterable<string>): Promise<string | null> {
  let first: string | null = null;
  for await (const key of keys) first ??= key;
  return first;
}

/** Gives an org something of everything that the service stores. */
async function fill(own: TestOrg): Promise<void> {
  const { org, key, owner } = own;
  const put = (at: string, body: unknown, headers = owner) => ok(call(api, 'PUT', at, { headers, body }));
  // Its own settings.
  await put(`/orgs/${org}/policy`, { compare_threshold_percent: 7 });
  await put(`/orgs/${org}/pii-policy`, { enabled: true, mode: 'hash', kinds: ['card'] });
  await put(`/orgs/${org}/retention`, { telemetry_events: { full_prompt_response_days: 5 } });
  await put(`/orgs/${org}/prices`, { prices: [{ model: 'own', input_usd_per_mtok: 1, output_usd_per_mtok: 2 }] });
  // As the route makes it, which this engine's database has no views for.
  const analyst = { user: `analyst_${String(org.length)}`, org_id: org, name: 'ann', password_hash: '00' };
  await (await api.log.bucket('analysts')).put(analyst.user, JSON.stringify({ ...analyst, created_at: new Date().toISOString() }));
  await put(`/orgs/${org}/cost/anomaly-config`, { z_threshold: 2, lookback_days: 10 });
  await put(`/orgs/${org}/budget`, { tokens: { soft_limit: 1, hard_limit: 1_000_000 } });
  const webhook = { url: receiver.url, events: ['trace.completed', 'agent.registered', 'cost.threshold_breach'] };
  await ok(call(api, 'POST', `/orgs/${org}/webhooks`, { headers: owner, body: webhook }));
  await ok(call(api, 'POST', `/orgs/${org}/members`, { headers: owner, body: { email: `b.${org}@example.com`, role: 'viewer' } }));
  const token = data(await ok(call(api, 'POST', `/orgs/${org}/agents/register-tokens`, { headers: owner, body: {} })));
  await ok(call(api, 'POST', `/orgs/${org}/agents/register-tokens`, { headers: owner, body: {} }));
  const agent = { agent_id: 'a1', name: 'a', framework: 'custom', register_token: token['register_token'] };
  await ok(call(api, 'POST', `/orgs/${org}/agents/register`, { headers: key, body: agent }));
  // What it was asked, and what it answered.
  const rule = { name: 'r', kind: 'deterministic', rule: { type: 'contains', value: 'said' }, threshold: { pass: 1 } };
  const judge = await post('/v1/judges', own, rule);
  const llm = {
    name: 'l',
    kind: 'llm',
    model: 'm',
    prompt_template: 'Judge {{response}}',
    rubric: { scale: [1, 5], criteria: ['c'] },
    threshold: { pass: 4 },
    cooldown_seconds: 60,
  };
  const llmJudge = await post('/v1/judges', own, llm);
  await ok(call(api, 'PATCH', `/v1/judges/${String(judge['judge_id'])}`, { headers: key, body: { name: 'renamed' } }));
  await post('/v1/prompts', own, { name: 'p', template: 'Say {{question}}' });
  const dataset = await post('/v1/datasets', own, { name: 'd', version: '1', items: [{ input: { question: 'q' } }] });
  const grant = {
    user_id: `u_${org}`,
    resource: { type: 'dataset', id: dataset['dataset_id'] },
    permissions: ['datasets:read'],
    expires_at: new Date(Date.now() + DAY_MS).toISOString(),
  };
  await ok(call(api, 'POST', `/orgs/${org}/grants`, { headers: owner, body: grant }));
  await ok(ingest(own, [anEvent('t-cold')]));
  await landed(own, 't-cold');
  const runs = { headers: admin, body: { now: new Date(Date.now() + 10 * DAY_MS).toISOString() } };
  await ok(call(api, 'POST', '/admin/jobs/retention/run', runs));
  const failing = Array.from({ length: 6 }, (_, i) =>
    anEvent(`t-bad-${String(i)}`, {
      outcome: 'error',
      attributes: { error_message: 'it broke', agent_id: 'a1', response: `t-bad-${String(i)} said` },
    }),
  );
  await ok(ingest(own, [anEvent('t-warm'), ...failing]));
  await landed(own, 't-warm');
  await post('/v1/scores', own, { trace_id: 't-warm', name: 'helpful', value: true, comment: 'nice' });
  await post('/v1/evals', own, { judge_id: judge['judge_id'], trace_ids: ['t-warm'] });
  await post('/v1/evals', own, { judge_id: llmJudge['judge_id'], trace_ids: ['t-warm'] });
  await post(`/v1/datasets/${String(dataset['dataset_id'])}/run`, own, { judge_id: judge['judge_id'], prompt_version: 'p', model: 'm' });
  await ok(call(api, 'POST', `/orgs/${org}/cold-storage/restore`, { headers: owner, body: { since: '2020-01-01' } }));
  await eventually(async () => list(await call(api, 'GET', '/v1/incidents', { headers: key })).length > 0, {
    what: 'the incident',
    withinMs: 60_000,
  });
  const marks = await api.log.bucket('judging_marks');
  await eventually(async () => (await firstKey(await marks.keys(`${org}.>`))) !== null, {
    what: 'a mark of the LLM judge',
    withinMs: 60_000,
  });
  await eventually(async () => list(await call(api, 'GET', '/v1/scores?trace_id=t-warm', { headers: key })).length > 0, {
    what: 'the score',
  });
  const letter = {
    stage: 'decode',
    reason: 'invalid',
    detail: '',
    partition: 0,
    log_seq: 1,
    log_index: 0,
    died_at: 0,
    org_id: org,
    format: 'custom',
    event_hex: '',
    trace_id: 't',
    received_at: 0,
    body: Buffer.from('{}'),
  };
  await publishRecord(api.log, deadLetterSubject('decode'), deadLetterCodec, letter, { msgID: `dead-${org}`, timeoutMs: 5000 });
}

/** What waits of an org while there is no worker. */
async function fillQueues(own: TestOrg): Promise<void> {
  const { org, owner, key } = own;
  await ok(call(api, 'POST', `/orgs/${org}/members`, { headers: owner, body: { email: `c.${org}@example.com`, role: 'viewer' } }));
  await ok(call(api, 'POST', `/orgs/${org}/gdpr/erase`, { headers: owner, body: { attribute: 'user_id', value: 'nobody' } }));
  await post('/v1/scores', own, { trace_id: 't-warm', name: 'late', value: 1 });
  const judge_id = list(await call(api, 'GET', '/v1/judges', { headers: key }))[0]?.['judge_id'];
  await post('/v1/evals', own, { judge_id, trace_ids: ['t-warm'], async: true });
  const webhook = list(await ok(call(api, 'GET', `/orgs/${org}/webhooks`, { headers: owner })))[0]?.['webhook_id'];
  const delivery = freshDelivery({
    event_id: 'evt_0000000000000001',
    event: 'trace.completed',
    org_id: org,
    target_kind: 'endpoint',
    target_id: String(webhook),
    body: '{}',
    created_at: Date.now(),
  });
  // Not due for an hour, so it waits whoever reads it.
  await publishDelivery(api.log, { ...delivery, not_before: Date.now() + 3_600_000 }, 'test');
  const end = { reason: 'expired', attempts: 1, status_code: 500, error: null } as const;
  await (await WebhookDeadLetters.open(api.log)).put(letterOf(delivery, end, Date.now()));
  await ok(ingest(own, [anEvent('t-late')]));
}

/** Every table of the service with a column org_id, and how many rows of the org lie in it. */
async function rowsByTable(org: string): Promise<Record<string, number>> {
  const named = await service.database.run(
    "SELECT name FROM system.tables WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree') AND name IN (SELECT table FROM system.columns WHERE database = currentDatabase() AND name = 'org_id')",
  );
  const rows: Record<string, number> = {};
  for (const table of named.trim().split('\n'))
    rows[table] = Number(
      await service.database.run(`SELECT count() FROM ${table} WHERE org_id = '${org}' SETTINGS apply_deleted_mask = 0`),
    );
  return rows;
}

/** Texts by which a subject, a key or a value shows whose it is. */
const namesOf = (org: string): RegExp[] => [
  new RegExp(`\\b${org}\\b`),
  new RegExp(`(^|[.])(${agentOrgToken(org)}|${orgTenantToken(org)})([.]|$)`),
];

/** Streams and buckets in which the org of the test stands nowhere before it is deleted. Claims last for seconds, and may be gone. */
const UNFILLED: readonly string[] = [
  // Facts of the service, not of an org.
  'KV_jobs',
  'KV_org_deletions',
  'KV_partitions',
  'KV_repricings',
  'KV_service',
];

async function streamNames(): Promise<string[]> {
  const streams: string[] = [];
  for await (const stream of api.log.jsm.streams.names()) streams.push(stream);
  return streams;
}

/** Subjects of messages, marks of deletions too, in which the org stands: in the subject or in the message. By stream. */
async function messagesOf(org: string): Promise<Record<string, string[]>> {
  const names = namesOf(org);
  const shows = (text: string): boolean => names.some((name) => name.test(text));
  const found: Record<string, string[]> = {};
  const streams = await streamNames();
  // All that the service makes, and no stream that nobody looks at.
  const known = [
    ...(Object.keys(BUCKETS) as BucketName[]).map((name) => `KV_${name}`),
    ...streamConfigs({ replicas: 1, logBytesMax: 1 }).map(({ name }) => name),
  ];
  expect(streams.toSorted()).toEqual(known.toSorted());
  for (const stream of streams) {
    const { state } = await api.log.jsm.streams.info(stream);
    for (let seq = state.first_seq; state.messages > 0 && seq <= state.last_seq; seq++) {
      const message = await api.log.jsm.streams.getMessage(stream, { seq });
      if (message === null || (!shows(message.subject) && !shows(Buffer.from(message.data).toString('latin1')))) continue;
      (found[stream] ??= []).push(message.subject);
    }
  }
  return found;
}

const objectsOf = (org: string): string[] =>
  readdirSync(path.join(folder, 'objects'), { recursive: true })
    .map(String)
    .filter((name) => name.includes(`org=${org}/`));

const remove = (org: string, through = api): Promise<Answer> => call(through, 'DELETE', `/admin/orgs/${org}`, { headers: admin });
const jobOf = async (job_id: unknown): Promise<Data> =>
  data(await ok(call(other, 'GET', `/admin/jobs/${String(job_id)}`, { headers: admin })));
async function ended(job_id: unknown): Promise<Data> {
  let job: Data = {};
  await eventually(
    async () => {
      job = await jobOf(job_id);
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 180_000, what: 'the end of the deletion' },
  );
  return job;
}

test('deleting an org erases everything of it, also when workers are killed, and frees its id', async () => {
  upstream.behave(score(5));
  const gone = await makeOrg(GONE);
  const neighbour = await makeOrg(NEIGHBOUR);
  await fill(gone);
  await fill(neighbour);
  await service.killWorker();
  await fillQueues(gone);
  await fillQueues(neighbour);
  // Tables that only a running job fills, and one that is added later, get a row of nothing but the org.
  for (const org of [GONE, NEIGHBOUR])
    for (const table of Object.keys(await rowsByTable(org))) await service.database.run(`INSERT INTO ${table} (org_id) VALUES ('${org}')`);
  expect(Object.entries(await rowsByTable(GONE)).filter(([, rows]) => rows === 0)).toEqual([]);
  // A stream or bucket that is added later has to be filled above, or to be listed here with what keeps it empty.
  const filled = Object.keys(await messagesOf(GONE));
  expect((await streamNames()).filter((name) => !filled.includes(name) && name !== 'KV_ingest_claims').toSorted()).toEqual(UNFILLED);
  expect(objectsOf(GONE).length).toBeGreaterThan(0);
  const neighbourRows = await rowsByTable(NEIGHBOUR);
  const readNeighbour = async (): Promise<unknown[]> => {
    const paths = [
      '/v1/traces/t-warm/tree',
      '/v1/traces/t-cold/tree',
      '/v1/judges',
      '/v1/datasets',
      '/v1/prompts',
      `/orgs/${NEIGHBOUR}/api-keys`,
    ];
    const answers = await Promise.all(paths.map((at) => ok(call(other, 'GET', at, { headers: neighbour.key }))));
    return answers.map(data);
  };
  const asBefore = await readNeighbour();

  // A call of a model is under way when the deletion is asked for.
  upstream.behave(after(30_000, score(5)));
  const chat = { model: 'm', messages: [{ role: 'user', content: 'hi' }] };
  const calling = call(other, 'POST', '/v1/chat/completions', { headers: gone.key, body: chat }).catch((error: unknown) => error);
  await eventually(() => upstream.open === 1, { what: 'the call' });

  const asked = await remove(GONE);
  expect([asked.status, data(asked)['kind'], data(asked)['status']]).toEqual([202, 'delete_org', 'queued']);
  const { job_id } = data(asked);
  await calling;
  // Every process refuses its keys and members, and its id.
  for (const process of [api, other]) {
    await eventually(async () => (await ingest(gone, [anEvent('t-refused')], process)).status === 401, { what: 'its keys to be refused' });
    expect((await call(process, 'GET', '/v1/traces', { headers: gone.key })).status).toBe(401);
    expect((await call(process, 'GET', '/v1/traces', { headers: gone.owner })).status).toBe(403);
    expect((await call(process, 'PATCH', `/admin/orgs/${GONE}`, { headers: admin, body: { name: 'x' } })).json).toMatchObject({
      code: 'org_not_found',
    });
    const made = await call(process, 'POST', '/admin/orgs', {
      headers: admin,
      body: { org_id: GONE, name: 'x', plan_name: 'free', owner: { user_id: 'u', email: 'u@example.com' } },
    });
    expect([made.status, made.json?.['code']]).toEqual([409, 'conflict']);
    const again = await remove(GONE, process);
    expect([again.status, data(again)['job_id']]).toEqual([202, job_id]);
  }

  // The worker is killed in the middle, twice.
  for (const done of [1, 2]) {
    await service.startWorker();
    await eventually(async () => ((await jobOf(job_id))['progress'] as { done: number }).done >= done, {
      what: 'progress',
      withinMs: 120_000,
    });
    await service.killWorker();
  }
  expect((await jobOf(job_id))['status']).toBe('running');
  await service.startWorker();
  const job = await ended(job_id);
  expect(job).toMatchObject({ status: 'complete', error: null, result: { org_id: GONE, remaining: 0 } });

  expect(Object.entries(await rowsByTable(GONE)).filter(([, rows]) => rows > 0)).toEqual([]);
  expect(objectsOf(GONE)).toEqual([]);
  const left = await messagesOf(GONE);
  // What the service keeps: that it was deleted, and by which job.
  expect(left).toEqual({
    KV_org_deletions: [`$KV.org_deletions.${GONE}`],
    KV_job_records: [`$KV.job_records.=operator.${String(job_id)}`],
  });
  const audit = await service.database.run(
    `SELECT org_id, outcome, actor_type, target_id FROM audit_log FINAL WHERE action = 'org.delete' AND outcome = 'done' FORMAT TSV`,
  );
  expect(audit).toBe(`\tdone\toperator\t${GONE}\n`);

  // Its neighbour has what it had.
  const now = await rowsByTable(NEIGHBOUR);
  // Merges and moves of texts change these counts by themselves.
  for (const table of ['spans', 'usage_events', 'incident_traces', 'audit_log', 'webhook_deliveries', 'cold_staging'])
    expect([table, Number(now[table]) >= Number(neighbourRows[table])]).toEqual([table, true]);
  expect(await readNeighbour()).toEqual(asBefore);
  await landed(neighbour, 't-late');
  expect(objectsOf(NEIGHBOUR).length).toBeGreaterThan(0);
  expect((await api.log.jsm.streams.info(DEAD_LETTERS_STREAM)).state.messages).toBe(1);

  // An org of the same id begins with nothing, and an event that the old one had is new to it.
  const anew = await makeOrg(GONE);
  for (const at of [
    '/v1/traces',
    '/v1/judges',
    '/v1/datasets',
    '/v1/prompts',
    '/v1/evals',
    '/v1/incidents',
    `/orgs/${GONE}/agents`,
    '/v1/jobs',
  ])
    expect([at, list(await call(api, 'GET', at, { headers: anew.key }))]).toEqual([at, []]);
  expect((await call(api, 'GET', '/v1/traces', { headers: gone.key })).status).toBe(401);
  expect(data(await call(other, 'GET', '/v1/budgets', { headers: anew.key }))).toMatchObject({ tokens: { used: 0, hard_limit: null } });
  upstream.behave(score(5));
  await ok(ingest(anew, [anEvent('t-warm')]));
  await landed(anew, 't-warm');
  expect(list(await call(api, 'GET', '/v1/traces', { headers: anew.key })).map(({ trace_id }) => trace_id)).toEqual(['t-warm']);
}, 400_000);

test('the org that the service makes at its start cannot be deleted, and an unknown one is not found', async () => {
  const refused = await remove(ORG);
  expect([refused.status, refused.json?.['code']]).toEqual([409, 'conflict']);
  expect(refused.json?.['detail']).toContain('SERVICE_BOOTSTRAP_ORG_ID');
  const unknown = await remove('org_that_is_not');
  expect([unknown.status, unknown.json?.['code']]).toEqual([404, 'org_not_found']);
  expect((await call(api, 'GET', '/admin/jobs/job_0000000000000000', { headers: admin })).json).toMatchObject({ code: 'job_not_found' });
});
