// Annotation queues over HTTP: leases of people who work at once, answers that become scores, and a
// service whose processes die in between.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LEASE_MS, withAnswer } from '../../../api/control/annotation/items.ts';
import { QUEUES_ORG_MAX } from '../../../api/control/annotation/queues.ts';
import { AnnotationStore } from '../../../api/control/annotation/store.ts';
import { deleteAnnotationItems } from '../../../pipeline/erasure/annotations.ts';
import { eventually } from '../../support/wait.ts';
import { TestService } from '../a_service.ts';
import { aTenant, type Caller, type Tenant } from '../a_tenant.ts';
import { makeMember } from './a_cast.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, JWT_SECRET, KEY, ORG, type TestApi } from './an_api.ts';

let skewMs = 0;
let service: TestService;
let api: TestApi;
let other: TestApi;
let tenant: Tenant;
/** Two members, who may answer. The key of the tenant may also change queues. */
let ann: Caller;
let ben: Caller;
const TRACES = 12;

beforeAll(async () => {
  service = await TestService.start({ api: { now: () => Date.now() + skewMs } });
  api = await service.startApi();
  other = await service.startApi();
  tenant = await aTenant({ api, database: service.database });
  const { org } = tenant;
  ann = asUser((await makeMember(api, 'member', { org, owner: `u_${org}` })).token, org);
  ben = asUser((await makeMember(api, 'admin', { org, owner: `u_${org}` })).token, org);
  const events = Array.from({ length: TRACES * 2 }, (_, n) => ({
    name: 'answer',
    outcome: 'success',
    duration_ms: 5,
    // Those of agent_lease are in the queues of the tests of leases, which score all of them.
    trace_id: n < TRACES ? `trace-${n}` : `lease-${n}`,
    span_id: `span-${n}`,
    agent_id: n < TRACES ? 'agent_a' : 'agent_lease',
  }));
  await tenant.ingest('custom', { events });
  await tenant.landed(TRACES * 2);
});
afterAll(() => service.close());

type Json = Record<string, unknown>;
const dataOf = (answer: Answer): unknown => answer.json?.['data'];
const itemsOf = (answer: Answer): Item[] => dataOf(answer) as Item[];
interface Item {
  item_id: string;
  trace_ids: string[];
  said: string | null;
}
const CORRECT = { name: 'correct', type: 'categorical', options: ['yes', 'no'] };

async function aQueue(fields: Json = {}, items: Json = { query: 'agent_id=agent_lease' }): Promise<string> {
  const made = await tenant.call('POST', '/v1/annotation-queues', {
    body: { name: 'Q', scores: [CORRECT], ...fields },
  });
  expect([made.status, made.text]).toEqual([201, made.text]);
  const { queue_id } = dataOf(made) as { queue_id: string };
  const added = await tenant.call('POST', `/v1/annotation-queues/${queue_id}/items`, { body: items });
  expect([added.status, added.text]).toEqual([200, added.text]);
  await eventually(
    async () => (await call(other, 'GET', `/v1/annotation-queues/${queue_id}`, { headers: ben })).status === 200,
  );
  return queue_id;
}
const next = (queue_id: string, as: Caller, body: Json = {}, at: { url: string } = api): Promise<Answer> =>
  call(at, 'POST', `/v1/annotation-queues/${queue_id}/next`, { headers: as, body });
const answer = (
  queue_id: string,
  { item_id }: Item,
  as: Caller,
  body: Json,
  at: { url: string } = api,
): Promise<Answer> => call(at, 'POST', `/v1/annotation-queues/${queue_id}/items/${item_id}`, { headers: as, body });
const undo = (queue_id: string, { item_id }: Item, as: Caller): Promise<Answer> =>
  call(api, 'POST', `/v1/annotation-queues/${queue_id}/items/${item_id}/undo`, { headers: as });
