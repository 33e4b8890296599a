// Repricing end to end: a real API, real workers, the real engine. After it spans, texts, traces, usage and the views of analysts
// hold the same cost to the last digit, whatever was killed on the way and however often it was asked for.
import { randomUUID } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { picoToDecimal, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { OrgPrice } from '../../../pipeline/domain/pricing/pricing.ts';
import { CorrectionLog, correctionMessages } from '../../../pipeline/jobs/correction_log.ts';
import { JobLeases, type Lease } from '../../../pipeline/jobs/lease.ts';
import { createReprice, type RepriceDeps } from '../../../pipeline/jobs/reprice.ts';
import { createLogger } from '../../../ops/platform/logger.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { ingestSubject } from '../../../schemas/streams.ts';
import { type CostChange, costCorrectionsCodec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import { REPRICE } from '../../../schemas/records/repricing.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { RepricingStore } from '../../../sql/stores/repricing.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { PARTITIONS, startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, type Answer, call, startTestApi, type TestApi } from '../api/an_api.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const MODEL = 'our-llama';

let database: TestDatabase;
let nats: TestNats;
let api: TestApi;
let worker: TestWorker;
let org = '';
let key = '';
let orgs = 0;
let sent = 0;

const startAWorker = async (): Promise<void> => {
  worker = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: { SERVICE_TRACE_GRACE_MS: '300', SERVICE_TRACE_IDLE_MS: '300' },
  });
  await worker.ready;
};

beforeAll(async () => {
  [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  await startAWorker();
});

afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await api.close();
  await nats.stop();
  await database.drop();
});

const admin = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
const asOrg = () => ({ 'X-Org-Api-Key': key, 'X-Org-Id': org });

async function anOrg(): Promise<{ org: string; key: string }> {
  orgs++;
  const org_id = `org_reprice_${String(orgs)}`;
  const body = {
    org_id,
    name: org_id,
    plan_name: 'enterprise',
    owner: { user_id: `u_${org_id}`, email: `${org_id}@example.com` },
  };
  expect((await call(api, 'POST', '/admin/orgs', { headers: admin, body })).status).toBe(201);
  const made = await call(api, 'POST', `/admin/orgs/${org_id}/api-keys`, {
    headers: admin,
    body: { name: 'all', scopes: ['*'] },
  });
  const raw = String(made.json?.['raw_key']);
  const headers = { 'X-Org-Api-Key': raw, 'X-Org-Id': org_id };
  await eventually(async () => (await call(api, 'GET', `/orgs/${org_id}`, { headers })).status === 200, {
    what: 'the key',
  });
  return { org: org_id, key: raw };
}

beforeEach(async () => {
  ({ org, key } = await anOrg());
});

const setPrices = async (...prices: OrgPrice[]): Promise<void> => {
  expect((await call(api, 'PUT', `/orgs/${org}/prices`, { headers: asOrg(), body: { prices } })).status).toBe(200);
};
const priced = (input: number, output: number, cached?: number): OrgPrice => ({
  model: MODEL,
  input_usd_per_mtok: input,
  output_usd_per_mtok: output,
  ...(cached === undefined ? {} : { cached_input_usd_per_mtok: cached }),
});

interface Sent {
  trace_id: string;
  model?: string;
  input?: number;
  output?: number;
  cached?: number;
  attributes?: Record<string, unknown>;
  /** Before now. */
  agoMs?: number;
}

/** One model call, never the same twice. */
async function send({
  trace_id,
  model = MODEL,
  input = 1000,
  output = 100,
  cached = 0,
  attributes = {},
  agoMs = 0,
}: Sent): Promise<void> {
  sent++;
  const body = {
    trace_id,
    request: { model, messages: [{ role: 'user', content: `question ${String(sent)}` }] },
    response: {
      id: `r${String(sent)}`,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'answer' }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: cached },
      },
    },
    started_at: new Date(Date.now() - agoMs).toISOString(),
    duration_ms: 5,
    outcome: 'success',
    attributes: { agent_id: 'agent_1', department: 'sales', ...attributes },
  };
  expect((await call(api, 'POST', `/orgs/${org}/ingest/chatcompletion`, { headers: asOrg(), body })).status).toBe(200);
}

