// Two API processes and no worker: nothing lands, so a process knows the reservations of the other
// only from its announcements.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ReservationSharing } from '../../../api/admission/budget/sharing.ts';
import { connectNats } from '../../../ops/platform/nats/connect.ts';
import { nothingUsed } from '../../../pipeline/domain/budgets/budget.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { migrate } from '../../../sql/client/migrate.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { startTestApi, type TestApi } from '../api/an_api.ts';
import { code, TestOrg } from './a_budget.ts';

let database: TestDatabase;
let nats: TestNats;
let apis: [TestApi, TestApi];

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const client = createClickHouse({ url: database.url });
  await migrate(client, {});
  await client.close();
  const options = { natsUrl: nats.url, clickhouseUrl: database.url };
  apis = [await startTestApi(options), await startTestApi(options)];
}, 60_000);

afterAll(async () => {
  for (const api of apis) await api.close();
  await nats.remove();
  await database.drop();
});

test('a limit that one process reaches rejects in the other before anything has landed', async () => {
  const org = await TestOrg.make(apis);
  await org.limit(apis, { tokens: { hard_limit: 100 } });
  for (let i = 0; i < 3; i++) expect((await org.send(apis[0], 20)).status).toBe(200);
  expect((await org.send(apis[1], 20)).status).toBe(200);
  expect((await org.send(apis[0], 20)).status).toBe(200);
  await eventually(async () => code(await org.send(apis[1], 0)) === '429 rate_limited', {
    what: 'a refusal in the second',
  });
  await eventually(async () => code(await org.send(apis[0], 0)) === '429 rate_limited', {
    what: 'a refusal in the first',
  });
  expect((await org.budget(apis[0])).tokens.used).toBe(0);
});

test("an agent's own use is reported separately, for a batch over several partitions too", async () => {
  const org = await TestOrg.make(apis);
  await org.limitAgent(apis[0], 'small', { hard_limit: 10 });
  await org.limit(apis, { tokens: { hard_limit: 1000 } });
  const events = Array.from({ length: 20 }, (_, index) => ({
    name: `step ${index}`,
    outcome: 'success',
    duration_ms: 1,
    attributes: {
      agent_id: index % 2 === 0 ? 'small' : 'big',
      span_kind: 'llm',
      model: 'gpt-4o',
      input_tokens: 1,
      output_tokens: 0,
    },
  }));
  expect((await org.ingest(apis[0], 'custom', { events })).status).toBe(200);
  await eventually(async () => code(await org.send(apis[1], 0, { agent_id: 'small' })) === '429 rate_limited', {
    what: 'the agent refused',
  });
  expect((await org.send(apis[1], 970, { agent_id: 'big' })).status).toBe(200);
  expect((await org.send(apis[1], 10, { agent_id: 'big' })).status).toBe(200);
  expect(code(await org.send(apis[1], 0, { agent_id: 'big' }))).toBe('429 rate_limited');
  await eventually(async () => code(await org.send(apis[0], 0, { agent_id: 'other' })) === '429 rate_limited', {
    what: 'the org refused',
  });
});

test('use that one process could not publish is released in the other; use that it published, when it has landed', async () => {
  const [near, far] = [new UsageLedger(), new UsageLedger()];
  const scope = { from: 0, until: 10, agents: new Set(['a']) };
  const connections = [
    await connectNats({ url: nats.url, name: 'near', waitMs: 3000 }),
    await connectNats({ url: nats.url, name: 'far', waitMs: 3000 }),
  ];
  const sharings = [near, far].map((ledger, index) => {
    ledger.landed({ partition: 0, epoch: 1, landed_through: 0, after: 0, log_seq: 0, rows: [] });
    ledger.open('org', scope);
    ledger.beginRead('org');
    ledger.endRead('org', scope, [], 0);
    const nc = connections[index];
    if (nc === undefined) throw new Error('there is a connection');
    return new ReservationSharing({
      nc,
      ledger,
      logEnd: nothingLogged,
      onProblem: (problem) => {
        throw new Error(problem);
      },
    });
  });
  for (const nc of connections) await nc.flush();
  const letIn = (tokens: number) =>
    sharings[0]?.announce(
      'org',
      near.reserve('org', [
        { ...nothingUsed(), tokens, cost_pico_usd: 2n ** 70n, agent_id: 'a', partition: 0, hour: 5 },
      ]),
    );
  const [refused, stored] = [letIn(7), letIn(5)];
  await eventually(() => far.used('org').tokens === 12, { what: 'both known' });
  expect(far.used('org')).toEqual(near.used('org'));
  expect(far.agentUsed('org', 'a').tokens).toBe(12);
  refused?.cancel();
  stored?.confirm(new Map([[0, 3]]));
  await eventually(() => far.used('org').tokens === 5, { what: 'one given back' });
  // The confirmation of the stored reservation is announced before this one. Once this one has
  // arrived, the other process also knows the confirmation, as it must before the use lands.
  const last = letIn(1);
  await eventually(() => far.used('org').tokens === 6, { what: 'the last one known' });
  last?.cancel();
  far.landed({ partition: 0, epoch: 1, landed_through: 3, after: 0, log_seq: 0, rows: [] });
  await eventually(() => far.used('org').tokens === 0, { what: 'all given back' });
  for (const sharing of sharings) sharing.close();
  for (const nc of connections) await nc.close();
});

