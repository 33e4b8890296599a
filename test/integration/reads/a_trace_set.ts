// A store with traces of every kind that a filter tells apart, and the same traces in memory, so
// that a test can compute what a read must return. Traces land span by span, as pairs of rows that
// no merge has collapsed.
import { wordsOf } from '../../../pipeline/domain/text/text_terms.ts';
import type { Span, TraceOutcome } from '../../../pipeline/domain/traces/span.ts';
import { addSpan, durationMs, emptyTrace, type TraceState } from '../../../pipeline/domain/traces/trace_state.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore } from '../../support/store.ts';

export const NOW = Date.parse('2026-03-01T00:00:00Z');
export const DAY_MS = 86_400_000;
const TRACES = 160;

export interface Verdict {
  judge_id: string;
  judge_version: number;
  verdict: 'pass' | 'warn' | 'fail' | 'error';
  scored_at: number;
  eval_id: string;
}

export interface UserScore {
  name: string;
  data_type: 'numeric' | 'boolean' | 'categorical';
  /** A number; 1 or 0 for a boolean; null for a category. */
  number: number | null;
  text: string;
}

/** A trace as it was filled, with everything that was said of it. */
export interface KnownTrace {
  state: TraceState;
  spans: Span[];
  verdicts: Verdict[];
  scores: UserScore[];
}

export interface TraceSet {
  store: TestStore;
  /** Traces of org_a. */
  known: KnownTrace[];
}

/** Words of the texts of spans. */
const SAYINGS = [
  'the red car stopped',
  'Car red, said she',
  'GRÖSSE zählt, 北京大学',
  'nothing of note',
  'a red apple',
  '',
];

const random = seeded(23);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
const iso = (ms: number): string => new Date(ms).toISOString();

function spansOf(n: number): Span[] {
  const started = NOW - Math.floor(random() ** 2 * 60) * DAY_MS - (n % 40) * 60_000 - Math.floor(random() * 50_000);
  const about = {
    org_id: n % 8 === 0 ? 'org_b' : 'org_a',
    trace_id: `trace-${n}`,
    agent_id: pick(['', 'agent_1', 'agent_2', 'agent_3']),
    session_id: pick(['', 's1', 's2, with a comma']),
    user_id: pick(['', 'u1', 'u2']),
    department: pick(['', 'sales', 'support']),
    realm: pick(['', 'eu', 'us']),
  };
  return Array.from({ length: 1 + (n % 4) }, (_, i) => {
    const at = i === 2 ? started - 5000 : started + i * 10;
    const isCall = random() < 0.7;
    return aSpan({
      ...about,
      started_at: at,
      ended_at: at + Math.floor(random() ** 3 * 20_000),
      parent_span_id: i === 0 && n % 5 !== 0 ? '' : 'spn_parent',
      kind: isCall ? 'llm' : 'tool',
      name: pick(['plan', 'search, then answer', 'book']),
      model: isCall ? pick(['gpt-4o', 'gpt-4o-mini', 'o3']) : '',
      source_format: isCall ? 'chatcompletion' : 'custom',
      outcome: pick<TraceOutcome>(['success', 'success', 'success', 'timeout', 'error']),
      tags: pick([[], ['x'], ['x', 'y'], ['z']]),
      input_tokens: Math.floor(random() * 2000),
      output_tokens: Math.floor(random() * 300),
      cost_pico_usd: isCall ? BigInt(Math.floor(random() ** 4 * 1e12)) : 0n,
      prompt: SAYINGS[(n * 5 + i) % SAYINGS.length] ?? '',
      response: SAYINGS[(n * 3 + i * 4 + 5) % SAYINGS.length] ?? '',
      attributes: pick<Record<string, unknown>>([
        {},
        { region: 'eu' },
        { region: 'us', app: { tier: 2 } },
        { 'app.tier': '2' },
      ]),
      prompt_name: isCall ? pick(['', 'greet', 'refund']) : '',
      prompt_version: pick(['1', '2']),
    });
  });
}

