// Costs end to end: a real API, a real worker, the real engine. The pipeline prices and lands the
// events, and the API returns their costs.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { type Answer, asUser, call, type TestApi, tokenOf } from '../api/an_api.ts';
import { TestService } from '../a_service.ts';
import { asOperator, aTenant, type Caller, type Tenant } from '../a_tenant.ts';

const DAY_MS = 86_400_000;
/** Returns noon (UTC) of the day `ago` days before today, or the start of today for 0. */
const noon = (ago: number): string =>
  new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - ago * DAY_MS + (ago === 0 ? 0 : DAY_MS / 2)).toISOString();

let service: TestService;
let api: TestApi;
/** The organization of the current test. */
let org = '';
let key: Caller = {};
let tenant: Tenant;

beforeAll(async () => {
  service = await TestService.start();
  api = await service.startApi();
});

afterAll(async () => {
  await service.close();
});

const asOrg = () => key;
const owner = async () => asUser(await tokenOf({ sub: `u_${org}`, email: `${org}@example.com` }), org);
const get = (path: string): Promise<Answer> => call(api, 'GET', path, { headers: asOrg() });
const put = (path: string, body: unknown, headers: Record<string, string | undefined> = asOrg()): Promise<Answer> =>
  call(api, 'PUT', path, { headers, body });
const data = (answer: Answer): unknown => answer.json?.['data'];

beforeEach(async () => {
  tenant = await aTenant({ api });
  ({ org, key } = tenant);
});

interface Summary {
  total_cost_usd: number;
  by_day: { date: string; cost_usd: number; tokens: number }[];
  by_model: { model: string | null; cost_usd: number; share: number }[];
  by_department: { department: string | null; cost_usd: number; share: number }[];
}
const summary = async (query = ''): Promise<Summary> => data(await get(`/v1/cost/summary${query}`)) as Summary;

async function send(events: Record<string, unknown>[]): Promise<void> {
  const sent = await call(api, 'POST', `/orgs/${org}/ingest/custom`, {
    headers: asOrg(),
    body: {
      events: events.map((event, index) => ({
        name: `step ${index}`,
        outcome: 'success',
        duration_ms: 0,
        ...event,
      })),
    },
  });
  expect(sent.status).toBe(200);
}
const spent = (usd: number): Promise<unknown> =>
  eventually(async () => (await summary('?days=365')).total_cost_usd >= usd - 1e-9, {
    what: `${usd} USD landed`,
  });

async function sendCall(model: string, input: number, output: number): Promise<void> {
  const body = {
    request: { model, messages: [{ role: 'user', content: 'hello' }] },
    response: {
      id: 'r',
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    },
    duration_ms: 1,
    outcome: 'success',
    attributes: { nonce: Math.random() },
  };
  expect((await call(api, 'POST', `/orgs/${org}/ingest/chatcompletion`, { headers: asOrg(), body })).status).toBe(200);
}