const reprice = (more: Record<string, unknown> = {}): Promise<Answer> =>
  call(api, 'POST', '/admin/reprice', {
    headers: admin,
    body: {
      org_id: org,
      since: new Date(Date.now() - 10 * DAY_MS).toISOString(),
      until: new Date(Date.now() + HOUR_MS).toISOString(),
      ...more,
    },
  });
const dataOf = (answer: Answer): Record<string, unknown> => answer.json?.['data'] as Record<string, unknown>;
/** Asks until the job is free: every few minutes it runs by itself. */
async function repriced(more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
  const answers: Answer[] = [];
  await eventually(
    async () => {
      answers.push(await reprice(more));
      return answers.at(-1)?.status !== 409;
    },
    { what: 'the job' },
  );
  const answer = answers.at(-1);
  expect([answer?.status, answer?.json]).toEqual([200, answer?.json]);
  return answer?.json?.['data'] as Record<string, unknown>;
}

const one = async (sql: string): Promise<string> => (await database.run(sql)).trim();
/** The cost of an org wherever it stands, as decimal text. */
async function costs(of = org): Promise<Record<string, string>> {
  const where = `WHERE org_id = '${of}'`;
  const sums: Record<string, string> = {
    spans: `SELECT sum(cost_usd) FROM spans ${where}`,
    traces: `SELECT sum(cost_usd * sign) FROM traces ${where}`,
    usage: `SELECT sum(cost_usd) FROM usage_events ${where}`,
    view_spans: `SELECT sum(cost_usd) FROM analyst_spans ${where}`,
    view_traces: `SELECT sum(cost_usd) FROM analyst_traces ${where}`,
    view_usage: `SELECT sum(cost_usd) FROM analyst_usage ${where}`,
    view_costs_daily: `SELECT sum(cost_usd) FROM analyst_costs_daily ${where}`,
  };
  const found = await Promise.all(Object.values(sums).map(one));
  return Object.fromEntries(
    Object.keys(sums).map((name, index) => [name, picoToDecimal(usdToPico(found[index] ?? '0'))]),
  );
}
const everywhere = (usd: string): Record<string, string> =>
  Object.fromEntries(
    ['spans', 'traces', 'usage', 'view_spans', 'view_traces', 'view_usage', 'view_costs_daily'].map((name) => [
      name,
      picoToDecimal(usdToPico(usd)),
    ]),
  );
/** What must hold of an org after everything: sums of any kind agree, by trace, by day and dimension, and text by text. */
async function expectAgreement(of = org): Promise<void> {
  const spans = `SELECT trace_id, sum(cost_usd) AS cost, count() AS spans FROM spans WHERE org_id = '${of}' GROUP BY trace_id`;
  const traces = `SELECT trace_id, cost_usd AS cost, spans FROM analyst_traces WHERE org_id = '${of}'`;
  expect(
    await one(
      `SELECT count() FROM (${spans}) AS s FULL JOIN (${traces}) AS t USING trace_id WHERE s.cost != t.cost OR s.spans != t.spans`,
    ),
  ).toBe('0');
  const dimensions = 'day, model, agent_id, department, realm';
  const own = `SELECT toDate(started_at) AS day, model, agent_id, department, realm, sum(cost_usd) AS cost, sum(input_tokens) AS tokens FROM spans WHERE org_id = '${of}' GROUP BY ${dimensions}`;
  const used = `SELECT ${dimensions}, sum(cost_usd) AS cost, sum(input_tokens) AS tokens FROM usage_events WHERE org_id = '${of}' GROUP BY ${dimensions}`;
  expect(
    await one(
      `SELECT count() FROM (${own}) AS s FULL JOIN (${used}) AS u USING (${dimensions}) WHERE s.cost != u.cost OR s.tokens != u.tokens`,
    ),
  ).toBe('0');
  const hours = `SELECT toStartOfHour(received_at) AS hour, sum(cost_usd) AS cost FROM spans WHERE org_id = '${of}' GROUP BY hour`;
  const usedHours = `SELECT hour, sum(cost_usd) AS cost FROM usage_events WHERE org_id = '${of}' GROUP BY hour`;
  expect(
    await one(
      `SELECT count() FROM (${hours}) AS s FULL JOIN (${usedHours}) AS u ON s.hour = u.hour WHERE s.cost != u.cost`,
    ),
  ).toBe('0');
  const key4 = 'partition, log_seq, log_index, log_sub';
  const texts = `SELECT ${key4}, cost_usd FROM span_texts WHERE org_id = '${of}' UNION DISTINCT SELECT ${key4}, cost_usd FROM span_texts_recent WHERE org_id = '${of}'`;
  expect(
    await one(
      `SELECT count() FROM (${texts}) AS t INNER JOIN (SELECT ${key4}, cost_usd FROM spans WHERE org_id = '${of}') AS s USING (${key4}) WHERE t.cost_usd != s.cost_usd`,
    ),
  ).toBe('0');
  expect(await one(`SELECT count() FROM span_corrections WHERE org_id = '${of}'`)).toBe('0');
}
const landed = (spans: number, of = org) =>
  eventually(
    async () => {
      const counts = await one(
        `SELECT (SELECT count() FROM spans WHERE org_id = '${of}'), (SELECT sum(spans * sign) FROM traces WHERE org_id = '${of}'), (SELECT sum(events) FROM usage_events WHERE org_id = '${of}')`,
      );
      return counts === [spans, spans, spans].join('\t');
    },
    { what: `${String(spans)} spans of ${of}` },
  );