function verdictsOf(state: TraceState): Verdict[] {
  return ['judge_a', 'judge_b']
    .filter(() => random() < 0.4)
    .flatMap((judge_id) =>
      Array.from({ length: 1 + Math.floor(random() * 3) }, (_, i) => ({
        judge_id,
        judge_version: 1 + Math.floor(random() * 2),
        verdict: pick(['pass', 'warn', 'fail', 'error'] as const),
        scored_at: state.started_at + 60_000 * (i + 1),
        eval_id: i === 0 ? '' : `eval_${i}`,
      })),
    );
}

function scoresOf(): UserScore[] {
  const any: UserScore[] = [
    { name: 'stars', data_type: 'numeric', number: 1 + Math.floor(random() * 5), text: '' },
    { name: 'helpful', data_type: 'boolean', number: random() < 0.5 ? 1 : 0, text: '' },
    { name: 'mood: user', data_type: 'categorical', number: null, text: pick(['glad', 'sad']) },
  ];
  return any.filter(() => random() < 0.25);
}

/**
 * Lands a trace in as many steps as it has spans. @returns its last state
 * @param isDescribed false for a trace that landed before its row held the values of its spans
 */
function stepsOf(spans: readonly Span[], isSampled: boolean, isDescribed: boolean) {
  const stateAfter = (count: number): TraceState => {
    const state = { ...emptyTrace(spans[0] as Span), described: isDescribed };
    for (const span of spans.slice(0, count)) addSpan(state, span, isSampled);
    return state;
  };
  return spans.map((_, index) => [
    ...(index === 0 ? [] : [{ state: stateAfter(index), version: index, sign: -1 as const }]),
    { state: stateAfter(index + 1), version: index + 1, sign: 1 as const },
  ]);
}

/** Fills a store. The caller closes it. */
export async function openTraceSet(): Promise<TraceSet> {
  const store = await openTestStore();
  const all = Array.from({ length: TRACES }, (_, n) => {
    const spans = spansOf(n);
    const steps = stepsOf(spans, n % 3 !== 0, n % 5 !== 1);
    const state = steps.at(-1)?.at(-1)?.state as TraceState;
    return { state, spans, steps, verdicts: verdictsOf(state), scores: scoresOf() };
  });
  const spans = all.flatMap((trace) => trace.spans);
  for (const part of [spans.slice(0, spans.length / 2), spans.slice(spans.length / 2)]) {
    await store.landSpans(part);
    await store.moveTexts();
    store.beginSegment();
  }
  for (const step of [0, 1, 2, 3]) await store.landTraces(all.flatMap(({ steps }) => steps[step] ?? []));
  await insert(
    store,
    'judge_scores',
    all.flatMap(({ state, verdicts }) =>
      verdicts.map(({ scored_at, ...verdict }) => ({
        org_id: state.org_id,
        trace_id: state.trace_id,
        judge_name: `Name of ${verdict.judge_id}`,
        started_at: iso(state.started_at),
        score: verdict.verdict === 'error' ? null : 0.5,
        reason: 'Because',
        scored_at: iso(scored_at),
        ...verdict,
      })),
    ),
  );
  await insert(
    store,
    'user_scores',
    all.flatMap(({ state, scores }) =>
      scores.map((score, i) => ({
        org_id: state.org_id,
        trace_id: state.trace_id,
        started_at: iso(state.started_at),
        score_id: `score_${state.trace_id}_${i}`,
        author_type: 'user',
        author_id: 'user_1',
        created_at: iso(state.ended_at),
        ...score,
      })),
    ),
  );
  return { store, known: all.filter(({ state }) => state.org_id === 'org_a') };
}

async function insert(store: TestStore, table: string, rows: readonly object[]): Promise<void> {
  const body = rows.map((row) => JSON.stringify(row)).join('\n');
  await store.client.execute({
    name: 'fill',
    sql: `INSERT INTO ${table} SETTINGS date_time_input_format = 'best_effort' FORMAT JSONEachRow`,
    body,
    timeoutMs: 20_000,
  });
}

/** Returns the newest verdict of each judge: the last one of its newest version. */
export function newestVerdicts({ verdicts }: KnownTrace): Verdict[] {
  return [...Map.groupBy(verdicts, ({ judge_id }) => judge_id).values()].map(
    (own) => own.toSorted((a, b) => b.judge_version - a.judge_version || b.scored_at - a.scored_at)[0] as Verdict,
  );
}

