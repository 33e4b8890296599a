// Test organizations with one of everything that the service stores: rows, objects, records and
// queued messages.
import { expect } from 'vitest';
import { CACHE_STREAM, cacheSubject, deadLetterSubject } from '../../../schemas/streams.ts';
import { tokenOf } from '../../../schemas/records/webhook.ts';
import { publishRecord } from '../../../ops/platform/nats/publish_record.ts';
import { freshDelivery, letterOf, publishDelivery, WebhookDeadLetters } from '../../../ops/exchange/webhook_queue.ts';
import { deadLetterCodec } from '../../../schemas/codec.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { type Account, anAccount, asOperator } from '../a_tenant.ts';
import { evaluate, failures } from '../monitors/a_monitor.ts';

const DAY_MS = 86_400_000;
export type Data = Record<string, unknown>;

export const data = ({ json }: Answer): Data => json?.['data'] as Data;
export const list = ({ json }: Answer): Data[] => json?.['data'] as Data[];
export async function ok(answer: Promise<Answer>): Promise<Answer> {
  const got = await answer;
  expect([got.status < 300, got.text]).toEqual([true, expect.any(String)]);
  return got;
}

export interface TestOrg extends Account {
  api: TestApi;
}

/** Creates an organization and a key with all rights. */
export async function makeOrg(api: TestApi, org: string): Promise<TestOrg> {
  return { ...(await anAccount({ api }, { org })), api };
}

export const anEvent = (trace_id: string, over: Data = {}): Data => ({
  name: 'step',
  event_type: 'llm',
  model: 'gpt-4o',
  outcome: 'success',
  duration_ms: 1,
  trace_id,
  span_id: `${trace_id}-s`,
  attributes: {
    prompt: `what of ${trace_id}`,
    response: `${trace_id} said`,
    input_tokens: 10,
    output_tokens: 5,
    agent_id: 'a1',
  },
  ...over,
});
export const ingest = ({ org, key, api }: TestOrg, events: Data[], through = api): Promise<Answer> =>
  call(through, 'POST', `/orgs/${org}/ingest/custom`, {
    headers: { ...key, 'Idempotency-Key': crypto.randomUUID() },
    body: { events },
  });
/** Resolves once a trace is listed and its tree has its texts: spans and texts land before the trace does. */
export async function landed({ key, api }: TestOrg, trace_id: string): Promise<void> {
  const read = (at: string): Promise<Answer> => call(api, 'GET', at, { headers: key });
  await eventually(async () => (await read(`/v1/traces/${trace_id}/tree`)).text.includes(`${trace_id} said`), {
    what: `the texts of ${trace_id}`,
  });
  await eventually(async () => list(await read(`/v1/traces?trace_ids=${trace_id}`)).length === 1, {
    what: `${trace_id} in the list`,
  });
}
const post = async (path: string, { key, api }: TestOrg, body: unknown): Promise<Data> =>
  data(await ok(call(api, 'POST', path, { headers: key, body })));

/** Sends a trace of Langfuse's older protocol, whose only observation has ended. */
async function sendLangfuse({ key, api }: TestOrg, trace_id: string): Promise<void> {
  const now = new Date().toISOString();
  const event = (type: string, body: Data): Data => ({ id: crypto.randomUUID(), type, timestamp: now, body });
  const span = { id: crypto.randomUUID(), traceId: trace_id, name: 'step', startTime: now, endTime: now };
  const batch = [event('trace-create', { id: trace_id, name: 'older' }), event('span-create', span)];
  await ok(call(api, 'POST', '/api/public/ingestion', { headers: key, body: { batch } }));
}

async function firstKey(keys: AsyncIterable<string>): Promise<string | null> {
  let first: string | null = null;
  for await (const key of keys) first ??= key;
  return first;
}

