// The fold of Langfuse's older protocol loses and doubles nothing: the worker is killed between a
// creation and its update, and between many of them; an update that comes after its span is kept.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LANGFUSE_STREAM } from '../../../schemas/streams.ts';
import { eventually } from '../../support/wait.ts';
import { call, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { type Data, named, treeOf } from './an_app.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({
    worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_LANGFUSE_OPEN_MS: '15000' },
  });
  api = await service.startApi();
}, 120_000);
afterAll(async () => {
  await service.close();
});

const event = (type: string, body: Data, timestamp = new Date().toISOString()): Data => ({
  id: randomUUID(),
  type,
  timestamp,
  body,
});
const send = async (...batch: Data[]): Promise<Data> => {
  const { status, json } = await call(api, 'POST', '/api/public/ingestion', { body: { batch } });
  expect(status).toBe(207);
  return json as Data;
};
const waiting = async () => (await api.log.jsm.streams.info(LANGFUSE_STREAM)).state.messages;

describe('events of the older protocol', () => {
  test('are one span each when the worker is killed between creation and update', async () => {
    const trace_id = randomUUID();
    const ids = Array.from({ length: 10 }, () => randomUUID());
    await send(
      event('trace-create', { id: trace_id, name: 'killed', userId: 'u' }),
      ...ids.map((id, i) =>
        event('generation-create', { id, traceId: trace_id, name: `call-${i}`, model: 'gpt-4o-mini', input: 'Q' }),
      ),
    );
    await service.killWorker();
    await service.startWorker();
    await send(
      ...ids.map((id) =>
        event('generation-update', {
          id,
          traceId: trace_id,
          output: 'A',
          endTime: new Date().toISOString(),
          usage: { input: 10, output: 2 },
        }),
      ),
    );
    await eventually(async () => (await waiting()) === 0, { withinMs: 60_000 });
    await service.killWorker();
    await service.startWorker();
    const tree = await treeOf(api, trace_id, 11);
    expect(tree).toHaveLength(11);
    expect(new Set(tree.map(({ span_id }) => span_id)).size).toBe(11);
    for (const id of ids)
      expect(tree.find(({ span_id }) => span_id === id)).toMatchObject({
        prompt: 'Q',
        response: 'A',
        input_tokens: 10,
        output_tokens: 2,
      });
  }, 120_000);

  test('that update a span which was already made become a span below it', async () => {
    const trace_id = randomUUID();
    const id = randomUUID();
    const now = new Date().toISOString();
    await send(
      event('trace-create', { id: trace_id, name: 'late', input: 'Q' }),
      event('span-create', { id, traceId: trace_id, name: 'step', startTime: now, endTime: now }),
    );
    await treeOf(api, trace_id, 2);
    await send(
      event('span-update', { id, traceId: trace_id, output: 'late answer' }),
      event('trace-create', { id: trace_id, output: 'late end' }),
    );
    const tree = await treeOf(api, trace_id, 4);
    expect(tree).toHaveLength(4);
    const late = tree.filter(({ attributes }) => (attributes as Data)['langfuse.late_update_of'] === id);
    expect(late).toMatchObject([{ parent_span_id: id, response: 'late answer' }]);
    expect(tree.find(({ response }) => response === 'late end')).toMatchObject({
      parent_span_id: named(tree, 'late')['span_id'],
    });
  }, 120_000);

  test('that have begun and never end become spans after a while', async () => {
    const trace_id = randomUUID();
    await send(
      event('generation-create', { id: randomUUID(), traceId: trace_id, name: 'hangs', model: 'm', input: 'Q' }),
    );
    const [span] = await treeOf(api, trace_id, 1);
    expect(span).toMatchObject({ name: 'hangs', prompt: 'Q', attributes: { 'langfuse.open': true } });
  }, 120_000);

  test('fail alone, with a reason for each', async () => {
    const trace_id = randomUUID();
    const now = new Date().toISOString();
    const good = event('event-create', { id: randomUUID(), traceId: trace_id, name: 'good', startTime: now });
    const bad = [
      event('score-create', { traceId: trace_id, name: 'x' }),
      event('score-create', { sessionId: 's', name: 'x', value: 1 }),
      event('event-create', { id: 'not an id', traceId: trace_id }),
      event('event-create', { id: randomUUID() }),
      event('event-create', { id: randomUUID(), traceId: trace_id, startTime: '2999-01-01T00:00:00Z' }),
      event('unknown-type', { id: randomUUID() }),
      { id: 'no-body', type: 'event-create' },
    ];
    const { successes, errors } = (await send(good, ...bad, event('sdk-log', {}))) as Record<string, Data[]>;
    expect(successes?.map(({ status }) => status)).toEqual([201, 201]);
    expect(errors?.map(({ id, status }) => [id, status])).toEqual(bad.map(({ id }) => [id, 400]));
    for (const { message } of errors ?? []) expect(message).toMatch(/^[a-zA-Z_.[\]]+: /);
    expect(await treeOf(api, trace_id, 1)).toHaveLength(1);
  }, 120_000);
});
