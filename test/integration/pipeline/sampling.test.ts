// Sampling as a whole on the real engine: the same input through every profile costs the same to the last digit, and what is stored
// of it is what the rules say.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { keptByRate, PROFILE_RATE, type SamplingProfile } from '../../../pipeline/domain/traces/keep_rules.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { ADMIN_TOKEN, call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

const TRACES = 240;
const SPANS = 4;
const RECEIVED_AT = Date.now();

type Fate = 'plain' | 'error' | 'timeout' | 'slow' | 'loop' | 'forced';
const FATES: readonly Fate[] = ['error', 'timeout', 'slow', 'loop', 'forced'];
/** Every sixth trace has something in its last span that keeps it. */
const fateOf = (trace: number): Fate => (trace % 6 === 0 ? (FATES[(trace / 6) % FATES.length] ?? 'plain') : 'plain');
const idOf = (trace: number): string => `trace-${String(trace)}`;
const partitionOf = (event: IngestEvent): number => Number(event.trace_id.split('-')[1]) % PARTITIONS;

function anEvent(trace: number, at: number): IngestEvent {
  const fate = at === SPANS - 1 ? fateOf(trace) : 'plain';
  const n = trace * SPANS + at;
  const attributes = {
    agent_id: `agent-${String(trace % 7)}`,
    department: `department-${String(trace % 3)}`,
    session_id: `session-${String(trace % 11)}`,
    sandbox_seconds: n / 1000,
    outcomes: { tickets: n / 100 },
    ...(fate === 'forced' ? { force_trace: true } : {}),
    ...(fate === 'loop' ? { event_type: 'loop' } : {}),
  };
  const common = {
    duration_ms: fate === 'slow' ? 5001 : n % 100,
    outcome: fate === 'error' || fate === 'timeout' ? fate : 'success',
    trace_id: idOf(trace),
    tags: [`tag-${String(n % 5)}`],
    attributes,
    ...(at === 0 ? {} : { parent_span_id: 'spn_root' }),
  };
  const over = { org_id: ORG, received_at: RECEIVED_AT };
  if (n % 3 === 0) return logged('custom', { name: `step ${String(n)}`, ...common }, over);
  const model = n % 2 === 0 ? 'gpt-4o' : 'gpt-4o-mini';
  return logged(
    'chatcompletion',
    {
      request: { model, messages: [{ role: 'user', content: `question ${String(n)}` }] },
      response: {
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: `answer ${String(n)}` }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 1 + n * 7, completion_tokens: 3 + n, total_tokens: 4 + n * 8 },
      },
      ...common,
    },
    over,
  );
}

const EVENTS: readonly IngestEvent[] = Array.from({ length: SPANS }, (_, at) =>
  Array.from({ length: TRACES }, (_, trace) => anEvent(trace, at)),
).flat();

interface Answers {
  usage: string;
  spans: string;
  traces: string;
  costs: unknown;
  budgets: unknown;
  listed: unknown;
}

interface Run {
  answers: Answers;
  /** Of each event by its place in EVENTS' own order of trace and span: whether it is stored in full. */
  stored: Map<string, boolean[]>;
  texts: number;
  sampling: Record<string, unknown>;
}

async function runThrough(profile: SamplingProfile, tail: boolean): Promise<Run> {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const log = await openTestLog(nats.url);
  const sampling = { SERVICE_SAMPLING_PROFILE: profile, SERVICE_SAMPLING_TAIL: tail };
  const api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url, sampling });
  const worker = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: {
      SERVICE_SAMPLING_PROFILE: profile,
      SERVICE_SAMPLING_TAIL: String(tail),
      SERVICE_TRACE_GRACE_MS: '200',
      SERVICE_TRACE_IDLE_MS: '200',
    },
  });
  try {
    await worker.ready;
    await log.publish(EVENTS, partitionOf);
    await eventually(
      async () =>
        (await database.run('SELECT sum(spans * sign) FROM traces')).trim() === String(EVENTS.length) &&
        (await database.run('SELECT count() FROM spans')).trim() === String(EVENTS.length) &&
        (await database.run('SELECT sum(events) FROM usage_events')).trim() === String(EVENTS.length),
      { what: `everything landed (${profile})` },
    );
    const answers = await ask(database, api);
    const stored = new Map<string, boolean[]>();
    const rows = await database.run(
      'SELECT trace_id, arrayMap(s -> s.2, arraySort(groupArray(((log_seq, log_index), sampled)))) FROM spans GROUP BY trace_id FORMAT JSONCompactEachRow',
    );
    for (const line of rows.trim().split('\n')) {
      const [trace_id, flags] = JSON.parse(line) as [string, boolean[]];
      stored.set(trace_id, flags);
    }
    const texts = Number(
      await database.run(
        'SELECT uniqExact(span_id) FROM (SELECT span_id FROM span_texts UNION ALL SELECT span_id FROM span_texts_recent)',
      ),
    );
    const shown = await call(api, 'GET', '/v1/sampling');
    expect(shown.status).toBe(200);
    return { answers, stored, texts, sampling: shown.json?.['data'] as Record<string, unknown> };
  } finally {
    worker.kill('SIGKILL');
    await worker.exited;
    await api.close();
    await log.close();
    await nats.remove();
    await database.drop();
  }
}

