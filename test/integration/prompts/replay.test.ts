// Replaying traces end to end: real API, real worker, the real engine, and an upstream that keeps what it was asked.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { REPLAYS_ORG_MAX } from '../../../api/telemetry/traces/replay.ts';
import { after, echo, fail, hang, say, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { asKey, makeKey, makeOtherOrg } from '../api/a_cast.ts';
import { ADMIN_TOKEN, type Answer, call, INGEST, ORG, startTestApi, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';

type Data = Record<string, unknown>;

let service: TestService;
let upstream: TestUpstream;
let api: TestApi;

beforeAll(async () => {
  upstream = await startUpstream();
  service = await TestService.start({ api: { llmUrl: upstream.url }, worker: { SERVICE_TRACE_GRACE_MS: '50' } });
  api = await service.startApi();
  await make('greet', 'Hello {{name}}, from {{ shop }}', 'gpt-4o-mini');
}, 120_000);
afterAll(async () => {
  await service.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.requests.length = 0;
  upstream.behave(echo);
});

const dataOf = ({ json }: Answer): Data => json?.['data'] as Data;
async function make(name: string, template: unknown, model?: string): Promise<void> {
  const answer = await call(api, 'POST', '/v1/prompts', { body: { name, template, model } });
  expect(answer.status).toBe(201);
}
const replay = (trace: string, body: Data = {}, headers = {}) =>
  call(api, 'POST', `/v1/traces/${trace}/replay`, { body, headers });
const spansOf = (answer: Answer): Data[] => dataOf(answer)['spans'] as Data[];

async function tree(trace: string): Promise<Data[]> {
  return spansOf(await call(api, 'GET', `/v1/traces/${trace}/tree`));
}

let traces = 0;
/** Ingests the events as one trace and waits until it can be read. */
async function ingest(...events: { format?: string; [field: string]: unknown }[]): Promise<string> {
  const trace_id = `run-${String(++traces)}`;
  for (const { format = 'chatcompletion', ...body } of events) {
    const answer = await call(api, 'POST', `${INGEST}/${format}`, {
      body: { trace_id, outcome: 'success', duration_ms: 10, ...body },
    });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  }
  await eventually(async () => (await tree(trace_id)).length === events.length, { what: `${trace_id} to be read` });
  return trace_id;
}
const aCall = (over: Data = {}) => ({
  request: { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi Ann' }], temperature: 0.3 },
  response: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi!' } }],
    usage: { prompt_tokens: 5, completion_tokens: 2 },
  },
  ...over,
});
const greeted = (prompt_variables: unknown = { name: 'Ann', shop: 'Acme' }, over: Data = {}) =>
  aCall({ attributes: { prompt_name: 'greet', prompt_variables, agent_id: 'bot' }, tags: ['live'], ...over });

describe('a dry run', () => {
  it('renders the current prompts and calls nobody', async () => {
    const trace = await ingest(
      greeted(undefined, { span_id: 'one' }),
      aCall({ span_id: 'two', parent_span_id: 'one' }),
    );
    for (const body of [{}, { commit: false }]) {
      const answer = await replay(trace, body);
      expect(answer.status).toBe(200);
      expect(answer.json?.['data']).toEqual({
        trace_id: trace,
        commit: false,
        new_trace_id: null,
        spans: [
          {
            span_id: 'one',
            prompt_name: 'greet',
            prompt_version: '1',
            model: 'gpt-4o-mini',
            old_prompt: '[{"role":"user","content":"Hi Ann"}]',
            new_prompt: 'Hello Ann, from Acme',
            old_response: 'Hi!',
            new_response: null,
          },
          {
            span_id: 'two',
            prompt_name: null,
            prompt_version: null,
            model: 'gpt-4o',
            old_prompt: '[{"role":"user","content":"Hi Ann"}]',
            new_prompt: '[{"role":"user","content":"Hi Ann"}]',
            old_response: 'Hi!',
            new_response: null,
          },
        ],
      });
    }
    expect((await call(api, 'POST', `/v1/traces/${trace}/replay`)).status).toBe(200);
    expect(upstream.requests).toEqual([]);
  });
});

describe('a commit', () => {
  it('calls the models and stores what they answer as a new trace', async () => {
    const root = { format: 'custom', name: 'agent', span_id: 'root', attributes: { agent_id: 'bot' }, tags: ['live'] };
    const trace = await ingest(
      root,
      greeted(undefined, { span_id: 'one', parent_span_id: 'root', started_at: '2026-03-01T00:00:00Z' }),
      aCall({ span_id: 'two', parent_span_id: 'one', started_at: '2026-03-01T00:00:01Z' }),
    );
    const answer = await replay(trace, { commit: true });
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
    const { new_trace_id } = dataOf(answer) as { new_trace_id: string };
    expect(new_trace_id).toMatch(/^trc_[0-9a-f]{16}$/);
    expect(answer.json?.['data']).toMatchObject({ trace_id: trace, commit: true });
    expect(spansOf(answer)).toMatchObject([
      {
        span_id: 'one',
        model: 'gpt-4o-mini',
        new_prompt: 'Hello Ann, from Acme',
        new_response: 'Hello Ann, from Acme',
      },
      { span_id: 'two', model: 'gpt-4o', new_response: 'Hi Ann' },
    ]);
    const asked = upstream.requests.map(({ body }) => body).sort((a, b) => (a.model < b.model ? 1 : -1));
    expect(asked).toMatchObject([
      { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello Ann, from Acme' }], temperature: 0.3 },
      { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi Ann' }], temperature: 0.3 },
    ]);

    await eventually(async () => (await tree(new_trace_id)).length === 3, { what: 'the new trace' });
    const [agent, ...calls] = await tree(new_trace_id);
    expect(agent).toMatchObject({
      parent_span_id: null,
      name: 'agent',
      tags: ['live'],
      attributes: { replay_of: trace, replay_of_span: 'root', agent_id: 'bot' },
    });
    const one = calls.find(({ model }) => model === 'gpt-4o-mini');
    const two = calls.find(({ model }) => model === 'gpt-4o');
    expect(one).toMatchObject({
      parent_span_id: agent?.['span_id'],
      source_format: 'chatcompletion',
      prompt: '[{"role":"user","content":"Hello Ann, from Acme"}]',
      response: 'Hello Ann, from Acme',
      input_tokens: 100,
      output_tokens: 20,
      attributes: {
        replay_of: trace,
        replay_of_span: 'one',
        prompt_name: 'greet',
        prompt_version: '1',
        agent_id: 'bot',
      },
    });
    expect(one?.['cost_usd']).toBeGreaterThan(0);
    expect(two).toMatchObject({ parent_span_id: one?.['span_id'], attributes: { replay_of_span: 'two' } });

    const compared = await call(api, 'POST', '/v1/traces/compare', {
      body: {
        baseline_trace_id: trace,
        candidate_trace_id: new_trace_id,
        fields: ['root_span_name', 'input_tokens', 'models'],
      },
    });
    expect(dataOf(compared)['fields']).toMatchObject([
      { differs: false, baseline: 'agent', candidate: 'agent' },
      { baseline: 10, candidate: 200, differs: true },
      { baseline: ['gpt-4o'], candidate: ['gpt-4o', 'gpt-4o-mini'], differs: true },
    ]);
    // The new trace is one like any other: it can be replayed again.
    expect((await replay(new_trace_id)).status).toBe(200);
  });

  it('of a single call is a single span, and a repeat with the same key makes no second one', async () => {
    const trace = await ingest(greeted());
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const first = await replay(trace, { commit: true }, headers);
    const repeat = await replay(trace, { commit: true }, headers);
    expect([first.status, repeat.status, repeat.headers.get('idempotency-replayed')]).toEqual([200, 200, 'true']);
    expect(dataOf(repeat)).toEqual(dataOf(first));
    expect(upstream.requests).toHaveLength(1);
    const id = String(dataOf(first)['new_trace_id']);
    await eventually(async () => (await tree(id)).length === 1);
    expect((await tree(id))[0]).toMatchObject({ parent_span_id: null, attributes: { replay_of: trace } });
  });

  it('whose answer is large is made once for a key: it comes again or, where it is too large to be kept, is refused', async () => {
    const text = 'The answer goes on and on. '.repeat(10_000);
    const noise = randomBytes(200_000).toString('base64');
    for (const [said, repeated] of [
      [text, [200, 'true', undefined]],
      [noise, [409, null, 'conflict']],
    ] as const) {
      upstream.behave(say(said));
      upstream.requests.length = 0;
      const trace = await ingest(aCall({ tags: [said.slice(0, 20)] }));
      const headers = { 'Idempotency-Key': crypto.randomUUID() };
      const first = await replay(trace, { commit: true }, headers);
      expect([first.status, spansOf(first)[0]?.['new_response'] === said]).toEqual([200, true]);
      const repeat = await replay(trace, { commit: true }, headers);
      expect([repeat.status, repeat.headers.get('idempotency-replayed'), repeat.json?.['code']]).toEqual(repeated);
      if (repeat.status === 200) expect(repeat.text === first.text).toBe(true);
      expect(upstream.requests).toHaveLength(1);
    }
  });

  it('makes a few calls at a time', async () => {
    upstream.behave(after(20, say('ok')));
    const trace = await ingest(...Array.from({ length: 10 }, () => aCall({ tags: [String(Math.random())] })));
    expect(spansOf(await replay(trace, { commit: true })).map((span) => span['new_response'])).toEqual(
      Array(10).fill('ok'),
    );
    expect(upstream.requests).toHaveLength(10);
    expect(upstream.openMax).toBeLessThanOrEqual(4);
  });

  it('is audited; a dry run is not', async () => {
    const trace = await ingest(greeted());
    await replay(trace);
    const done = await replay(trace, { commit: true });
    const { new_trace_id } = dataOf(done);
    const records = async () => {
      const { json } = await call(api, 'GET', `/orgs/${ORG}/audit-log?action=trace.replay`);
      return (json?.['data'] as Data[]).filter(({ target }) => (target as Data)['id'] === trace);
    };
    await eventually(async () => (await records()).length > 0);
    expect(await records()).toMatchObject([
      { target: { type: 'trace', id: trace }, changes: { new_trace_id, calls: 1 } },
    ]);
  });
});

describe('an export', () => {
  it('under an Idempotency-Key is made again for the same body, and refused with another', async () => {
    const trace = await ingest(aCall({ tags: ['exported'] }));
    const headers = { 'Idempotency-Key': crypto.randomUUID() };
    const asked = (format: string) => call(api, 'POST', `/v1/traces/${trace}/export`, { body: { format }, headers });
    const first = await asked('json');
    const again = await asked('json');
    expect([first.status, again.status, again.text === first.text]).toEqual([200, 200, true]);
    const other = await asked('ndjson');
    expect([other.status, other.json?.['code']]).toEqual([422, 'idempotency_key_reused']);
  });
});

describe('a replay that cannot be made', () => {
  async function refused(trace: string, body: Data = {}): Promise<string> {
    const { status, json } = await replay(trace, body);
    expect([status, json?.['code']]).toEqual([422, 'replay_failed']);
    return String(json?.['detail']);
  }

  it('has lost its prompt, its variables or its calls', async () => {
    const gone = await ingest(aCall({ span_id: 'lost', attributes: { prompt_name: 'gone' } }));
    expect(await refused(gone)).toBe('Span lost: its prompt "gone" is not in the registry.');
    expect(await refused(gone, { commit: true })).toContain('gone');
    expect(await refused(await ingest(greeted({ name: 'Ann' })))).toContain('lacks shop');
    expect(await refused(await ingest({ format: 'custom', name: 'no call' }))).toContain('no model call');
    expect(upstream.requests).toEqual([]);
  });

  it('has lost its texts', async () => {
    const trace = await ingest(greeted());
    // They may be on their way from one table to the other.
    await eventually(async () => {
      for (const table of ['span_texts_recent', 'span_texts'])
        await service.database.run(
          `DELETE FROM ${table} WHERE trace_id = '${trace}' SETTINGS lightweight_deletes_sync = 2`,
        );
      return (await replay(trace)).status === 422;
    });
    expect(await refused(trace)).toContain('no longer stored');
  });

  it('has lost its model, and stores nothing of what was answered before', async () => {
    const trace = await ingest(
      greeted(undefined, { span_id: 'here', started_at: '2026-03-01T00:00:00Z' }),
      aCall({ span_id: 'there', started_at: '2026-03-01T00:00:01Z' }),
    );
    const spans = async () => Number(await service.database.run('SELECT count() FROM spans'));
    const before = await spans();
    upstream.behave((res, request) => {
      (request.body.model === 'gpt-4o' ? fail(404) : say('ok'))(res, request);
    });
    expect(await refused(trace, { commit: true })).toMatch(/^Span there: its model gpt-4o is gone/);
    // What comes after has landed, so what was stored before would have too.
    await ingest(aCall());
    expect((await spans()) - before).toBe(1);
  });

  it('needs an upstream that answers', async () => {
    const trace = await ingest(aCall());
    upstream.behave(fail(503));
    const away = await replay(trace, { commit: true });
    expect([away.status, away.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    upstream.behave(fail(401));
    expect((await replay(trace, { commit: true })).status).toBe(502);
    const without = await startTestApi(service.urls);
    const answer = await call(without, 'POST', `/v1/traces/${trace}/replay`, { body: { commit: true } });
    expect([answer.status, answer.json?.['code']]).toEqual([502, 'upstream_unavailable']);
    expect((await call(without, 'POST', `/v1/traces/${trace}/replay`)).status).toBe(200);
    await without.close();
  });

  it('is of a trace that is not there, or another org’s', async () => {
    const other = await makeOtherOrg(api);
    const trace = await ingest(aCall());
    expect((await replay('nobody')).json).toMatchObject({ code: 'trace_not_found' });
    const theirs = await call(api, 'POST', `/v1/traces/${trace}/replay`, {
      headers: other.owner,
      body: { commit: true },
    });
    expect([theirs.status, theirs.json?.['code']]).toEqual([403, 'cross_org_access']);
    expect(upstream.requests).toEqual([]);
  });

  it('commits without the right to call models', async () => {
    const trace = await ingest(aCall());
    const reader = asKey((await makeKey(api, ['traces:read'])).raw);
    expect((await replay(trace, {}, reader)).status).toBe(200);
    const refusal = await replay(trace, { commit: true }, reader);
    expect([refusal.status, refusal.json?.['code']]).toEqual([403, 'forbidden']);
    expect(refusal.json?.['detail']).toContain('gateway:invoke');
    const caller = asKey((await makeKey(api, ['traces:read', 'gateway:invoke'])).raw);
    expect((await replay(trace, { commit: true }, caller)).status).toBe(200);
  });

  it('ends with its caller', async () => {
    const trace = await ingest(aCall());
    upstream.behave(hang);
    const gone = new AbortController();
    const asked = fetch(`${api.url}/v1/traces/${trace}/replay`, {
      method: 'POST',
      headers: { ...asKey((await makeKey(api, ['*'])).raw), 'Content-Type': 'application/json' } as Record<
        string,
        string
      >,
      body: JSON.stringify({ commit: true }),
      signal: gone.signal,
    });
    asked.catch(() => undefined);
    await eventually(() => upstream.open === 1);
    gone.abort();
    await eventually(() => upstream.open === 0);
  });

  it('is one too many of its organization: 429 with Retry-After, until another has ended', async () => {
    const trace = await ingest(aCall());
    upstream.behave(hang);
    const callers = Array.from({ length: REPLAYS_ORG_MAX }, () => new AbortController());
    const headers = { ...asKey((await makeKey(api, ['*'])).raw), 'Content-Type': 'application/json' } as Record<
      string,
      string
    >;
    for (const { signal } of callers)
      fetch(`${api.url}/v1/traces/${trace}/replay`, { method: 'POST', headers, body: '{"commit":true}', signal }).catch(
        () => undefined,
      );
    await eventually(() => upstream.open === REPLAYS_ORG_MAX, { what: 'every replay to have asked its model' });
    const refusal = await replay(trace, { commit: true });
    expect([refusal.status, refusal.json?.['code'], refusal.headers.get('retry-after')]).toEqual([
      429,
      'rate_limited',
      '1',
    ]);
    expect((await replay(trace)).status).toBe(200);
    for (const caller of callers) caller.abort();
    await eventually(() => upstream.open === 0, { what: 'the end of every replay' });
    upstream.behave(echo);
    await eventually(async () => (await replay(trace, { commit: true })).status === 200, {
      what: 'a replay that finds room',
    });
  });

  it('is beyond the budget: no model is called for what could not be stored', async () => {
    const org = 'org_spent';
    const admin = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
    const owner = { user_id: 'user_spent', email: 'spent@example.com' };
    await call(api, 'POST', '/admin/orgs', {
      headers: admin,
      body: { org_id: org, name: org, plan_name: 'enterprise', owner },
    });
    const headers = asKey((await makeKey(api, ['*'], org)).raw, org);
    const sent = await call(api, 'POST', `/orgs/${org}/ingest/chatcompletion`, {
      headers,
      body: { trace_id: 'spent', outcome: 'success', duration_ms: 1, ...aCall() },
    });
    expect(sent.status).toBe(200);
    await eventually(async () => (await call(api, 'GET', '/v1/traces/spent/tree', { headers })).status === 200);
    await call(api, 'PUT', `/orgs/${org}/budget`, { headers, body: { tokens: { hard_limit: 1 } } });
    await eventually(async () => {
      const { json } = await call(api, 'GET', '/v1/budgets', { headers });
      return ((json?.['data'] as Data)['tokens'] as Data)['status'] === 'hard_exceeded';
    });
    const answer = await replay('spent', { commit: true }, headers);
    expect([answer.status, answer.json?.['code']]).toEqual([429, 'rate_limited']);
    expect(upstream.requests).toEqual([]);
    expect((await replay('spent', {}, headers)).status).toBe(200);
  });
});