const scoresOf = async (trace_id: string, more = ''): Promise<Json[]> =>
  dataOf(await tenant.get(`/v1/scores?trace_id=${trace_id}&source=user${more}`)) as Json[];
const first = async (queue_id: string, as: Caller): Promise<Item> => {
  const [item] = itemsOf(await next(queue_id, as));
  if (item === undefined) throw new Error('the queue has no item left');
  return item;
};

describe('leases', () => {
  test('two people who ask at the same moment in two processes never get one item', async () => {
    const queue_id = await aQueue();
    const got: string[] = [];
    const work = async (as: Caller, at: { url: string }) => {
      for (;;) {
        const items = itemsOf(await next(queue_id, as, { count: 2 }, at));
        const [item] = items;
        if (item === undefined) return;
        const said = await answer(queue_id, item, as, { scores: { correct: 'yes' } }, at);
        expect([said.status, said.text]).toEqual([200, said.text]);
        got.push(item.item_id);
      }
    };
    await Promise.all([work(ann, api), work(ben, other), work(tenant.key, api)]);
    expect(got).toHaveLength(TRACES);
    expect(new Set(got).size).toBe(TRACES);
    await eventually(async () => {
      const progress = dataOf(await tenant.get(`/v1/annotation-queues/${queue_id}/progress`)) as {
        done: number;
        scores: { given: number }[];
      };
      return progress.done === TRACES && progress.scores[0]?.given === TRACES;
    });
  });

  test('a repeated request returns the same items, and the one that is asked for comes first', async () => {
    const queue_id = await aQueue();
    const some = itemsOf(await next(queue_id, ann, { count: 2 }));
    expect(some).toHaveLength(2);
    expect(itemsOf(await next(queue_id, ann, { count: 2 })).map(({ item_id }) => item_id)).toEqual(
      some.map(({ item_id }) => item_id),
    );
    const wanted = some[1]?.item_id ?? '';
    expect(itemsOf(await next(queue_id, ann, { item_id: wanted }))[0]?.item_id).toBe(wanted);
    const taken = await next(queue_id, ben, { item_id: wanted });
    expect([taken.status, taken.json?.['code']]).toEqual([409, 'conflict']);
    expect(taken.json?.['detail']).toContain('belongs to user_member');
  });

  test('a lease that expired goes to somebody else, and the answer of the first person names who has the item', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-0'] });
    const item = await first(queue_id, ann);
    expect(itemsOf(await next(queue_id, ben))).toEqual([]);
    skewMs += LEASE_MS + 1;
    expect((await first(queue_id, ben)).item_id).toBe(item.item_id);
    const late = await answer(queue_id, item, ann, { scores: { correct: 'no' } });
    expect([late.status, late.json?.['detail']]).toEqual([409, expect.stringContaining('belongs to user_admin')]);
    expect((await answer(queue_id, item, ben, { scores: { correct: 'no' } })).status).toBe(200);
    const done = await answer(queue_id, item, ann, { scores: { correct: 'no' } });
    expect([done.status, done.json?.['detail']]).toEqual([409, expect.stringContaining('answered by user_admin')]);
  });
});