describe('costs', () => {
  it('costs are summed by day, model and department', async () => {
    await send([
      { started_at: noon(0), attributes: { cost_usd: 0.1, department: 'sales', outcomes: { leads: 2 } } },
      { started_at: noon(1), attributes: { cost_usd: 0.2, department: 'sales', outcomes: { leads: 1, tickets: 4 } } },
      { started_at: noon(29), attributes: { cost_usd: '0.000000000003', department: 'support' } },
      { started_at: noon(40), attributes: { cost_usd: 7 } },
    ]);
    await spent(7.3);
    const { total_cost_usd, by_day, by_department } = await summary('?group_by=department');
    expect(total_cost_usd).toBe(0.300000000003);
    expect(by_day).toHaveLength(30);
    expect(by_day.at(-1)?.cost_usd).toBe(0.1);
    expect(by_day.at(-2)?.cost_usd).toBe(0.2);
    expect(by_day[0]?.cost_usd).toBe(3e-12);
    expect(by_department.map(({ department, cost_usd }) => [department, cost_usd])).toEqual([
      ['sales', 0.3],
      ['support', 3e-12],
    ]);
    expect(
      (await put(`/orgs/${org}/policy`, { value_of_outcomes: 'leads * 1.5 - tickets' }, await owner())).status,
    ).toBe(200);
    expect(data(await get('/v1/cost/outcomes'))).toEqual({
      departments: [
        {
          department: 'sales',
          cost_usd: 0.3,
          outcomes: { leads: 3, tickets: 4 },
          cost_per_outcome_usd: 0.3 / 7,
          roi: (0.5 - 0.3) / 0.3,
        },
        { department: 'support', cost_usd: 3e-12, outcomes: {}, cost_per_outcome_usd: null, roi: -1 },
      ],
    });
    // A formula of the query applies to one answer and is not stored.
    const tried = await get(`/v1/cost/outcomes?value_of_outcomes=${encodeURIComponent('leads + tickets')}`);
    expect(data(tried)).toMatchObject({ departments: [{ department: 'sales', roi: (7 - 0.3) / 0.3 }, { roi: -1 }] });
    expect(data(await get('/v1/cost/outcomes'))).toMatchObject({ departments: [{ roi: (0.5 - 0.3) / 0.3 }, {}] });
  });

  it('built-in prices are those of the day, and null for a model that the table does not have', async () => {
    const answer = await get('/v1/cost/built-in-prices?models=gpt-4o,our-llama&date=2025-06-01');
    expect(answer.status).toBe(200);
    expect(data(answer)).toMatchObject({
      table: expect.stringMatching(/^genai-prices@/) as string,
      date: '2025-06-01',
      prices: [
        { model: 'gpt-4o', id: 'openai/gpt-4o', input_usd_per_mtok: 2.5, output_usd_per_mtok: 10 },
        { model: 'our-llama', id: null, input_usd_per_mtok: null, output_usd_per_mtok: null },
      ],
    });
  });

  it("costs use the agent's department where an event names none", async () => {
    const made = await call(api, 'POST', `/orgs/${org}/agents/register-tokens`, { headers: await owner(), body: {} });
    const register_token = (data(made) as { register_token: string }).register_token;
    const body = { agent_id: 'agent_7', name: 'seven', register_token, metadata: { department: 'research' } };
    const registered = await call(api, 'POST', `/orgs/${org}/agents/register`, { headers: asOrg(), body });
    expect(registered.status).toBeLessThan(300);
    await send([
      { attributes: { cost_usd: 2, agent_id: 'agent_7' } },
      { attributes: { cost_usd: 1, agent_id: 'agent_8' } },
    ]);
    await spent(3);
    expect((await summary('?group_by=department&days=1')).by_department).toEqual([
      { department: 'research', cost_usd: 2, share: 2 / 3 },
      { department: null, cost_usd: 1, share: 1 / 3 },
    ]);
  });

  it.each([
    ['/v1/cost/summary?days=0', 'days'],
    ['/v1/cost/summary?days=366', 'days'],
    ['/v1/cost/summary?days=1.5', 'days'],
    ['/v1/cost/summary?group_by=user', 'group_by'],
    ['/v1/cost/forecast?days=91', 'days'],
    ['/v1/cost/outcomes?days=x', 'days'],
    ['/v1/cost/outcomes?value_of_outcomes=leads%20*', 'value_of_outcomes'],
    ['/v1/cost/built-in-prices', 'models'],
    ['/v1/cost/built-in-prices?models=gpt-4o&date=1969-12-31', 'date'],
    ['/v1/cost/anomalies?limit=0', 'limit'],
  ])('costs reject %s', async (path, field) => {
    const answer = await get(path);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(String(answer.json?.['detail'])).toMatch(new RegExp(`^${field}: `));
  });

  it('costs require the permission to read them', async () => {
    const foreign = key;
    key = await tenant.keyOf('traces:read');
    for (const path of [
      '/v1/cost/summary',
      '/v1/cost/forecast',
      '/v1/cost/anomalies',
      '/v1/cost/outcomes',
      `/orgs/${org}/prices`,
    ])
      expect((await get(path)).status).toBe(403);
    key = await tenant.keyOf('costs:read');
    for (const path of [
      '/v1/cost/summary',
      `/orgs/${org}/cost/forecast`,
      `/orgs/${org}/prices`,
      `/orgs/${org}/cost/anomaly-config`,
    ])
      expect((await get(path)).status).toBe(200);
    expect((await put(`/orgs/${org}/prices`, { prices: [] })).status).toBe(403);
    expect((await get('/orgs/org_cost_1x/cost/forecast')).json?.['code']).toBe('cross_org_access');
    key = foreign;
  });

  it('costs are forecast at both paths alike', async () => {
    await send(
      Array.from({ length: 20 }, (_, n) => ({ started_at: noon(20 - n), attributes: { cost_usd: 1 + n / 4 } })),
    );
    await spent(67.5);
    const [first, second] = [await get('/v1/cost/forecast?days=7'), await get(`/orgs/${org}/cost/forecast?days=7`)];
    expect(data(first)).toEqual(data(second));
    const { horizon_days, series, mean_fallback, model, days_of_data } = data(first) as {
      horizon_days: number;
      series: { date: string; predicted_usd: number }[];
      mean_fallback: boolean;
      model: { type: string; r_squared: number };
      days_of_data: number;
    };
    expect(days_of_data).toBe(20);
    expect({ horizon_days, length: series.length, mean_fallback, type: model.type }).toEqual({
      horizon_days: 7,
      length: 7,
      mean_fallback: false,
      type: 'ols',
    });
    expect(model.r_squared).toBeCloseTo(1, 9);
    expect(series[0]).toMatchObject({ date: noon(0).slice(0, 10), predicted_usd: expect.closeTo(6, 6) as number });
  });
});