const nothingLogged = () => Promise.resolve(new Map<number, number>());

/** Opens the account of an organization in a ledger that hears of landings in partition 0. */
function openRead(ledger: UsageLedger): void {
  const scope = { from: 0, until: 10, agents: new Set<string>() };
  ledger.landed({ partition: 0, epoch: 1, landed_through: 0, after: 0, log_seq: 0, rows: [] });
  ledger.open('org', scope);
  ledger.beginRead('org');
  ledger.endRead('org', scope, [], 0);
}

/** Announces reservations as a process of its own, and closes its connection without ending them. */
async function reserveAndDie(begun: [id: number, tokens: number][], text = ''): Promise<void> {
  const nc = await connectNats({ url: nats.url, name: 'dies', waitMs: 3000 });
  if (text !== '') nc.publish('usage.let_in.dies', text);
  const rows = begun.map(([id, tokens]) => [id, 'org', [['', 0, 5, tokens, 0, 0, '0']]]);
  nc.publish('usage.let_in.dies', JSON.stringify({ begun: rows, confirmed: [], cancelled: [] }));
  await nc.flush();
  await nc.close();
}

test('use that a killed process reserved counts until what the log holds has landed, and once at any moment', async () => {
  const ledger = new UsageLedger();
  openRead(ledger);
  const nc = await connectNats({ url: nats.url, name: 'far', waitMs: 3000 });
  const problems: string[] = [];
  let reads = 0;
  const sharing = new ReservationSharing({
    nc,
    ledger,
    // The first read fails, as while JetStream has no leader.
    logEnd: () => (++reads === 1 ? Promise.reject(new Error('no leader')) : Promise.resolve(new Map([[0, 7]]))),
    onProblem: (problem) => problems.push(problem),
  });
  await nc.flush();
  await reserveAndDie([
    [1, 9],
    [2, 4],
  ]);
  await eventually(() => ledger.used('org').tokens === 13, { what: 'both count' });
  await eventually(() => reads === 2, { what: 'the end of the log is read' });
  expect(problems).toHaveLength(1);
  const row = { ...nothingUsed(), org_id: 'org', agent_id: '', hour: 5, tokens: 9 };
  ledger.landed({ partition: 0, epoch: 1, landed_through: 6, after: 0, log_seq: 0, rows: [] });
  expect(ledger.used('org').tokens).toBe(13);
  // One of them was stored before its process died; the other never was.
  ledger.landed({ partition: 0, epoch: 1, landed_through: 7, after: 0, log_seq: 7, rows: [row] });
  expect(ledger.used('org').tokens).toBe(9);
  sharing.close();
  await nc.close();
});

test('use that a process reserved before it died is released; a long request of a live process stays reserved', async () => {
  const [ledger, lasting] = [new UsageLedger(), new UsageLedger()];
  const scope = { from: 0, until: 10, agents: new Set<string>() };
  for (const one of [ledger, lasting]) one.open('org', scope);
  const nc = await connectNats({ url: nats.url, name: 'far', waitMs: 3000 });
  const problems: string[] = [];
  const sharing = new ReservationSharing({
    nc,
    ledger,
    logEnd: nothingLogged,
    onProblem: (problem) => problems.push(problem),
  });
  await nc.flush();
  // A reservation announced before the one that expires, and held longer.
  const living = await connectNats({ url: nats.url, name: 'lives', waitMs: 3000 });
  const alive = new ReservationSharing({
    nc: living,
    ledger: lasting,
    logEnd: nothingLogged,
    onProblem: () => undefined,
  });
  const use = { ...nothingUsed(), tokens: 7, agent_id: '', partition: 0, hour: 5 };
  const call = alive.announce('org', lasting.reserve('org', [use]));
  await eventually(() => ledger.used('org').tokens === 7, { what: 'the call is known' });
  await reserveAndDie([[1, 9]], 'no JSON');
  await eventually(() => ledger.used('org').tokens === 16, { what: 'it counts' });
  expect(problems).toHaveLength(1);
  await eventually(() => ledger.used('org').tokens === 7, { what: 'it is forgotten, and that alone' });
  call.cancel();
  await eventually(() => ledger.used('org').tokens === 0, { what: 'the call has ended' });
  for (const one of [alive, sharing]) one.close();
  for (const one of [living, nc]) await one.close();
});