async function ask(database: TestDatabase, api: TestApi): Promise<Answers> {
  const data = async (path: string): Promise<Record<string, unknown>> => {
    const answer = await call(api, 'GET', path);
    expect(answer.status).toBe(200);
    return answer.json?.['data'] as Record<string, unknown>;
  };
  const tokens = Number(await database.run('SELECT sum(input_tokens + output_tokens) FROM usage_events'));
  let budgets: Record<string, unknown> = {};
  await eventually(
    async () => {
      budgets = await data('/v1/budgets');
      return (budgets['tokens'] as { used: number }).used === tokens;
    },
    { what: 'the budget of all tokens' },
  );
  return {
    usage: await database.run(
      `SELECT org_id, hour, day, agent_id, model, department, realm, sum(events), sum(input_tokens), sum(output_tokens), sum(storage_bytes), sum(sandbox_seconds), sum(cost_usd), sumMap(outcome_names, outcome_values)
       FROM usage_events GROUP BY ALL ORDER BY ALL`,
    ),
    spans: await database.run(
      `SELECT trace_id, span_id, parent_span_id, name, kind, model, outcome, agent_id, department, session_id, tags, started_at, ended_at, input_tokens, output_tokens, cached_input_tokens, cost_usd, storage_bytes, sandbox_seconds
       FROM spans ORDER BY trace_id, log_seq, log_index, log_sub`,
    ),
    traces: await database.run('SELECT * EXCEPT (sampled) FROM analyst_traces ORDER BY trace_id'),
    costs: await data('/v1/cost/summary?group_by=agent_id'),
    budgets,
    listed: (await call(api, 'GET', '/v1/traces?limit=200&offset=40')).json?.['data'],
  };
}

describe('the same input through every profile', () => {
  const runs = new Map<string, Run>();
  const get = (name: string): Run => {
    const run = runs.get(name);
    if (run === undefined) throw new Error(`there is no run ${name}`);
    return run;
  };
  const PROFILES: readonly [string, SamplingProfile, boolean][] = [
    ['full', 'full', false],
    ['balanced', 'balanced', false],
    ['balanced, tail', 'balanced', true],
    ['aggressive', 'aggressive', false],
    ['aggressive, tail', 'aggressive', true],
  ];

  beforeAll(async () => {
    for (const [name, profile, tail] of PROFILES) runs.set(name, await runThrough(profile, tail));
  });

  it('has the same usage, costs, budgets, spans and traces to the last digit', () => {
    const { answers } = get('full');
    expect(answers.usage.split('\n').length).toBeGreaterThan(10);
    for (const [name] of PROFILES) expect(get(name).answers).toEqual(answers);
  });

  it.each(PROFILES)('stores in full what the rules say: %s', (name, profile, tail) => {
    const run = get(name);
    const rate = PROFILE_RATE[profile];
    let full = 0;
    let whole = 0;
    for (let trace = 0; trace < TRACES; trace += 1) {
      const byRate = keptByRate(idOf(trace), rate);
      const isKept = fateOf(trace) !== 'plain';
      // A forced trace also keeps what shares a message of the log with the event that forces it (force_trace.test.ts).
      const shared = fateOf(trace) === 'forced' ? (run.stored.get(idOf(trace)) ?? []) : [];
      const expected = Array.from(
        { length: SPANS },
        (_, at) => byRate || (isKept && (tail || at === SPANS - 1)) || (isKept && shared[at] === true),
      );
      expect([idOf(trace), run.stored.get(idOf(trace))]).toEqual([idOf(trace), expected]);
      full += expected.filter(Boolean).length;
      whole += Number(expected.includes(true));
    }
    const prompts = EVENTS.filter((event) => event.format === 'chatcompletion' && isFull(run, event)).length;
    expect(run.texts).toBe(prompts);
    expect(run.sampling).toMatchObject({
      profile,
      enabled: true,
      rate,
      rates: { full: 1, balanced: 0.15, aggressive: 0.05 },
      slow_ms: 5000,
      tail,
      buffer: { slots: 15_000 },
      kept: full,
      summarised: EVENTS.length - full,
      traces: { kept: whole, summarised: TRACES - whole },
    });
  });
});

