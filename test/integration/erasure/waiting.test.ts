// An erasure finds what waits outside of the store: events of Langfuse that have not become spans, and
// scores whose trace has not arrived, also after their dead letter.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { nextMessage } from '../../../ops/platform/nats/next_message.ts';
import { itemLetter, DeadLetters } from '../../../pipeline/queues/dead_letters.ts';
import { userScoreCodec } from '../../../schemas/codec.ts';
import { DEAD_LETTERS_STREAM, LANGFUSE_STREAM, PENDING_SCORES_STREAM } from '../../../schemas/streams.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, call, type TestApi } from '../api/an_api.ts';
import { anAccount, type Caller } from '../a_tenant.ts';
import { TestService } from '../a_service.ts';

let service: TestService;
let api: TestApi;
let org = '';
let owner: Caller = {};
let key: Caller = {};

beforeAll(async () => {
  // Without an erasure, an open observation would wait for ten minutes.
  service = await TestService.start({
    worker: { SERVICE_TRACE_GRACE_MS: '50', SERVICE_LANGFUSE_OPEN_MS: '600000' },
  });
  api = await service.startApi();
});
afterAll(async () => {
  await service.close();
});
beforeEach(async () => {
  ({ org, owner, key } = await anAccount({ api }));
});

const data = ({ json }: Answer): Record<string, unknown> => json?.['data'] as Record<string, unknown>;

/** Sends the beginning of a trace and of a model call in it, which waits for its end. */
async function begin(trace_id: string, userId: string): Promise<void> {
  const timestamp = new Date().toISOString();
  const generation = { id: randomUUID(), traceId: trace_id, name: 'call', model: 'm', input: `${userId} asks` };
  const batch = [
    { id: randomUUID(), type: 'trace-create', timestamp, body: { id: trace_id, name: 'chat', userId } },
    { id: randomUUID(), type: 'generation-create', timestamp, body: generation },
  ];
  const { status } = await call(api, 'POST', '/api/public/ingestion', { headers: key, body: { batch } });
  expect(status).toBe(207);
}
async function score(trace_id: string, comment: string): Promise<void> {
  const body = { trace_id, name: 'helpful', value: true, comment };
  const given = await call(api, 'POST', '/v1/scores', { headers: key, body });
  expect([given.status, data(given)['pending']]).toEqual([201, true]);
}
const ask = (value: string): Promise<Answer> =>
  call(api, 'POST', `/orgs/${org}/gdpr/erase`, { headers: owner, body: { attribute: 'user_id', value } });
async function jobEnds(asked: Answer): Promise<Record<string, unknown>> {
  expect(asked.status).toBe(202);
  let job: Record<string, unknown> = {};
  await eventually(
    async () => {
      job = data(await call(api, 'GET', `/v1/jobs/${String(data(asked)['job_id'])}`, { headers: owner }));
      return job['status'] === 'complete' || job['status'] === 'failed';
    },
    { withinMs: 120_000, what: 'the end of the job' },
  );
  return job;
}

/** Returns the messages of a stream that contain a text. */
async function containing(stream: string, text: string): Promise<number> {
  let found = 0;
  for (let seq = 1; ;) {
    const message = await nextMessage(api.log, stream, seq);
    if (message === null) return found;
    seq = message.seq + 1;
    if (Buffer.from(message.data).includes(text)) found += 1;
  }
}
const rows = (table: string, trace_id: string): Promise<string> =>
  service.database.run(`SELECT count() FROM ${table} WHERE org_id = '${org}' AND trace_id = '${trace_id}'`);

it.each([
  ['', false],
  [', also when the worker is killed before it folds them', true],
])('an erasure removes events that wait to become spans, and scores that wait for them%s', async (_, isKilled) => {
  const [ann, bob, nobody] = [randomUUID(), randomUUID(), randomUUID()];
  await begin(ann, 'ann');
  await begin(bob, 'bob');
  await score(ann, 'liked it');
  await score(nobody, 'ann');
  await score(nobody, 'kept');
  if (isKilled) await service.killWorker();
  const asked = await ask('ann');
  if (isKilled) await service.startWorker();
  expect(await jobEnds(asked)).toMatchObject({
    status: 'complete',
    error: null,
    result: { matched_traces: 1, spans: 2, remaining: 0 },
  });
  for (const stream of [LANGFUSE_STREAM, PENDING_SCORES_STREAM]) expect(await containing(stream, ann)).toBe(0);
  for (const table of ['spans', 'user_scores', 'traces']) expect(await rows(table, ann)).toBe('0\n');
  // The score that says the value is gone; the other one of the same trace still waits.
  expect(await containing(PENDING_SCORES_STREAM, nobody)).toBe(1);
  expect((await call(api, 'GET', `/v1/traces/${ann}/tree`, { headers: key })).status).toBe(404);
  expect((await call(api, 'GET', `/v1/traces/${bob}/tree`, { headers: key })).status).toBe(200);
});

it('an erasure removes the dead letter of a score that waited in vain for a trace of the person', async () => {
  const trace_id = randomUUID();
  const event = { name: 'step', outcome: 'success', duration_ms: 1, trace_id, attributes: { user_id: 'ann' } };
  expect(
    (await call(api, 'POST', `/orgs/${org}/ingest/custom`, { headers: key, body: { events: [event] } })).status,
  ).toBe(200);
  const body = userScoreCodec.encode({
    score_id: `score_${'a'.repeat(32)}`,
    org_id: org,
    trace_id,
    span_id: '',
    trace_started_at: 0,
    name: 'helpful',
    data_type: 'boolean',
    number: 1,
    text: '',
    comment: 'too late',
    author_type: 'user',
    author_id: 'u',
    created_at: Date.now(),
  });
  const letter = { stage: 'pending_scores', reason: 'expired', detail: '', log_seq: 1, died_at: Date.now() };
  await new DeadLetters(api.log).put(itemLetter({ ...letter, body: Buffer.from(body) }), randomUUID());
  expect(await containing(DEAD_LETTERS_STREAM, trace_id)).toBe(1);
  await eventually(async () => (await rows('spans', trace_id)) === '1\n');
  expect(await jobEnds(await ask('ann'))).toMatchObject({ status: 'complete', result: { dead_letters: 1 } });
  expect(await containing(DEAD_LETTERS_STREAM, trace_id)).toBe(0);
});