describe('answers', () => {
  test('become scores once, whatever is repeated, and are replaced by another answer of the same person', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-1'] });
    const item = await first(queue_id, ann);
    const body = { scores: { correct: 'yes' }, comment: 'Cites the policy' };
    for (let n = 0; n < 3; n++) expect((await answer(queue_id, item, ann, body)).status).toBe(200);
    await eventually(async () => (await scoresOf('trace-1')).length === 1);
    expect(await scoresOf('trace-1')).toMatchObject([{ name: 'correct', value: 'yes', comment: 'Cites the policy' }]);
    expect((await answer(queue_id, item, ann, { scores: { correct: 'no' } })).status).toBe(200);
    await eventually(async () => (await scoresOf('trace-1'))[0]?.['value'] === 'no');
    expect(await scoresOf('trace-1')).toHaveLength(1);
  });

  test("taken back, they are gone everywhere, and the item is the person's again", async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-2'] });
    const item = await first(queue_id, ann);
    expect((await answer(queue_id, item, ann, { scores: { correct: 'yes' } })).status).toBe(200);
    const listed = async () => (await tenant.get('/v1/traces?score=correct:eq:yes&trace_ids=trace-2')).json?.['meta'];
    await eventually(async () => (await scoresOf('trace-2')).length === 1);
    expect(await listed()).toMatchObject({ total: 1 });
    expect(dataOf(await undo(queue_id, item, ann))).toMatchObject({ item_id: item.item_id, said: null });
    expect((await undo(queue_id, item, ann)).status).toBe(200);
    await eventually(async () => (await scoresOf('trace-2')).length === 0);
    expect(await listed()).toMatchObject({ total: 0 });
    expect((await first(queue_id, ann)).item_id).toBe(item.item_id);
  });

  test('that a person skips leave the item to others', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-3'] });
    const item = await first(queue_id, ann);
    expect((await answer(queue_id, item, ann, { skip: true })).status).toBe(200);
    const again = await next(queue_id, ann);
    expect(again.json?.['meta']).toMatchObject({ progress: { total: 1, done: 0, left: 1, skipped: 1 } });
    expect(itemsOf(again)).toEqual([]);
    expect((await first(queue_id, ben)).item_id).toBe(item.item_id);
  });

  test.each([
    [{ scores: { correct: 'maybe' } }, 'scores.correct: must be one of yes, no'],
    [{ scores: {} }, 'scores.correct: is missing'],
    [{ scores: { correct: 'yes', other: 1 } }, 'scores.other: is not a score of this queue, which has correct'],
    [{ skip: true, scores: { correct: 'yes' } }, 'skip: cannot be given together with scores or a comment'],
  ])('%j is refused', async (body, detail) => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-4'] });
    const refused = await answer(queue_id, await first(queue_id, ann), ann, body);
    expect([refused.status, refused.json?.['detail']]).toEqual([422, detail]);
  });

  test('of two people are compared: agreement, kappa and the items on which they differ', async () => {
    const queue_id = await aQueue({ people_per_item: 2 }, { trace_ids: ['trace-5', 'trace-6', 'trace-7', 'trace-8'] });
    const values: Record<string, [string, string]> = {
      'trace-5': ['yes', 'yes'],
      'trace-6': ['no', 'no'],
      'trace-7': ['yes', 'yes'],
      'trace-8': ['yes', 'no'],
    };
    for (const [who, n] of [
      [ann, 0],
      [ben, 1],
    ] as const) {
      for (let at = 0; at < 4; at++) {
        const item = await first(queue_id, who);
        const correct = values[item.trace_ids[0] ?? '']?.[n];
        expect((await answer(queue_id, item, who, { scores: { correct } })).status).toBe(200);
      }
    }
    const path = `/v1/annotation-queues/${queue_id}`;
    await eventually(async () => {
      const { scores } = dataOf(await tenant.get(`${path}/progress`)) as { scores: { given: number }[] };
      return scores[0]?.given === 8;
    });
    const progress = dataOf(await tenant.get(`${path}/progress`)) as { scores: Json[]; people: Json[] };
    // By hand: 3 of 4 equal; chance 3/4 * 2/4 + 1/4 * 2/4 = 1/2; (3/4 - 1/2) / (1 - 1/2) = 1/2.
    expect(progress.scores[0]?.['agreement']).toEqual({ items: 4, disagreed: 1, percent: 0.75, kappa: 0.5 });
    expect(progress.people.map(({ answered }) => answered)).toEqual([4, 4]);
    const disagreed = dataOf(await tenant.get(`${path}/items?state=disagreed`));
    expect(disagreed).toMatchObject([{ trace_ids: ['trace-8'], disagreed: ['correct'] }]);
  });

  test('of a pair give each trace win, loss or tie, whichever side the person saw it on', async () => {
    const better = { name: 'better', type: 'preference' };
    const queue_id = await aQueue({ mode: 'pairwise', scores: [better] }, { trace_ids: ['trace-9', 'trace-10'] });
    const item = await first(queue_id, ann);
    expect([...item.trace_ids].sort()).toEqual(['trace-10', 'trace-9']);
    expect((await answer(queue_id, item, ann, { scores: { better: 'left' } })).status).toBe(200);
    const [left = '', right = ''] = item.trace_ids;
    await eventually(async () => (await scoresOf(left)).some(({ value }) => value === 'win'));
    expect(await scoresOf(right)).toMatchObject([{ name: 'better', value: 'loss' }]);
  });
});

