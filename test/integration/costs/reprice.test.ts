// Repricing with a real API, a real worker and the real engine: afterwards spans, texts, traces,
// usage and the views of analysts hold the same cost to the last digit.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { picoToDecimal, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { CorrectionLog } from '../../../pipeline/jobs/correction_log.ts';
import { PARTITIONS } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, type TestApi } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { aPricedTenant, DAY_MS, dataOf, everywhere, expectNoLookups, MODEL, priced } from './a_repricing.ts';
import { hasSpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';

let service: TestService;
let api: TestApi;

beforeAll(async () => {
  service = await TestService.start({ worker: { SERVICE_TRACE_GRACE_MS: '300', SERVICE_TRACE_IDLE_MS: '300' } });
  api = await service.startApi();
});

afterAll(() => service.close());

test('a repricing makes every stored cost agree with the new prices, and a second one changes nothing', async () => {
  const tenant = await aPricedTenant(service, api);
  await tenant.setPrices(priced(1, 2, 0.5));
  const limit = { tokens: { soft_limit: null, hard_limit: 1_000_000_000 } };
  expect((await tenant.call('PUT', `/orgs/${tenant.org}/budget`, { body: limit })).status).toBe(200);
  await tenant.send({ trace_id: 'trc_a', input: 1000, output: 100, cached: 400 });
  await tenant.send({ trace_id: 'trc_a', input: 7, output: 3 });
  await tenant.send({ trace_id: 'trc_b', input: 11, output: 13, agoMs: 2 * DAY_MS });
  await tenant.send({
    trace_id: 'trc_b',
    input: 17,
    output: 19,
    attributes: { agent_id: 'agent_2', department: 'tools' },
  });
  await tenant.send({ trace_id: 'trc_c', attributes: { cost_usd: 0.25 } });
  await tenant.send({ trace_id: 'trc_d', model: 'gpt-4o', input: 1000, output: 0 });
  await tenant.landed(6);
  const tokens = (i: number, o: number, c: number): string =>
    picoToDecimal(usdToPico('0') + BigInt(i * 1_000_000 + o * 2_000_000 + c * 500_000));
  const before = usdToPico(tokens(600 + 7 + 11 + 17, 100 + 3 + 13 + 19, 400)) + usdToPico('0.2525');
  expect(await tenant.costs()).toEqual(everywhere(picoToDecimal(before)));

  const neighbour = await aPricedTenant(service, api);
  await neighbour.setPrices(priced(9, 9));
  await neighbour.send({ trace_id: 'trc_a', input: 1000, output: 100 });
  await neighbour.landed(1);
  const costsOfNeighbour = await neighbour.costs();

  await tenant.setPrices(priced(0.123456789, 3.1, 0.05));
  const after =
    BigInt(600 + 7 + 11 + 17) * 123_456_789_000n +
    BigInt(100 + 3 + 13 + 19) * 3_100_000_000_000n +
    400n * 50_000_000_000n;
  const seenAgents = `SELECT agent_id, max(last_seen_at) FROM agent_activity WHERE org_id = '${tenant.org}' GROUP BY agent_id ORDER BY agent_id`;
  // The worker writes agent activity with the checkpoint after a landing.
  await eventually(async () => (await tenant.one(seenAgents)).split('\n').length === 2, {
    what: 'when both agents were heard of',
  });
  await new CorrectionLog(api.log, PARTITIONS).untilLanded(AbortSignal.timeout(60_000));
  const heard = await tenant.one(seenAgents);
  // The cost of each span is rounded to whole pico-USD separately, so the sums are exact except for
  // the last digit of each span.
  const seen = await tenant.repriced();
  expect(seen).toMatchObject({ org_id: tenant.org, spans: 5, repriced: 4, unknown: 0, finished: 0 });
  const now = await tenant.costs();
  expect(new Set(Object.values(now)).size).toBe(1);
  const spansNow = usdToPico(now['spans'] ?? '');
  const expected = after / 1_000_000n + usdToPico('0.2525');
  expect(Number(spansNow - expected)).toBeLessThanOrEqual(4);
  expect(Number(expected - spansNow)).toBeLessThanOrEqual(4);
  // Corrections are not agent activity: if they were, the checkpoint that the job waited for would
  // have stored it.
  expect(await tenant.one(seenAgents)).toBe(heard);
  expect(seen['delta_usd']).toBe(Number(picoToDecimal(spansNow - before)));
  await tenant.expectAgreement();
  expect(
    await tenant.one(
      `SELECT groupUniqArray(price_input_usd_per_mtok) FROM spans WHERE org_id = '${tenant.org}' AND model = '${MODEL}' AND price_source = 'org'`,
    ),
  ).toBe('[0.123456789]');
  expect(
    await tenant.one(`SELECT cost_usd, price_source FROM spans WHERE org_id = '${tenant.org}' AND trace_id = 'trc_c'`),
  ).toBe('0.25\tgiven');

  // The API returns the new total everywhere.
  const total = Number(picoToDecimal(spansNow));
  const summary = dataOf(await tenant.get('/v1/cost/summary?days=30&group_by=agent_id'));
  expect(summary['total_cost_usd']).toBe(total);
  // The budget comes from the account in memory, because the organization has a limit.
  await eventually(async () => dataOf(await tenant.get('/v1/budgets'))['total_cost_usd'] === total, {
    what: 'the budget',
  });
  const list = (await tenant.get('/v1/traces?limit=10')).json?.['data'] as {
    trace_id: string;
    cost_usd: number;
  }[];
  const ofTrace = await tenant.one(
    `SELECT sum(cost_usd) FROM spans WHERE org_id = '${tenant.org}' AND trace_id = 'trc_a'`,
  );
  expect(list.find(({ trace_id }) => trace_id === 'trc_a')?.cost_usd).toBe(Number(ofTrace));
  expect(list).toHaveLength(4);
  const tree = dataOf(await tenant.get('/v1/traces/trc_a/tree'))['spans'] as {
    span_id: string;
    cost_usd: number;
  }[];
  const ofSpans = await service.database.run(
    `SELECT cost_usd FROM spans WHERE org_id = '${tenant.org}' AND trace_id = 'trc_a' ORDER BY started_at FORMAT TSV`,
  );
  expect(tree.map(({ cost_usd }) => cost_usd)).toEqual(ofSpans.trim().split('\n').map(Number));

  expect(await tenant.repriced()).toMatchObject({ spans: 5, repriced: 0, delta_usd: 0, finished: 0 });
  expect(await tenant.costs()).toEqual(now);
  expect(await neighbour.costs()).toEqual(costsOfNeighbour);
  await expectNoLookups(service);

  // The earlier prices return: a correction that equals an earlier one is still applied.
  await tenant.setPrices(priced(1, 2, 0.5));
  expect(await tenant.repriced()).toMatchObject({ repriced: 4 });
  expect(await tenant.costs()).toEqual(everywhere(picoToDecimal(before)));
  await tenant.setPrices(priced(0.123456789, 3.1, 0.05));
  expect(await tenant.repriced()).toMatchObject({ repriced: 4 });
  expect(await tenant.costs()).toEqual(now);
  await tenant.expectAgreement();

  // A late event of a corrected trace, and events of that trace that arrive during its next
  // correction.
  await tenant.send({ trace_id: 'trc_a', input: 5, output: 5 });
  await tenant.landed(7);
  await tenant.expectAgreement();
  expect(await tenant.repriced()).toMatchObject({ spans: 6, repriced: 0 });
  await tenant.setPrices(priced(2, 2));
  const meanwhile = async (): Promise<void> => {
    for (let i = 0; i < 30; i++) await tenant.send({ trace_id: i % 2 === 0 ? 'trc_a' : 'trc_b', input: i, output: 1 });
  };
  await Promise.all([tenant.repriced(), meanwhile()]);
  await tenant.landed(37);
  await tenant.expectAgreement();
  await tenant.repriced();
  expect(await tenant.repriced()).toMatchObject({ spans: 36, repriced: 0 });
});

test('a repricing prices spans that had no price, marks them, and leaves other models and days alone', async () => {
  const tenant = await aPricedTenant(service, api);
  await tenant.send({
    trace_id: 'trc_a',
    model: 'nobody-knows-it',
    input: 10,
    output: 1,
    attributes: { note: 'a/b "c"' },
  });
  await tenant.send({ trace_id: 'trc_b', model: 'nobody-knows-it', input: 10, output: 1, agoMs: 5 * DAY_MS });
  await tenant.send({ trace_id: 'trc_c', input: 10, output: 1 });
  await tenant.landed(3);
  const attributes = async (): Promise<Record<string, unknown>> =>
    JSON.parse(
      await tenant.one(
        `SELECT attributes FROM spans WHERE org_id = '${tenant.org}' AND trace_id = 'trc_a' FORMAT TSVRaw`,
      ),
    ) as Record<string, unknown>;
  const isFlagged = async (): Promise<boolean> => {
    const flags = await tenant.one(`SELECT flags FROM spans WHERE org_id = '${tenant.org}' AND trace_id = 'trc_a'`);
    return hasSpanFlag(Number(flags), 'price_missing');
  };
  const whole = await attributes();
  expect(await isFlagged()).toBe(true);
  expect(whole).toMatchObject({ price_missing: true, note: 'a/b "c"' });
  await tenant.setPrices({ ...priced(1, 1), model: 'Nobody-Knows-It' }, priced(1, 1));
  const range = { model: 'NOBODY-knows-it', since: new Date(Date.now() - DAY_MS).toISOString() };
  expect(await tenant.repriced(range)).toMatchObject({ spans: 1, repriced: 1, delta_usd: 0.000011 });
  const { price_missing: gone, ...kept } = whole;
  expect([gone, await attributes(), await isFlagged()]).toEqual([true, kept, false]);
  expect(await tenant.costs()).toEqual(everywhere('0.000011'));
  await tenant.setPrices();
  expect(await tenant.repriced(range)).toMatchObject({ spans: 1, repriced: 1, delta_usd: -0.000011 });
  expect(await attributes()).toEqual(whole);
  expect(await tenant.costs()).toEqual(everywhere('0'));
  await tenant.expectAgreement();
});

test('a repricing with an invalid range, an unknown organization or without the rights of the operator is refused', async () => {
  const tenant = await aPricedTenant(service, api);
  const now = Date.now();
  const iso = (ms: number): string => new Date(ms).toISOString();
  const code = (answer: Answer): string =>
    `${answer.status} ${String(answer.json?.['code'])} ${String(answer.json?.['detail'])}`;
  expect(code(await tenant.reprice({ since: iso(now), until: iso(now) }))).toMatch(/^422 invalid_request .*until/);
  expect(code(await tenant.reprice({ since: iso(now - 401 * DAY_MS) }))).toMatch(/^422 invalid_request .*until/);
  expect(code(await tenant.reprice({ since: 'yesterday' }))).toMatch(/^422 invalid_request .*since/);
  expect(code(await tenant.reprice({ model: '' }))).toMatch(/^422 invalid_request .*model/);
  expect(code(await tenant.reprice({ org_id: 'org_nowhere' }))).toMatch(/^404 org_not_found/);
  const body = { org_id: tenant.org, since: iso(now - DAY_MS), until: iso(now) };
  expect((await tenant.call('POST', '/admin/reprice', { body })).status).toBeGreaterThanOrEqual(401);
});