type Query = Readonly<Record<string, string>>;
const listed = (text: string): string[] => text.split(/(?<!\\),/).map((part) => part.replaceAll('\\,', ','));
const tokensOf = ({ state }: KnownTrace): number => state.input_tokens + state.output_tokens;
const costOf = ({ state }: KnownTrace): number => Number(state.cost_pico_usd) / 1e12;

function holdsScore({ scores }: KnownTrace, condition: string): boolean {
  const [, name, op, value] = /^(.+?):(eq|ne|gt|gte|lt|lte):(.+)$/.exec(condition) ?? [];
  const number = value === 'true' ? 1 : value === 'false' ? 0 : Number(value);
  return scores.some((score) => {
    if (score.name !== name) return false;
    if (score.data_type === 'categorical')
      return op === 'eq' ? score.text === value : op === 'ne' && score.text !== value;
    const given = score.number ?? NaN;
    const results: Record<string, boolean> = {
      eq: given === number,
      ne: given !== number && !Number.isNaN(number),
      gt: given > number,
      gte: given >= number,
      lt: given < number,
      lte: given <= number,
    };
    return results[op ?? ''] ?? false;
  });
}

/** Returns true if the span has every attribute that the query asks for. */
function hasAttributes({ attributes }: Span, query: Query): boolean {
  const app = attributes['app'] as { tier?: number } | undefined;
  const given: Record<string, unknown> = {
    'attributes.region': attributes['region'],
    'attributes.app.tier': attributes['app.tier'] ?? app?.tier,
  };
  return Object.entries(query).every(
    ([name, value]) => !name.startsWith('attributes.') || listed(value).includes(String(given[name])),
  );
}

/** Each filter as the contract words it, over a trace in memory. */
const MODEL: Readonly<Record<string, (trace: KnownTrace, value: string, query: Query) => boolean>> = {
  since: ({ state }, value) => state.started_at >= Date.parse(value),
  until: ({ state }, value) => state.started_at <= Date.parse(value),
  min_duration_ms: ({ state }, value) => durationMs(state) >= Number(value),
  max_duration_ms: ({ state }, value) => durationMs(state) <= Number(value),
  min_cost_usd: (trace, value) => costOf(trace) >= Number(value),
  max_cost_usd: (trace, value) => costOf(trace) <= Number(value),
  min_tokens: (trace, value) => tokensOf(trace) >= Number(value),
  max_tokens: (trace, value) => tokensOf(trace) <= Number(value),
  session_id: ({ state }, value) => listed(value).includes(state.session_id),
  user_id: ({ state }, value) => listed(value).includes(state.user_id),
  agent_id: ({ state }, value) => listed(value).includes(state.agent_id),
  outcome: ({ state }, value) => listed(value).includes(state.outcome),
  tags: ({ state }, value) => listed(value).some((tag) => state.tags.includes(tag)),
  root_span_name: ({ state }, value) => listed(value).includes(state.root_span_name),
  trace_ids: ({ state }, value) => listed(value).includes(state.trace_id),
  model: ({ spans }, value) => spans.some(({ model }) => listed(value).includes(model)),
  source_format: ({ spans }, value) => spans.some(({ source_format }) => listed(value).includes(source_format)),
  department: ({ spans }, value) => spans.some(({ department }) => listed(value).includes(department)),
  realm: ({ spans }, value) => spans.some(({ realm }) => listed(value).includes(realm)),
  prompt_name: ({ spans }, value, { prompt_version }) =>
    spans.some(
      (span) =>
        listed(value).includes(span.prompt_name) &&
        (prompt_version === undefined || listed(prompt_version).includes(span.prompt_version)),
    ),
  prompt_version: ({ spans }, value) =>
    spans.some((span) => span.prompt_name !== '' && listed(value).includes(span.prompt_version)),
  'attributes.region': ({ spans }, value, query) =>
    spans.some((span) => hasAttributes(span, { ...query, 'attributes.region': value })),
  'attributes.app.tier': ({ spans }, value, query) =>
    spans.some((span) => hasAttributes(span, { ...query, 'attributes.app.tier': value })),
  search: ({ spans }, value) =>
    spans.some(({ prompt, response }) => {
      const said = wordsOf(`${prompt} ${response}`);
      return wordsOf(value).every((word) => said.includes(word));
    }),
  sampled: ({ state }, value) => String(state.sampled) === value,
  scored: ({ verdicts, scores }, value) => String(verdicts.length + scores.length > 0) === value,
  judge_id: (trace, value) => newestVerdicts(trace).some(({ judge_id }) => listed(value).includes(judge_id)),
  verdict: (trace, value, { judge_id }) =>
    newestVerdicts(trace).some(
      (newest) =>
        listed(value).includes(newest.verdict) &&
        (judge_id === undefined || listed(judge_id).includes(newest.judge_id)),
    ),
  score: (trace, value) => listed(value).every((condition) => holdsScore(trace, condition)),
};

