// Replaying a trace with the current prompts: as a dry run, and with model calls.
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { after, say } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, ORG } from '../api/an_api.ts';
import { type Data, upstream, api, dataOf, replay, spansOf, tree, ingest, aCall, greeted } from './a_replay.ts';

it('a dry replay renders the current prompts and calls no model', async () => {
  const trace = await ingest(greeted(undefined, { span_id: 'one' }), aCall({ span_id: 'two', parent_span_id: 'one' }));
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

it('a committed replay calls the models and stores their answers as a new trace', async () => {
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
  // The new trace can itself be replayed.
  expect((await replay(new_trace_id)).status).toBe(200);
});

it('a committed replay of a single call is a single span, and a repeat with the same key makes no second one', async () => {
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

it('a committed replay with a large answer is made once for a key, and its repeat gets the same answer or a refusal', async () => {
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

it('a committed replay makes a few calls at a time', async () => {
  upstream.behave(after(20, say('ok')));
  const trace = await ingest(...Array.from({ length: 10 }, () => aCall({ tags: [String(Math.random())] })));
  expect(spansOf(await replay(trace, { commit: true })).map((span) => span['new_response'])).toEqual(
    Array(10).fill('ok'),
  );
  expect(upstream.requests).toHaveLength(10);
  expect(upstream.openMax).toBeLessThanOrEqual(4);
});

it('a committed replay is audited and a dry one is not', async () => {
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

it('an export under an Idempotency-Key is made again for the same body and refused with another', async () => {
  const trace = await ingest(aCall({ tags: ['exported'] }));
  const headers = { 'Idempotency-Key': crypto.randomUUID() };
  const asked = (format: string) => call(api, 'POST', `/v1/traces/${trace}/export`, { body: { format }, headers });
  const first = await asked('json');
  const again = await asked('json');
  expect([first.status, again.status, again.text === first.text]).toEqual([200, 200, true]);
  const other = await asked('ndjson');
  expect([other.status, other.json?.['code']]).toEqual([422, 'idempotency_key_reused']);
});
