// Rejected replays: which ones the API rejects, with which code, and that they call no model and
// store nothing.
import { expect, it } from 'vitest';
import { REPLAYS_ORG_MAX } from '../../../api/telemetry/traces/replay.ts';
import { echo, fail, hang, say } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { asKey, makeKey, makeOtherOrg } from '../api/a_cast.ts';
import { call, startTestApi } from '../api/an_api.ts';
import { anAccount } from '../a_tenant.ts';
import { type Data, service, upstream, api, replay, ingest, aCall, greeted } from './a_replay.ts';

async function refused(trace: string, body: Data = {}): Promise<string> {
  const { status, json } = await replay(trace, body);
  expect([status, json?.['code']]).toEqual([422, 'replay_failed']);
  return String(json?.['detail']);
}

it('a replay of a trace without prompt, variables or calls is refused', async () => {
  const gone = await ingest(aCall({ span_id: 'lost', attributes: { prompt_name: 'gone' } }));
  expect(await refused(gone)).toBe('Span lost: its prompt "gone" is not in the registry.');
  expect(await refused(gone, { commit: true })).toContain('gone');
  expect(await refused(await ingest(greeted({ name: 'Ann' })))).toContain('lacks shop');
  expect(await refused(await ingest({ format: 'custom', name: 'no call' }))).toContain('no model call');
  expect(upstream.requests).toEqual([]);
});

it('a replay of a trace without its texts is refused', async () => {
  const trace = await ingest(greeted());
  // The texts may be moving from one table to the other.
  await eventually(async () => {
    for (const table of ['span_texts_recent', 'span_texts'])
      await service.database.run(
        `DELETE FROM ${table} WHERE trace_id = '${trace}' SETTINGS lightweight_deletes_sync = 2`,
      );
    return (await replay(trace)).status === 422;
  });
  expect(await refused(trace)).toContain('no longer stored');
});

it('a replay with a call without a model fails and stores none of the answers before it', async () => {
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
  // This later trace has landed, so anything stored before it would have landed too.
  await ingest(aCall());
  expect((await spans()) - before).toBe(1);
});

it('a replay fails when the upstream does not answer', async () => {
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

it('a replay of an unknown trace or of another organization’s is not found', async () => {
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

it('a committed replay without the right to call models is forbidden', async () => {
  const trace = await ingest(aCall());
  const reader = asKey((await makeKey(api, ['traces:read'])).raw);
  expect((await replay(trace, {}, reader)).status).toBe(200);
  const refusal = await replay(trace, { commit: true }, reader);
  expect([refusal.status, refusal.json?.['code']]).toEqual([403, 'forbidden']);
  expect(refusal.json?.['detail']).toContain('gateway:invoke');
  const caller = asKey((await makeKey(api, ['traces:read', 'gateway:invoke'])).raw);
  expect((await replay(trace, { commit: true }, caller)).status).toBe(200);
});

it('a replay ends when its caller disconnects', async () => {
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

it('a replay above the maximum of its organization is 429 with Retry-After, until another has ended', async () => {
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

it('a replay above the budget calls no model', async () => {
  const { org, key: headers } = await anAccount({ api });
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