describe('prices', () => {
  it('prices apply to the next call, and stay on its row', async () => {
    const prices = [
      { model: 'house-model', input_usd_per_mtok: 0.123456789012, output_usd_per_mtok: 7 },
      { model: 'house-model', input_usd_per_mtok: 1000, output_usd_per_mtok: 1000, from: '2999-01-01' },
    ];
    const set = await put(`/orgs/${org}/prices`, { prices });
    expect([set.status, data(set)]).toEqual([200, { prices }]);
    expect(data(await get(`/orgs/${org}/prices`))).toEqual({ prices });
    await sendCall('House-Model', 1_000_000, 3);
    const first = 0.123456789012 + 0.000021;
    await spent(first);
    expect((await summary()).total_cost_usd).toBeCloseTo(first, 12);
    await put(`/orgs/${org}/prices`, {
      prices: [{ model: 'house-model', input_usd_per_mtok: 2, output_usd_per_mtok: 0 }],
    });
    await sendCall('house-model', 500_000, 9);
    await spent(first + 1);
    expect((await summary()).total_cost_usd).toBeCloseTo(first + 1, 12);
    const rows = (): Promise<string> =>
      service.database.run(
        `SELECT price_source, price_input_usd_per_mtok, price_output_usd_per_mtok FROM spans WHERE org_id = '${org}' ORDER BY received_at FORMAT TSV`,
      );
    // A call lands after its share of the costs.
    await eventually(async () => (await rows()).trim().split('\n').length === 2, { what: 'the second call' });
    expect((await rows()).trim().split('\n')).toEqual(['org\t0.123456789012\t7', 'org\t2\t0']);
  });

  it('prices are empty before any are set, and setting them leaves an audit record', async () => {
    expect(data(await get(`/orgs/${org}/prices`))).toEqual({ prices: [] });
    await put(`/orgs/${org}/prices`, { prices: [{ model: 'm', input_usd_per_mtok: 1, output_usd_per_mtok: 2 }] });
    await put(`/orgs/${org}/prices`, { prices: [] });
    await eventually(
      async () => {
        const log = data(
          await call(api, 'GET', `/orgs/${org}/audit-log?action=prices.update`, { headers: asOrg() }),
        ) as unknown[];
        return log.length === 2;
      },
      { what: 'both records' },
    );
  });

  it.each([
    [{}, 'prices: '],
    [{ prices: 'x' }, 'prices: '],
    [{ prices: [{ model: '', input_usd_per_mtok: 1, output_usd_per_mtok: 1 }] }, 'prices[0].model: '],
    [{ prices: [{ model: 'm', input_usd_per_mtok: -1, output_usd_per_mtok: 1 }] }, 'prices[0].input_usd_per_mtok: '],
    [{ prices: [{ model: 'm', input_usd_per_mtok: 1, output_usd_per_mtok: '1' }] }, 'prices[0].output_usd_per_mtok: '],
    [
      { prices: [{ model: 'm', input_usd_per_mtok: 0.1234567890123, output_usd_per_mtok: 1 }] },
      'prices[0].input_usd_per_mtok: must have at most 12',
    ],
    [{ prices: [{ model: 'm', input_usd_per_mtok: 1e7, output_usd_per_mtok: 1 }] }, 'prices[0].input_usd_per_mtok: '],
    [
      { prices: [{ model: 'm', input_usd_per_mtok: 1, output_usd_per_mtok: 1, from: '2026-02-30' }] },
      'prices[0].from: ',
    ],
    [
      {
        prices: [
          { model: 'm', input_usd_per_mtok: 1, output_usd_per_mtok: 1 },
          { model: 'M', input_usd_per_mtok: 2, output_usd_per_mtok: 1 },
        ],
      },
      'prices[1].model: has another price',
    ],
    [
      {
        prices: [
          { model: 'm', input_usd_per_mtok: 1, output_usd_per_mtok: 1, from: '2026-02-01', until: '2026-02-01' },
        ],
      },
      'prices[0].until: must be a day after from',
    ],
  ])('prices reject %j', async (body, detail) => {
    const answer = await put(`/orgs/${org}/prices`, body);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(String(answer.json?.['detail'])).toContain(detail);
  });
});