/** Candidates of each filter; undefined leaves it out. */
export const FILTER_VALUES: Readonly<Record<string, readonly string[]>> = {
  since: [iso(NOW - 20 * DAY_MS), iso(NOW - 3 * DAY_MS)],
  until: [iso(NOW - 2 * DAY_MS), iso(NOW - DAY_MS)],
  min_duration_ms: ['500', '4000'],
  max_duration_ms: ['9000'],
  min_cost_usd: ['0.01', '1e-3'],
  max_cost_usd: ['0.5'],
  min_tokens: ['800'],
  max_tokens: ['5000'],
  session_id: ['s1'],
  user_id: ['u1'],
  agent_id: ['agent_1', 'agent_1,agent_2'],
  outcome: ['error', 'error,timeout', 'success'],
  tags: ['x', 'y,z'],
  root_span_name: ['plan', 'search\\, then answer', 'book,plan'],
  trace_ids: [Array.from({ length: 80 }, (_, n) => `trace-${n}`).join(',')],
  model: ['o3', 'gpt-4o,gpt-4o-mini'],
  source_format: ['custom', 'chatcompletion'],
  department: ['sales', 'sales,support'],
  realm: ['eu'],
  prompt_name: ['greet', 'greet,refund'],
  prompt_version: ['2'],
  'attributes.region': ['eu', 'eu,us'],
  'attributes.app.tier': ['2', '2,3', 'gold'],
  search: ['CAR', 'apple car', 'stopped grösse', '大学', 'nowhere'],
  sampled: ['true', 'false'],
  scored: ['true', 'false'],
  judge_id: ['judge_a', 'judge_a,judge_b'],
  verdict: ['fail', 'pass,warn'],
  score: ['stars:gte:3', 'helpful:eq:true', 'mood: user:ne:sad', 'stars:ne:2,stars:lt:5', 'helpful:eq:false'],
  not_agent_id: ['agent_2'],
  not_outcome: ['success'],
  not_tags: ['y'],
  not_session_id: ['s2\\, with a comma', 's1'],
  not_user_id: ['u2'],
  not_root_span_name: ['plan'],
  not_trace_ids: ['trace-1,trace-2,trace-3'],
  not_model: ['o3'],
  not_source_format: ['custom'],
  not_department: ['support'],
  not_realm: ['us'],
  not_prompt_name: ['greet'],
  not_judge_id: ['judge_b'],
  not_verdict: ['fail,error'],
  not_score: ['stars:lt:3', 'mood: user:eq:glad,helpful:eq:true'],
};

/** Returns true if the contract says that the trace is on the list with these query parameters. */
export function matches(trace: KnownTrace, query: Query): boolean {
  return Object.entries(query).every(([name, value]) => {
    const positive = name.replace(/^not_/, '');
    const holds = MODEL[positive];
    if (holds === undefined) throw new Error(`the model has no filter ${name}`);
    if (positive === name) return holds(trace, value, query);
    return positive === 'score'
      ? !listed(value).some((condition) => holdsScore(trace, condition))
      : !holds(trace, value, positive === 'verdict' ? query : {});
  });
}