describe('queues', () => {
  test('are changed with judges:write, used by members, and do not exist for other organizations', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-4', 'trace-4', 'nowhere'] });
    const path = `/v1/annotation-queues/${queue_id}`;
    const added = await tenant.call('POST', `${path}/items`, { body: { trace_ids: ['trace-4', 'gone'] } });
    expect(dataOf(added)).toEqual({ queue_id, added: 0, already: 1, missing: 1, unpaired: 0 });
    for (const [method, at, body] of [
      ['POST', '/v1/annotation-queues', { name: 'No', scores: [CORRECT] }],
      ['PATCH', path, { name: 'No' }],
      ['POST', `${path}/items`, { trace_ids: ['trace-4'] }],
      ['DELETE', path, undefined],
    ] as const) {
      const refused = await tenant.call(method, at, { headers: ann, ...(body === undefined ? {} : { body }) });
      expect([method, refused.status]).toEqual([method, 403]);
    }
    const stranger = await aTenant({ api, database: service.database });
    for (const at of [path, `${path}/progress`, `${path}/items`]) expect((await stranger.get(at)).status).toBe(404);
    expect(dataOf(await stranger.get('/v1/annotation-queues'))).toEqual([]);
    const writer = await tenant.keyOf('ingest:write');
    expect((await next(queue_id, writer)).status).toBe(403);
    const renamed = await tenant.call('PATCH', path, { body: { name: 'Renamed' } });
    expect(dataOf(renamed)).toMatchObject({ name: 'Renamed', progress: { total: 1, done: 0 } });
    expect((await tenant.call('DELETE', path)).status).toBe(200);
    expect((await tenant.get(path)).status).toBe(404);
    await eventually(async () => (await call(other, 'GET', path, { headers: ben })).status === 404);
  });

  test.each([
    [{ scores: [] }, /^scores: /],
    [{ scores: [{ name: 'x', type: 'categorical', options: ['one'] }] }, /^scores\[0\]\.options: /],
    [{ scores: [{ name: 'x', type: 'numeric', range: { min: 2, max: 1 } }] }, /range: must have a min below max$/],
    [{ mode: 'pairwise', scores: [CORRECT] }, /^scores: must all have the type preference/],
    [{ scores: [CORRECT], people_per_item: 6 }, /^people_per_item: /],
  ])('%j is refused', async (fields, detail) => {
    const refused = await tenant.call('POST', '/v1/annotation-queues', { body: { name: 'Q', ...fields } });
    expect([refused.status, refused.json?.['detail']]).toEqual([422, expect.stringMatching(detail)]);
  });

  test('take a share of a list, the same one every time, and refuse a query that the list refuses', async () => {
    const queue_id = await aQueue({}, { query: 'agent_id=agent_lease', share: 0.5 });
    const path = `/v1/annotation-queues/${queue_id}`;
    const { progress } = dataOf(await tenant.get(path)) as { progress: { total: number } };
    const again = await tenant.call('POST', `${path}/items`, { body: { query: 'agent_id=agent_lease', share: 0.5 } });
    expect(dataOf(again)).toMatchObject({ added: 0, already: progress.total });
    for (const [query, detail] of [
      ['outcom=error', /^query: unknown query parameter outcom/],
      ['outcome=broken', /^query: outcome: must be one or more of/],
    ] as const) {
      const refused = await tenant.call('POST', `${path}/items`, { body: { query } });
      expect([refused.status, refused.json?.['detail']]).toEqual([422, expect.stringMatching(detail)]);
    }
  });

  test('have a bound on their number', async () => {
    const crowd = await aTenant({ api, database: service.database });
    const create = async () =>
      (await crowd.call('POST', '/v1/annotation-queues', { body: { name: 'Q', scores: [CORRECT] } })).status;
    for (let n = 0; n < QUEUES_ORG_MAX; n++) expect(await create()).toBe(201);
    expect(await create()).toBe(409);
  });

  test('and their items go with the traces that are erased', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-5', 'trace-6'] });
    await deleteAnnotationItems(api.log, tenant.org, ['trace-5']);
    const path = `/v1/annotation-queues/${queue_id}/items`;
    await eventually(async () => {
      const items = itemsOf(await tenant.get(path));
      return items.length === 1 && items[0]?.trace_ids[0] === 'trace-6';
    });
  });
});