describe('anomalies', () => {
  const config = () => `/orgs/${org}/cost/anomaly-config`;
  const runJob = (now?: string): Promise<Answer> =>
    call(api, 'POST', '/admin/jobs/anomalies/run', { headers: asOperator, body: now === undefined ? {} : { now } });

  it('anomalies are detected as configured', async () => {
    expect(data(await get(config()))).toEqual({ z_threshold: 3, lookback_days: 30 });
    expect(data(await put(config(), { z_threshold: 2.5, lookback_days: 14 }))).toEqual({
      z_threshold: 2.5,
      lookback_days: 14,
    });
    expect(data(await put(config(), { lookback_days: 7 }))).toEqual({ z_threshold: 2.5, lookback_days: 7 });
    expect(data(await get(config()))).toEqual({ z_threshold: 2.5, lookback_days: 7 });
    for (const [body, field] of [
      [{ z_threshold: 0 }, 'z_threshold'],
      [{ z_threshold: 'x' }, 'z_threshold'],
      [{ lookback_days: 6 }, 'lookback_days'],
      [{ lookback_days: 366 }, 'lookback_days'],
      [{ lookback_days: 7.5 }, 'lookback_days'],
      [{ threshold: 3 }, 'threshold'],
      [{}, 'must have z_threshold'],
    ] as const) {
      const answer = await put(config(), body);
      expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
      expect(String(answer.json?.['detail'])).toContain(field);
    }
  });

  it("anomalies are found once, reported once, and follow the day's cost", async () => {
    const history = Array.from({ length: 10 }, (_, n) => ({
      started_at: noon(n + 1),
      attributes: { cost_usd: n % 2 === 0 ? 1 : 3, agent_id: 'usual', model: 'm1', span_kind: 'llm' },
    }));
    const spike = {
      started_at: noon(0),
      attributes: { cost_usd: 50, agent_id: 'runaway', model: 'm2', span_kind: 'llm' },
    };
    await send([...history, spike]);
    await spent(70);
    expect((await runJob()).status).toBe(200);
    const [found, ...others] = data(await get('/v1/cost/anomalies')) as Record<string, unknown>[];
    expect(others).toEqual([]);
    expect(found).toMatchObject({
      date: noon(0).slice(0, 10),
      kind: 'z_score',
      // Ten days with a mean of 2 and squared deviations that add up to 10: s = sqrt(10 / 9).
      z: expect.closeTo(48 / Math.sqrt(10 / 9), 9) as number,
      expected_usd: 2,
      actual_usd: 50,
      attributed_to: { model: 'm2', agent_id: 'runaway' },
    });
    expect(found?.['anomaly_id']).toMatch(/^anom_[0-9a-f]{16}$/);
    await send([{ ...spike, name: 'again' }]);
    await spent(120);
    expect((await runJob()).status).toBe(200);
    const again = data(await get('/v1/cost/anomalies')) as Record<string, unknown>[];
    expect(again).toEqual([{ ...found, actual_usd: 100, z: expect.closeTo(98 / Math.sqrt(10 / 9), 9) as number }]);
    const events = (await toldEvents(api.log, org)).filter(({ event }) => event === 'cost.anomaly');
    expect(events).toHaveLength(1);
    expect(JSON.parse(events[0]?.payload ?? '{}')).toMatchObject({
      event: 'cost.anomaly',
      z: found?.['z'],
      expected_usd: 2,
      actual_usd: 50,
      attributed_to: { model: 'm2', agent_id: 'runaway' },
    });
  });

  it('another organization sees no anomaly, and an ordinary day has none', async () => {
    await send(Array.from({ length: 11 }, (_, n) => ({ started_at: noon(n), attributes: { cost_usd: 0.1 } })));
    await spent(1.1);
    expect((await runJob()).status).toBe(200);
    expect(data(await get('/v1/cost/anomalies'))).toEqual([]);
  });
});

describe('job forecast', () => {
  it('the job forecast examines limits on demand', async () => {
    expect((await put(`/orgs/${org}/budget`, { tokens: { hard_limit: 5 } })).status).toBe(200);
    const ran = await call(api, 'POST', '/admin/jobs/forecast/run', { headers: asOperator, body: {} });
    expect(ran.status).toBe(200);
    expect(ran.text).toContain('"limits":1');
  });
});
