// Sampling from end to end on the real engine: the same input costs exactly the same under every
// profile, and the stored spans follow the sampling rules.
import { beforeAll, expect, it, vi } from 'vitest';
import { keptByRate, PROFILE_RATE, type SamplingProfile } from '../../../pipeline/domain/traces/keep_rules.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { startTestNats } from '../../support/nats.ts';
import { logged, openTestLog, PARTITIONS, startWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

const TRACES = 240;
const SPANS = 4;
const RECEIVED_AT = Date.now();

type Fate = 'plain' | 'error' | 'timeout' | 'slow' | 'loop' | 'forced';
const FATES: readonly Fate[] = ['error', 'timeout', 'slow', 'loop', 'forced'];
/** The last span of every sixth trace has a property that keeps the trace. */
const fateOf = (trace: number): Fate => (trace % 6 === 0 ? (FATES[(trace / 6) % FATES.length] ?? 'plain') : 'plain');
const idOf = (trace: number): string => `trace-${trace}`;
const partitionOf = (event: IngestEvent): number => Number(event.trace_id.split('-')[1]) % PARTITIONS;

function anEvent(trace: number, at: number): IngestEvent {
  const fate = at === SPANS - 1 ? fateOf(trace) : 'plain';
  const n = trace * SPANS + at;
  const attributes = {
    agent_id: `agent-${trace % 7}`,
    department: `department-${trace % 3}`,
    session_id: `session-${trace % 11}`,
    sandbox_seconds: n / 1000,
    outcomes: { tickets: n / 100 },
    ...(fate === 'forced' ? { force_trace: true } : {}),
    ...(fate === 'loop' ? { event_type: 'loop' } : {}),
  };
  const common = {
    duration_ms: fate === 'slow' ? 5001 : n % 100,
    outcome: fate === 'error' || fate === 'timeout' ? fate : 'success',
    trace_id: idOf(trace),
    tags: [`tag-${n % 5}`],
    attributes,
    ...(at === 0 ? {} : { parent_span_id: 'spn_root' }),
  };
  const over = { org_id: ORG, received_at: RECEIVED_AT };
  if (n % 3 === 0) return logged('custom', { name: `step ${n}`, ...common }, over);
  const model = n % 2 === 0 ? 'gpt-4o' : 'gpt-4o-mini';
  return logged(
    'chatcompletion',
    {
      request: { model, messages: [{ role: 'user', content: `question ${n}` }] },
      response: {
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: `answer ${n}` }, finish_reason: 'stop' }],
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
  /** By trace: for each of its events, in the order of EVENTS, whether it is stored in full. */
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

it('the same input has the same usage, costs, budgets, spans and traces under every sampling profile', () => {
  const { answers } = get('full');
  expect(answers.usage.split('\n').length).toBeGreaterThan(10);
  for (const [name] of PROFILES) expect(get(name).answers).toEqual(answers);
});

it.each(PROFILES)('the sampling profile stores in full the spans that its rules keep: %s', (name, profile, tail) => {
  const run = get(name);
  const rate = PROFILE_RATE[profile];
  let full = 0;
  let whole = 0;
  for (let trace = 0; trace < TRACES; trace += 1) {
    const byRate = keptByRate(idOf(trace), rate);
    const isKept = fateOf(trace) !== 'plain';
    // A forced trace also keeps the events in the same log message as the event that forces it
    // (force_trace.test.ts).
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

function isFull(run: Run, event: IngestEvent): boolean {
  const own = EVENTS.filter(({ trace_id }) => trace_id === event.trace_id);
  return run.stored.get(event.trace_id)?.[own.indexOf(event)] === true;
}