const noLookups = async (): Promise<void> => {
  expect(
    await one(
      "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name LIKE 'span_corrections_%'",
    ),
  ).toBe('0');
};

describe('POST /admin/reprice', () => {
  it('makes everything that holds a cost agree, and nothing more the second time', async () => {
    await setPrices(priced(1, 2, 0.5));
    const limit = { tokens: { soft_limit: null, hard_limit: 1_000_000_000 } };
    expect((await call(api, 'PUT', `/orgs/${org}/budget`, { headers: asOrg(), body: limit })).status).toBe(200);
    await send({ trace_id: 'trc_a', input: 1000, output: 100, cached: 400 });
    await send({ trace_id: 'trc_a', input: 7, output: 3 });
    await send({ trace_id: 'trc_b', input: 11, output: 13, agoMs: 2 * DAY_MS });
    await send({ trace_id: 'trc_b', input: 17, output: 19, attributes: { agent_id: 'agent_2', department: 'tools' } });
    await send({ trace_id: 'trc_c', attributes: { cost_usd: 0.25 } });
    await send({ trace_id: 'trc_d', model: 'gpt-4o', input: 1000, output: 0 });
    await landed(6);
    const tokens = (i: number, o: number, c: number): string =>
      picoToDecimal(usdToPico('0') + BigInt(i * 1_000_000 + o * 2_000_000 + c * 500_000));
    const before = usdToPico(tokens(600 + 7 + 11 + 17, 100 + 3 + 13 + 19, 400)) + usdToPico('0.2525');
    expect(await costs()).toEqual(everywhere(picoToDecimal(before)));

    const other = await anOrg();
    const mine = { org, key };
    ({ org, key } = other);
    await setPrices(priced(9, 9));
    await send({ trace_id: 'trc_a', input: 1000, output: 100 });
    await landed(1);
    const others = await costs();
    ({ org, key } = mine);

    await setPrices(priced(0.123456789, 3.1, 0.05));
    const after =
      BigInt(600 + 7 + 11 + 17) * 123_456_789_000n +
      BigInt(100 + 3 + 13 + 19) * 3_100_000_000_000n +
      400n * 50_000_000_000n;
    const seenAgents = `SELECT agent_id, max(last_seen_at) FROM agent_activity WHERE org_id = '${org}' GROUP BY agent_id ORDER BY agent_id`;
    // Written with the checkpoint after a landing.
    await eventually(async () => (await one(seenAgents)).split('\n').length === 2, {
      what: 'when both agents were heard of',
    });
    await new CorrectionLog(api.log, PARTITIONS).landed(AbortSignal.timeout(60_000));
    const heard = await one(seenAgents);
    // Each span is rounded by itself to whole pico-USD; these come out even but for the last digit of each.
    const seen = await repriced();
    expect(seen).toMatchObject({ org_id: org, spans: 5, repriced: 4, unknown: 0, finished: 0 });
    const now = await costs();
    expect(new Set(Object.values(now)).size).toBe(1);
    const spansNow = usdToPico(now['spans'] ?? '');
    const expected = after / 1_000_000n + usdToPico('0.2525');
    expect(Number(spansNow - expected)).toBeLessThanOrEqual(4);
    expect(Number(expected - spansNow)).toBeLessThanOrEqual(4);
    // What the corrections would say of their agents would have been written with the checkpoint that the job has waited for.
    expect(await one(seenAgents)).toBe(heard);
    expect(seen['delta_usd']).toBe(Number(picoToDecimal(spansNow - before)));
    await expectAgreement();
    expect(
      await one(
        `SELECT groupUniqArray(price_input_usd_per_mtok) FROM spans WHERE org_id = '${org}' AND model = '${MODEL}' AND price_source = 'org'`,
      ),
    ).toBe('[0.123456789]');
    expect(await one(`SELECT cost_usd, price_source FROM spans WHERE org_id = '${org}' AND trace_id = 'trc_c'`)).toBe(
      '0.25\tgiven',
    );

    // What people see.
    const total = Number(picoToDecimal(spansNow));
    const summary = dataOf(await call(api, 'GET', '/v1/cost/summary?days=30&group_by=agent_id', { headers: asOrg() }));
    expect(summary['total_cost_usd']).toBe(total);
    // From the account that is kept in memory: the org has a limit.
    await eventually(
      async () => dataOf(await call(api, 'GET', '/v1/budgets', { headers: asOrg() }))['total_cost_usd'] === total,
      {
        what: 'the budget',
      },
    );
    const list = (await call(api, 'GET', '/v1/traces?limit=10', { headers: asOrg() })).json?.['data'] as {
      trace_id: string;
      cost_usd: number;
    }[];
    const ofTrace = await one(`SELECT sum(cost_usd) FROM spans WHERE org_id = '${org}' AND trace_id = 'trc_a'`);
    expect(list.find(({ trace_id }) => trace_id === 'trc_a')?.cost_usd).toBe(Number(ofTrace));
    expect(list).toHaveLength(4);
    const tree = dataOf(await call(api, 'GET', '/v1/traces/trc_a/tree', { headers: asOrg() }))['spans'] as {
      span_id: string;
      cost_usd: number;
    }[];
    const ofSpans = await database.run(
      `SELECT cost_usd FROM spans WHERE org_id = '${org}' AND trace_id = 'trc_a' ORDER BY started_at FORMAT TSV`,
    );
    expect(tree.map(({ cost_usd }) => cost_usd)).toEqual(ofSpans.trim().split('\n').map(Number));

    expect(await repriced()).toMatchObject({ spans: 5, repriced: 0, delta_usd: 0, finished: 0 });
    expect(await costs()).toEqual(now);
    expect(await costs(other.org)).toEqual(others);
    await noLookups();

    // Back again: the same correction as one that was made before is a correction of its own.
    await setPrices(priced(1, 2, 0.5));
    expect(await repriced()).toMatchObject({ repriced: 4 });
    expect(await costs()).toEqual(everywhere(picoToDecimal(before)));
    await setPrices(priced(0.123456789, 3.1, 0.05));
    expect(await repriced()).toMatchObject({ repriced: 4 });
    expect(await costs()).toEqual(now);
    await expectAgreement();

    // A late event of a trace that was corrected, and events of it that come in while it is corrected once more.
    await send({ trace_id: 'trc_a', input: 5, output: 5 });
    await landed(7);
    await expectAgreement();
    expect(await repriced()).toMatchObject({ spans: 6, repriced: 0 });
    await setPrices(priced(2, 2));
    const meanwhile = async (): Promise<void> => {
      for (let i = 0; i < 30; i++) await send({ trace_id: i % 2 === 0 ? 'trc_a' : 'trc_b', input: i, output: 1 });
    };
    await Promise.all([repriced(), meanwhile()]);
    await landed(37);
    await expectAgreement();
    await repriced();
    expect(await repriced()).toMatchObject({ spans: 36, repriced: 0 });
  });

  it('prices what had no price, says so in its attributes, and takes no notice of other models and days', async () => {
    await send({ trace_id: 'trc_a', model: 'nobody-knows-it', input: 10, output: 1, attributes: { note: 'a/b "c"' } });
    await send({ trace_id: 'trc_b', model: 'nobody-knows-it', input: 10, output: 1, agoMs: 5 * DAY_MS });
    await send({ trace_id: 'trc_c', input: 10, output: 1 });
    await landed(3);
    const attributes = async (): Promise<Record<string, unknown>> =>
      JSON.parse(
        await one(`SELECT attributes FROM spans WHERE org_id = '${org}' AND trace_id = 'trc_a' FORMAT TSVRaw`),
      ) as Record<string, unknown>;
    const whole = await attributes();
    expect(whole).toMatchObject({ price_missing: true, note: 'a/b "c"' });
    await setPrices({ ...priced(1, 1), model: 'Nobody-Knows-It' }, priced(1, 1));
    const range = { model: 'NOBODY-knows-it', since: new Date(Date.now() - DAY_MS).toISOString() };
    expect(await repriced(range)).toMatchObject({ spans: 1, repriced: 1, delta_usd: 0.000011 });
    const { price_missing: gone, ...kept } = whole;
    expect([gone, await attributes()]).toEqual([true, kept]);
    expect(await costs()).toEqual(everywhere('0.000011'));
    await setPrices();
    expect(await repriced(range)).toMatchObject({ spans: 1, repriced: 1, delta_usd: -0.000011 });
    expect(await attributes()).toEqual(whole);
    expect(await costs()).toEqual(everywhere('0'));
    await expectAgreement();
  });

  it('refuses what it cannot take', async () => {
    const now = Date.now();
    const iso = (ms: number): string => new Date(ms).toISOString();
    const code = (answer: Answer): string =>
      `${String(answer.status)} ${String(answer.json?.['code'])} ${String(answer.json?.['detail'])}`;
    expect(code(await reprice({ since: iso(now), until: iso(now) }))).toMatch(/^422 invalid_request .*until/);
    expect(code(await reprice({ since: iso(now - 401 * DAY_MS) }))).toMatch(/^422 invalid_request .*until/);
    expect(code(await reprice({ since: 'yesterday' }))).toMatch(/^422 invalid_request .*since/);
    expect(code(await reprice({ model: '' }))).toMatch(/^422 invalid_request .*model/);
    expect(code(await reprice({ org_id: 'org_nowhere' }))).toMatch(/^404 org_not_found/);
    const body = { org_id: org, since: iso(now - DAY_MS), until: iso(now) };
    expect((await call(api, 'POST', '/admin/reprice', { headers: asOrg(), body })).status).toBeGreaterThanOrEqual(401);
  });

  it('is finished by another worker when its own is killed before spans are corrected, and is exact', async () => {
    await setPrices(priced(1, 1));
    for (let i = 0; i < 12; i++) await send({ trace_id: `trc_${String(i % 5)}`, input: 100 + i, output: i });
    await landed(12);
    await setPrices(priced(2, 2));
    const before = usdToPico((await costs())['usage'] ?? '');
    // Mutations wait from now on; what goes through the log lands.
    await database.run('SYSTEM STOP MERGES spans');
    const asked = reprice();
    await eventually(async () => usdToPico((await costs())['usage'] ?? '') === 2n * before, {
      what: 'usage corrected',
    });
    await eventually(
      async () =>
        (await one(
          "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table = 'spans' AND NOT is_done AND command LIKE '%joinGet%'",
        )) === '1',
      {
        what: 'the mutation',
      },
    );
    worker.kill('SIGKILL');
    await worker.exited;
    expect((await asked).status).toBe(502);
    expect(usdToPico((await costs())['spans'] ?? '')).toBe(before);
    // Prices are corrected once more before anybody comes back to it.
    await setPrices(priced(3, 3));
    await database.run('SYSTEM START MERGES spans');
    await startAWorker();
    await repriced();
    expect(await costs()).toEqual(everywhere(picoToDecimal(3n * before)));
    await expectAgreement();
    await noLookups();
    expect(await repriced()).toMatchObject({ repriced: 0, finished: 0 });
  });

  it('is exact wherever a run is broken off', async () => {
    const clickhouse = createClickHouse({ url: database.url });
    await setPrices(priced(1, 1));
    for (let i = 0; i < 20; i++)
      await send({ trace_id: `trc_${String(i % 7)}_${randomUUID()}`, input: 100 + i, output: i });
    await landed(20);
    const before = usdToPico((await costs())['spans'] ?? '');
    const broken = (): never => {
      throw new Error('broken off');
    };
    const { log } = api;
    const leases = await JobLeases.open({
      nc: log.nc,
      kv: await log.bucket('jobs'),
      workerId: 'test',
      onProblem: () => undefined,
    });
    const store = new RepricingStore(clickhouse);
    /** The log, whose client breaks off after so many messages. */
    const logThatSends = (messages: number): Log => {
      let left = messages;
      const publish: Log['js']['publish'] = (...args) => (left-- > 0 ? log.js.publish(...args) : broken());
      return {
        ...log,
        js: new Proxy(log.js, { get: (js, name): unknown => (name === 'publish' ? publish : Reflect.get(js, name)) }),
      };
    };
    /** Runs in this process, with a part that breaks off. */
    const run = async (factor: number, over: Partial<RepriceDeps>): Promise<void> => {
      const deps: RepriceDeps = {
        clickhouse,
        store,
        log: new CorrectionLog(log, PARTITIONS),
        kv: () => log.bucket('repricings'),
        pricesOf: () => Promise.resolve([priced(factor, factor)]),
        sync: () => Promise.resolve(),
        ...over,
      };
      const args = { org_id: org, since: Date.now() - DAY_MS, until: Date.now() + HOUR_MS, model: null };
      let lease: Lease | null = null;
      await eventually(async () => (lease = await leases.take(REPRICE)) !== null, { what: 'the lease' });
      try {
        await createReprice(deps)({
          now: Date.now(),
          signal: AbortSignal.timeout(60_000),
          log: createLogger('test', 'silent'),
          args,
        });
      } finally {
        await (lease as Lease | null)?.release();
      }
    };
    const restart = async (): Promise<void> => {
      worker.kill('SIGKILL');
      await worker.exited;
      await startAWorker();
    };
    const correctThen = async (...[plan_id, plan, signal]: Parameters<RepricingStore['correct']>): Promise<void> => {
      await store.correct(plan_id, plan, signal);
      broken();
    };
    const sent: { plan: { plan_id: string; org_id: string }; changes: readonly CostChange[] }[] = [];
    /** Sends all, while the worker is killed as soon as it has landed it, ahead of its checkpoint. */
    const sendThroughKill: CorrectionLog['send'] = async (plan, changes, signal) => {
      sent.push({ plan, changes });
      const was = (await costs())['usage'];
      const sending = new CorrectionLog(log, PARTITIONS).send(plan, changes, signal);
      await eventually(async () => (await costs())['usage'] !== was, { what: 'something landed' });
      await restart();
      await sending;
      broken();
    };
    const breaks: Partial<RepriceDeps>[] = [
      // The plan is written, nothing else.
      { sync: broken },
      // The plan is under way, nothing is sent; then the half of it.
      { log: new CorrectionLog(logThatSends(0), PARTITIONS) },
      { log: new CorrectionLog(logThatSends(2), PARTITIONS) },
      { log: Object.assign(new CorrectionLog(log, PARTITIONS), { send: sendThroughKill }) },
      // Spans and texts are corrected; all is done but taking the plan away.
      { store: Object.assign(new RepricingStore(clickhouse), { correct: correctThen }) },
      { store: Object.assign(new RepricingStore(clickhouse), { dropPlan: broken }) },
    ];
    let factor = 1;
    for (const over of breaks) {
      factor += 1;
      await expect(run(factor, over)).rejects.toThrow('broken off');
      factor += 1;
      await setPrices(priced(factor, factor));
      await repriced();
      expect(await costs()).toEqual(everywhere(picoToDecimal(BigInt(factor) * before)));
      await expectAgreement();
      await noLookups();
    }
    // A worker that was paused sends once more what is long done, past the window in which the log itself would know it.
    await restart();
    expect(sent).toHaveLength(1);
    for (const { plan, changes } of sent) {
      const messages = correctionMessages(plan, changes, PARTITIONS);
      expect(messages.length).toBeGreaterThan(1);
      for (const { partition, corrections } of [...messages, ...messages]) {
        const head = headers();
        head.set(FINGERPRINT_HEADER, costCorrectionsCodec.fingerprint);
        await log.js.publish(ingestSubject(partition), costCorrectionsCodec.encode(corrections), { headers: head });
      }
    }
    expect(await repriced()).toMatchObject({ repriced: 0, finished: 0 });
    expect(await costs()).toEqual(everywhere(picoToDecimal(BigInt(factor) * before)));
    await expectAgreement();
    leases.close();
    await clickhouse.close();
  });
});