describe('a process that dies', () => {
  let victim: ChildProcess;
  afterAll(() => victim.kill('SIGKILL'));

  test('between lease and answer loses neither the lease nor the answer', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-11'] });
    const { natsUrl, clickhouseUrl } = service.urls;
    victim = fork(new URL('../../../api/main.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      execArgv: [],
      env: {
        PATH: process.env['PATH'],
        NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
        SERVICE_NATS_URL: natsUrl,
        SERVICE_CLICKHOUSE_URL: clickhouseUrl,
        SERVICE_PORT: '0',
        SERVICE_PARTITIONS: '4',
        SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
        SERVICE_BOOTSTRAP_ORG_ID: ORG,
        SERVICE_BOOTSTRAP_API_KEY: KEY,
        SERVICE_JWT_SECRET: JWT_SECRET,
      },
    });
    const [said] = (await once(victim, 'message')) as [{ port: number }];
    const dying = { url: `http://127.0.0.1:${said.port}` };
    // The victim has no skew, so its lease would have expired for the others if the clocks differed.
    skewMs = 0;
    const [item] = itemsOf(await next(queue_id, ann, {}, dying));
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    expect(itemsOf(await next(queue_id, ben))).toEqual([]);
    expect(await first(queue_id, ann)).toMatchObject({ item_id: item?.item_id });
    expect((await answer(queue_id, item as Item, ann, { scores: { correct: 'yes' } })).status).toBe(200);
    await eventually(async () => (await scoresOf('trace-11')).length === 1);
  });

  test('between storing an answer and sending its scores leaves them to the others, who send them once', async () => {
    const queue_id = await aQueue({}, { trace_ids: ['trace-0'] });
    const item = await first(queue_id, ann);
    // The record as the process leaves it that dies at this point.
    const store = await AnnotationStore.open(api.log, () => undefined);
    const queue = store.queue(tenant.org, queue_id);
    if (queue === null) throw new Error('the queue is missing');
    const by = { type: 'user' as const, id: 'user_dead' };
    const body = { scores: { correct: 'yes' }, comment: 'left behind', skip: false };
    await store.changeItem({ org_id: tenant.org, queue_id, item_id: item.item_id }, (record) =>
      withAnswer(record, queue, { by, body, now: Date.now() }),
    );
    const mine = async () => (await scoresOf('trace-0')).filter(({ comment }) => comment === 'left behind');
    await eventually(async () => (await mine()).length === 1, { what: 'the score that was left behind' });
    await eventually(() => store.item(tenant.org, queue_id, item.item_id)?.outbox.length === 0);
    expect(await mine()).toHaveLength(1);
    store.close();
  });
});