function isFull(run: Run, event: IngestEvent): boolean {
  const own = EVENTS.filter(({ trace_id }) => trace_id === event.trace_id);
  return run.stored.get(event.trace_id)?.[own.indexOf(event)] === true;
}

describe('traces that tail sampling holds', () => {
  let database: TestDatabase;
  let nats: TestNats;
  let api: TestApi;
  const LONG = { SERVICE_TRACE_GRACE_MS: '600000', SERVICE_TRACE_IDLE_MS: '600000' };
  const more = { SERVICE_SAMPLING_PROFILE: 'balanced', SERVICE_SAMPLING_TAIL: 'true' };
  const spawn = (env: Record<string, string> = {}) =>
    startWorker({ natsUrl: nats.url, clickhouseUrl: database.url, more: { ...more, ...LONG, ...env } });
  const count = async (sql: string): Promise<number> => Number((await database.run(sql)).trim());
  const usage = (events: number) =>
    eventually(async () => (await count('SELECT sum(events) FROM usage_events')) === events, { what: 'usage' });
  const event = (trace_id: string, n: number, outcome = 'success'): IngestEvent =>
    logged(
      'chatcompletion',
      {
        request: { model: 'gpt-4o', messages: [{ role: 'user', content: `${trace_id} question ${String(n)}` }] },
        response: {
          choices: [{ index: 0, message: { role: 'assistant', content: 'answer' } }],
          usage: { prompt_tokens: 10, completion_tokens: 1 },
        },
        duration_ms: 5,
        outcome,
        trace_id,
        ...(n === 0 ? {} : { parent_span_id: 'spn_root' }),
      },
      { org_id: ORG },
    );

  beforeAll(async () => {
    [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
    api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url });
  });
  afterAll(async () => {
    await api.close();
    await nats.remove();
    await database.drop();
  });

  it('are lost and doubled by nothing that dies, and decided by all of their spans', async () => {
    const log = await openTestLog(nats.url);
    const ids = Array.from({ length: 200 }, (_, i) => `trace-${String(i)}`).filter(
      (id) => !keptByRate(id, PROFILE_RATE.balanced),
    );
    const [failing, fine] = [ids.slice(0, 40), ids.slice(40)];
    const publish = (traces: readonly string[], n: number, outcome?: string): Promise<void> =>
      log.publish(
        traces.map((id) => event(id, n, outcome)),
        partitionOf,
      );
    let worker = spawn();
    try {
      await worker.ready;
      await publish(ids, 0);
      await publish(ids, 1);
      await usage(2 * ids.length);
      // All are held: what was used is known, and nothing else yet.
      expect(await count('SELECT count() FROM spans')).toBe(0);
      worker.kill('SIGKILL');
      await worker.exited;
      worker = spawn();
      await worker.ready;
      await publish(failing, 2, 'error');
      await eventually(async () => (await count('SELECT sum(spans * sign) FROM traces')) === 3 * failing.length, {
        what: 'failing traces',
      });
      await eventually(async () => (await count('SELECT count() FROM spans WHERE sampled')) === 3 * failing.length);
      expect(await count('SELECT count() FROM spans WHERE NOT sampled')).toBe(0);
      // Handed over in peace: still nothing is decided of the others.
      worker.kill('SIGTERM');
      await worker.exited;
      worker = spawn({ SERVICE_TRACE_GRACE_MS: '100', SERVICE_TRACE_IDLE_MS: '100' });
      await worker.ready;
      await eventually(async () => (await count('SELECT sum(sign) FROM traces')) === ids.length, {
        what: 'every trace',
      });
      // A late span follows its trace.
      await publish(ids, 3);
      const total = 3 * ids.length + failing.length;
      await usage(total);
      // The rows of traces land last.
      await eventually(async () => (await count('SELECT sum(spans * sign) FROM traces')) >= total, {
        what: 'late spans',
      });
      const rows = await database.run(
        'SELECT count(), uniqExact(event_key), countIf(sampled), sum(input_tokens), sum(cost_usd) = (SELECT sum(cost_usd) FROM usage_events) FROM spans',
      );
      expect(rows.trim().split('\t').map(Number)).toEqual([total, total, 4 * failing.length, 10 * total, 1]);
      expect(await count('SELECT sum(spans * sign) FROM traces')).toBe(total);
      expect(
        await count(
          'SELECT count() FROM (SELECT trace_id FROM spans GROUP BY trace_id HAVING uniqExact(sampled) != 1)',
        ),
      ).toBe(0);
      expect(await count('SELECT count() FROM analyst_traces WHERE sampled')).toBe(failing.length);
      await eventually(
        async () =>
          (await count(
            'SELECT count() FROM (SELECT span_id FROM span_texts UNION ALL SELECT span_id FROM span_texts_recent)',
          )) ===
          4 * failing.length,
        { what: 'texts of the traces that were kept' },
      );
      expect(fine.length).toBeGreaterThan(100);
    } finally {
      worker.kill('SIGKILL');
      await worker.exited;
      await log.close();
    }
  });

  it('leave by the oldest where the buffer is full', async () => {
    const log = await openTestLog(nats.url);
    const ids = Array.from({ length: 200 }, (_, i) => `full-${String(i)}`)
      .filter((id) => !keptByRate(id, PROFILE_RATE.balanced))
      .slice(0, 30);
    const worker = spawn({ SERVICE_SAMPLING_BUFFER_SLOTS: '10' });
    const stored = async (): Promise<string[]> =>
      (
        await database.run(
          "SELECT DISTINCT trace_id FROM spans WHERE trace_id LIKE 'full-%' ORDER BY log_seq, log_index",
        )
      )
        .trim()
        .split('\n');
    try {
      await worker.ready;
      for (const id of ids) await log.publish([event(id, 0)], partitionOf);
      await eventually(async () => (await stored()).length === ids.length - 10, { what: 'all but ten' });
      expect(await stored()).toEqual(ids.slice(0, -10));
      await log.publish(
        ids.slice(-10).map((id) => event(id, 1, 'error')),
        partitionOf,
      );
      await eventually(
        async () => (await count("SELECT count() FROM spans WHERE sampled AND trace_id LIKE 'full-%'")) === 20,
        {
          what: 'the last ten kept',
        },
      );
    } finally {
      worker.kill('SIGKILL');
      await worker.exited;
      await log.close();
    }
  });

  it('are counted for their org alone, and the range that is asked for', async () => {
    const data = async (query: string, headers: Record<string, string | undefined> = {}) =>
      (await call(api, 'GET', `/v1/sampling${query}`, { headers })).json?.['data'];
    expect(await data('')).toMatchObject({
      kept: await count('SELECT countIf(sampled) FROM spans'),
      summarised: await count('SELECT countIf(NOT sampled) FROM spans'),
    });
    const none = { kept: 0, summarised: 0, traces: { kept: 0, summarised: 0 } };
    expect(await data(`?since=${new Date(Date.now() + 3_600_000).toISOString()}`)).toMatchObject(none);
    expect(await data('?since=2020-01-01&until=2020-02-01')).toMatchObject({
      ...none,
      since: '2020-01-01T00:00:00.000Z',
    });
    expect((await call(api, 'GET', '/v1/sampling?since=yesterday')).json).toMatchObject({ code: 'invalid_request' });
    const admin = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined, Authorization: `Bearer ${ADMIN_TOKEN}` };
    const owner = { user_id: 'u_other', email: 'other@example.com' };
    await call(api, 'POST', '/admin/orgs', {
      headers: admin,
      body: { org_id: 'org_other', name: 'Other', plan_name: 'enterprise', owner },
    });
    const made = await call(api, 'POST', '/admin/orgs/org_other/api-keys', {
      headers: admin,
      body: { name: 'k', scopes: ['traces:read'] },
    });
    const other = { 'X-Org-Api-Key': String(made.json?.['raw_key']), 'X-Org-Id': 'org_other' };
    expect(await data('', other)).toMatchObject(none);
  });
});