/** Stores one of everything that the service stores for an organization. */
export async function fill(own: TestOrg, webhookUrl: string): Promise<void> {
  const { org, key, owner, api } = own;
  const put = (at: string, body: unknown, headers = owner) => ok(call(api, 'PUT', at, { headers, body }));
  // The organization's own settings.
  await put(`/orgs/${org}/policy`, { compare_threshold_percent: 7 });
  await put(`/orgs/${org}/pii-policy`, { enabled: true, mode: 'hash', kinds: ['card'] });
  await put(`/orgs/${org}/retention`, { telemetry_events: { full_prompt_response_days: 5 } });
  await put(`/orgs/${org}/prices`, { prices: [{ model: 'own', input_usd_per_mtok: 1, output_usd_per_mtok: 2 }] });
  // The record that the route writes. The route itself would fail: this engine's database has no
  // views for it.
  const analyst = { user: `analyst_${org.length}`, org_id: org, name: 'ann', password_hash: '00' };
  await (
    await api.log.bucket('analysts')
  ).put(analyst.user, JSON.stringify({ ...analyst, created_at: new Date().toISOString() }));
  await put(`/orgs/${org}/cost/anomaly-config`, { z_threshold: 2, lookback_days: 10 });
  await put(`/orgs/${org}/budget`, { tokens: { soft_limit: 1, hard_limit: 1_000_000 } });
  const webhook = { url: webhookUrl, events: ['trace.completed', 'agent.registered', 'cost.threshold_breach'] };
  await ok(call(api, 'POST', `/orgs/${org}/webhooks`, { headers: owner, body: webhook }));
  await ok(
    call(api, 'POST', `/orgs/${org}/members`, {
      headers: owner,
      body: { email: `b.${org}@example.com`, role: 'viewer' },
    }),
  );
  const token = data(await ok(call(api, 'POST', `/orgs/${org}/agents/register-tokens`, { headers: owner, body: {} })));
  await ok(call(api, 'POST', `/orgs/${org}/agents/register-tokens`, { headers: owner, body: {} }));
  const agent = { agent_id: 'a1', name: 'a', framework: 'custom', register_token: token['register_token'] };
  await ok(call(api, 'POST', `/orgs/${org}/agents/register`, { headers: key, body: agent }));
  // Judges, prompts, datasets and grants.
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
  await post('/v1/annotation-queues', own, { name: 'q', scores: [{ name: 'correct', type: 'boolean' }] });
  await post('/v1/views', own, { name: 'v', page: 'traces', query: 'outcome=error' });
  const { version } = await post('/v1/prompts', own, { name: 'p', template: 'Say {{question}}' });
  await put('/v1/prompts/p/labels/production', { version }, key);
  await post('/v1/monitors', own, failures());
  await evaluate(api);
  await sendLangfuse(own, crypto.randomUUID());
  // This score waits for a trace that never arrives.
  await post('/v1/scores', own, { trace_id: 't-never', name: 'early', value: 1 });
  const question = { model: 'm', messages: [{ role: 'user', content: 'what is cached' }] };
  const cached = { headers: { ...key, 'X-Service-Cache': '86400' }, body: question };
  await ok(call(api, 'POST', '/v1/chat/completions', cached));
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
  const runs = { headers: asOperator, body: { now: new Date(Date.now() + 10 * DAY_MS).toISOString() } };
  await ok(call(api, 'POST', '/admin/jobs/retention/run', runs));
  const failing = Array.from({ length: 6 }, (_, i) =>
    anEvent(`t-bad-${i}`, {
      outcome: 'error',
      attributes: { error_message: 'it broke', agent_id: 'a1', response: `t-bad-${i} said` },
    }),
  );
  await ok(ingest(own, [anEvent('t-warm'), ...failing]));
  await landed(own, 't-warm');
  await post('/v1/scores', own, { trace_id: 't-warm', name: 'helpful', value: true, comment: 'nice' });
  await post('/v1/evals', own, { judge_id: judge['judge_id'], trace_ids: ['t-warm'] });
  await post('/v1/evals', own, { judge_id: llmJudge['judge_id'], trace_ids: ['t-warm'] });
  await post(`/v1/datasets/${String(dataset['dataset_id'])}/run`, own, {
    judge_id: judge['judge_id'],
    prompt_version: 'p',
    model: 'm',
  });
  const restore = await ok(
    call(api, 'POST', `/orgs/${org}/cold-storage/restore`, { headers: owner, body: { since: '2020-01-01' } }),
  );
  await eventually(async () => list(await call(api, 'GET', '/v1/incidents', { headers: key })).length > 0, {
    what: 'the incident',
    withinMs: 60_000,
  });
  // While the restore runs, reads of the cold trace change.
  const job = String(data(restore)['job_id']);
  await eventually(
    async () => data(await call(api, 'GET', `/v1/jobs/${job}`, { headers: key }))['status'] === 'complete',
    {
      what: 'the restore',
    },
  );
  const marks = await api.log.bucket('judging_marks');
  await eventually(async () => (await firstKey(await marks.keys(`${org}.>`))) !== null, {
    what: 'a mark of the LLM judge',
    withinMs: 60_000,
  });
  const folds = await api.log.bucket('langfuse_folds');
  await eventually(async () => (await firstKey(await folds.keys(`${org}.>`))) !== null, {
    what: 'the fold of the older trace',
    withinMs: 60_000,
  });
  const states = await api.log.bucket('monitor_states');
  await eventually(async () => (await firstKey(await states.keys(`${org}.>`))) !== null, {
    what: 'the state of the monitor',
  });
  // The gateway stores an answer after it has sent it.
  const answers = { subjects_filter: cacheSubject(tokenOf(org), '*') };
  await eventually(
    async () => Object.keys((await api.log.jsm.streams.info(CACHE_STREAM, answers)).state.subjects ?? {}).length > 0,
    { what: 'the cached answer' },
  );
  await eventually(
    async () => list(await call(api, 'GET', '/v1/scores?trace_id=t-warm', { headers: key })).length > 0,
    {
      what: 'the score',
    },
  );
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
  await publishRecord(api.log, deadLetterSubject('decode'), deadLetterCodec, letter, {
    msgID: `dead-${org}`,
    timeoutMs: 5000,
  });
}

/** Enqueues the messages of an organization that stay in their queues while no worker runs. */
export async function fillQueues(own: TestOrg): Promise<void> {
  const { org, owner, key, api } = own;
  await ok(
    call(api, 'POST', `/orgs/${org}/members`, {
      headers: owner,
      body: { email: `c.${org}@example.com`, role: 'viewer' },
    }),
  );
  await ok(
    call(api, 'POST', `/orgs/${org}/gdpr/erase`, { headers: owner, body: { attribute: 'user_id', value: 'nobody' } }),
  );
  await post('/v1/scores', own, { trace_id: 't-warm', name: 'late', value: 1 });
  await sendLangfuse(own, crypto.randomUUID());
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
  // Due in an hour, so it stays queued even when a worker reads the queue.
  await publishDelivery(api.log, { ...delivery, not_before: Date.now() + 3_600_000 }, 'test');
  const end = { reason: 'expired', attempts: 1, status_code: 500, error: null } as const;
  await (await WebhookDeadLetters.open(api.log)).put(letterOf(delivery, end, Date.now()));
  await ok(ingest(own, [anEvent('t-late')]));
}
