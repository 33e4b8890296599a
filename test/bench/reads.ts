// Reads over a filled store, through the HTTP API with its own authentication: one request at a
// time on a kept connection, with other words, agents and pages each time, timed from the request
// to the last byte of the answer.
import { z } from 'zod';
import { AGENTS, TAGS, largeTraceIdSql } from './fill_sql.ts';
import { LARGE_TRACES } from './fill.ts';
import { atMost, barText, p50p99, percentile, quantiles, thousands, type ReportRow, type Section } from './report.ts';
import { sqlRunner } from './store.ts';
import type { Target } from './target.ts';
import { traceReads } from './trace_reads.ts';
import { type Bars, type Measured, Reader, timed, WARM_RUNS } from './timed_reads.ts';
import { seededRandom, wordOf, type Random } from './vocabulary.ts';

const RUNS = 100;
const SEARCH_RUNS = 40;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** 10 million, and the large traces. */
const PROMISED_SPANS_MAX = 10_500_000;
const PAGE = 50;
const DEEP_PAGE = 500;
/** Timed pages around the first and the deep one. */
const PAGES_TIMED = 20;

/**
 * Ranks of words: in an organization of 3.8 M spans a rare one is in some 200, a medium one in
 * 10,000 to 50,000, a common one in some 500,000.
 */
const WORDS = { rare: [100_000, 300_000], medium: [1000, 5000], common: [64, 150], 'very common': [0, 6] } as const;
type WordClass = keyof typeof WORDS;

const pick = (random: Random, [from, to]: readonly [number, number]): string => wordOf(from + (random() % (to - from)));
const since = (days: number): string =>
  `since=${encodeURIComponent(new Date(Date.now() - days * DAY_MS).toISOString())}`;
/** Pages through the list by cursor and times the first pages and those around the 500th. */
async function deepPages(reader: Reader): Promise<Measured[]> {
  const [first, deep]: [number[], number[]] = [[], []];
  let cursor = '';
  for (let page = 1; page < DEEP_PAGE + PAGES_TIMED; page += 1) {
    const { ms, answer } = await reader.answer(
      `/v1/traces?limit=${PAGE}${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
    );
    if (page > WARM_RUNS && page <= WARM_RUNS + PAGES_TIMED) first.push(ms);
    if (page >= DEEP_PAGE) deep.push(ms);
    const next = answer.meta['next_cursor'];
    if (typeof next !== 'string') return [];
    cursor = next;
  }
  return [
    { what: 'list by cursor, first pages', times: first, note: `${PAGE} rows` },
    { what: 'list by cursor, from the 500th page', times: deep, note: `${PAGE} rows; as fast as the first` },
  ];
}

async function listReads(reader: Reader, random: Random): Promise<Measured[]> {
  const list = '/v1/traces?limit=50';
  const bar = { p50: 25, p99: 80 };
  return [
    await timed(reader, 'list, no filter', RUNS, () => list, bar),
    await timed(reader, 'list, by agent', RUNS, () => `${list}&agent_id=agent_${random() % AGENTS}`, bar),
    await timed(reader, 'list, outcome=error', RUNS, () => `${list}&outcome=error`, bar),
    await timed(
      reader,
      'list, error and agent',
      RUNS,
      () => `${list}&outcome=error&agent_id=agent_${random() % AGENTS}`,
      bar,
    ),
    await timed(
      reader,
      'list, any of two tags',
      RUNS,
      () => `${list}&tags=tag_${random() % TAGS},tag_${random() % TAGS}`,
      bar,
    ),
    await timed(
      reader,
      'list, slower than 6 s',
      RUNS,
      () => `${list}&min_duration_ms=${6000 + (random() % 2000)}`,
      bar,
    ),
    await timed(reader, 'list, last 7 days', RUNS, () => `${list}&${since(7)}`, bar),
    ...(await deepPages(reader)),
  ];
}

/** Returns the ids of the traces of 1,000 spans; none if the store cannot be asked. */
const largeTraces = async ({ clickhouseUrl }: Target): Promise<string[]> =>
  clickhouseUrl === null ? [] : (await sqlRunner(clickhouseUrl)(largeTraceIdSql(LARGE_TRACES))).split('\n');

/** @param traces in the organization */
async function treeReads(reader: Reader, target: Target, random: Random, traces: number): Promise<Measured[]> {
  const offset = Math.min(1000, Math.floor(traces / 2));
  const { answer } = await reader.answer(`/v1/traces?limit=200&offset=${offset}`);
  const small = z
    .array(z.looseObject({ trace_id: z.string() }))
    .parse(answer.data)
    .map(({ trace_id }) => trace_id);
  const large = await largeTraces(target);
  const any = (ids: readonly string[]): string => ids[random() % ids.length] ?? '';
  return [
    await timed(reader, 'tree of 4 to 20 spans, with texts', RUNS, () => `/v1/traces/${any(small)}/tree`),
    await timed(reader, 'tree of 1,000 spans, with texts', SEARCH_RUNS, () => `/v1/traces/${any(large)}/tree`, {
      p50: 60,
    }),
    await timed(reader, 'timeline of 1,000 spans', SEARCH_RUNS, () => `/v1/traces/${any(large)}/timeline`),
  ];
}

async function searchReads(reader: Reader, random: Random): Promise<Measured[]> {
  const measured: Measured[] = [];
  const queries: [string, () => string][] = [
    ...(Object.keys(WORDS) as WordClass[]).map((kind): [string, () => string] => [
      `two ${kind} words`,
      () => `${pick(random, WORDS[kind])} ${pick(random, WORDS[kind])}`,
    ]),
    [
      'a rare, a medium and a common word',
      () => [WORDS.rare, WORDS.medium, WORDS.common].map((ranks) => pick(random, ranks)).join(' '),
    ],
  ];
  for (const [days, bar] of [
    [7, { p50: 60 }],
    [90, { p50: 100 }],
  ] as const) {
    for (const [what, words] of queries) {
      measured.push(
        await timed(
          reader,
          `BM25 search, ${days} days, ${what}`,
          SEARCH_RUNS,
          () => `/v1/spans/search?limit=50&${since(days)}&q=${encodeURIComponent(words())}`,
          bar,
        ),
      );
    }
  }
  for (const [what, words] of queries.slice(1, 4)) {
    measured.push(
      await timed(
        reader,
        `trace list with search, ${what}`,
        SEARCH_RUNS,
        () => `/v1/traces?limit=50&search=${encodeURIComponent(words())}`,
        { p50: 120 },
      ),
    );
  }
  return measured;
}

/** Filters, orders, facets and series: what a page of the list shows beside its rows. */
async function shapeReads(reader: Reader, random: Random): Promise<Measured[]> {
  const list = '/v1/traces?limit=50';
  const bar = { p50: 25, p99: 80 };
  const name = () => `root_span_name=${encodeURIComponent(`agent run ${random() % 50}`)}`;
  const model = () => `model=${['o3', 'gpt-4o', 'gpt-5'][random() % 3] ?? ''}`;
  const lists: [string, () => string][] = [
    ['list, by root span name', () => `${list}&${name()}`],
    ['list, not of two agents', () => `${list}&not_agent_id=agent_${random() % AGENTS},agent_${random() % AGENTS}`],
    ['list, by user', () => `${list}&user_id=user_${random() % 3000}`],
    ['list, by cost, last day', () => `${list}&sort=cost_usd&${since(1)}`],
    ['list, by duration, last 7 days', () => `${list}&sort=duration_ms&${since(7)}`],
    ['list, by model, last 7 days', () => `${list}&${model()}&${since(7)}`],
    ['list, by attribute, last day', () => `${list}&attributes.step=${random() % 20}&${since(1)}`],
  ];
  const measured: Measured[] = [];
  for (const [what, path] of lists) measured.push(await timed(reader, what, SEARCH_RUNS, path, bar));
  const shapes: [string, () => string, Bars?][] = [
    ['facets, all fields, last day', () => `/v1/traces/facets?${since(1)}`],
    ['facets, all fields, 90 days', () => `/v1/traces/facets?${since(90)}`, { p50: 300 }],
    ['facets, one agent, 90 days', () => `/v1/traces/facets?${since(90)}&agent_id=agent_${random() % AGENTS}`],
    ['series, last day', () => `/v1/traces/series?${since(1)}`],
    ['series, 90 days', () => `/v1/traces/series?${since(90)}`],
    ['series by agent, 30 days', () => `/v1/traces/series?group_by=agent_id&${since(30)}`],
    ['series by model, 7 days', () => `/v1/traces/series?group_by=model&${since(7)}`],
  ];
  for (const [what, path, bars] of shapes) measured.push(await timed(reader, what, SEARCH_RUNS, path, bars));
  const { answer } = await reader.answer('/v1/traces?limit=50');
  const ids = z
    .array(z.looseObject({ trace_id: z.string() }))
    .parse(answer.data)
    .map(({ trace_id }) => trace_id);
  measured.push(
    await timed(reader, 'previews of 50 traces', SEARCH_RUNS, () => `/v1/traces/previews?trace_ids=${ids.join(',')}`),
  );
  return measured;
}

/** Analytics over months, which the hourly projection answers, and over rows. */
async function analyticsReads(reader: Reader): Promise<Measured[]> {
  const ask = (days: number, more: object) => () => ({
    path: '/v1/analytics/query',
    body: {
      view: 'spans',
      since: new Date(Math.floor((Date.now() - days * DAY_MS) / HOUR_MS) * HOUR_MS).toISOString(),
      ...more,
    },
  });
  const [p95, count] = [
    { measure: 'duration_ms', agg: 'p95', as: 'p95' },
    { measure: 'count', agg: 'sum' },
  ];
  const bar = { p50: 100 };
  return [
    await timed(
      reader,
      'analytics, spans by day, 90 days',
      SEARCH_RUNS,
      ask(90, { measures: [count], granularity: 'day' }),
      bar,
    ),
    await timed(
      reader,
      'analytics, p95 by model and day, 30 days',
      SEARCH_RUNS,
      ask(30, { measures: [p95, count], group_by: ['model'], granularity: 'day', compare: 'previous_period' }),
      bar,
    ),
    await timed(
      reader,
      'analytics, p95 by agent, 90 days',
      SEARCH_RUNS,
      ask(90, { measures: [p95], group_by: ['agent_id'], top: 10 }),
      bar,
    ),
    await timed(
      reader,
      'analytics from rows, spans by user, 7 days',
      SEARCH_RUNS,
      ask(7, { measures: [count], group_by: ['user_id'], top: 10 }),
    ),
  ];
}

async function costReads(reader: Reader): Promise<Measured[]> {
  const bar = { p50: 20 };
  return [
    await timed(reader, 'cost summary, 30 days, by model', RUNS, () => '/v1/cost/summary?days=30', bar),
    await timed(
      reader,
      'cost summary, 30 days, by agent',
      RUNS,
      () => '/v1/cost/summary?days=30&group_by=agent_id',
      bar,
    ),
    await timed(
      reader,
      'cost summary, 30 days, by department',
      RUNS,
      () => '/v1/cost/summary?days=30&group_by=department',
      bar,
    ),
    await timed(reader, 'cost summary, 30 days, by realm', RUNS, () => '/v1/cost/summary?days=30&group_by=realm', bar),
    await timed(reader, 'cost summary, 365 days, by model', RUNS, () => '/v1/cost/summary?days=365'),
    await timed(reader, 'cost forecast', RUNS, () => '/v1/cost/forecast'),
    await timed(reader, 'cost outcomes, 30 days', RUNS, () => '/v1/cost/outcomes?days=30'),
  ];
}

const rowOf = ({ what, bars, times, failed = [], note }: Measured): ReportRow => ({
  what,
  value: failed.length === 0 ? quantiles(times) : `${failed.length} of ${failed.length + times.length} failed`,
  note,
  measures: [
    ...p50p99(times, bars),
    ...(failed.length === 0 ? [] : [{ name: 'failed', value: failed.length, unit: 'count' as const, bar: atMost(0) }]),
  ],
  ...(bars === undefined ? {} : { bar: barText(bars) }),
});

/** Returns the reads of the list, of costs and of one trace, which people make while data arrives. */
export async function measureDailyReads(target: Target): Promise<Measured[]> {
  const random = seededRandom(19);
  const reader = new Reader(target);
  try {
    const { answer } = await reader.answer('/v1/traces?limit=1');
    return [
      await listReads(reader, random),
      await costReads(reader),
      await treeReads(reader, target, random, Number(answer.meta['total'])),
    ].flat();
  } finally {
    reader.close();
  }
}

/**
 * Measures every read in the largest organization of a filled store, and returns its number of
 * traces.
 */
export async function measureReads(target: Target): Promise<{ traces: number; measured: Measured[] }> {
  const random = seededRandom(17);
  const reader = new Reader(target);
  try {
    const { answer } = await reader.answer('/v1/traces?limit=1');
    const traces = Number(answer.meta['total']);
    const measured = [
      await listReads(reader, random),
      await shapeReads(reader, random),
      await analyticsReads(reader),
      await costReads(reader),
      await treeReads(reader, target, random, traces),
      await traceReads(
        (...asked) => timed(reader, ...asked),
        target.clickhouseUrl === null ? null : sqlRunner(target.clickhouseUrl),
        random,
        await largeTraces(target),
      ),
      await searchReads(reader, random),
    ].flat();
    return { traces, measured };
  } finally {
    reader.close();
  }
}

/**
 * Measures every read of the table. The promises are for 10 million spans: larger stores have no
 * bars.
 */
export async function benchReads(
  target: Target,
  filled: { spans: number; note: string },
  progress: (line: string) => void,
): Promise<Section> {
  progress(`reads at ${thousands(filled.spans)} spans: list, facets, series, costs, tree, search`);
  const { traces, measured } = await measureReads(target);
  const promised = filled.spans <= PROMISED_SPANS_MAX;
  return {
    title: `Reads at ${thousands(filled.spans)} spans (${filled.note}; ${thousands(traces)} traces in the org that reads)`,
    spans: filled.spans,
    rows: measured.map(({ bars, ...rest }) => rowOf(promised && bars !== undefined ? { ...rest, bars } : rest)),
    data: measured.map(({ what, times }) => ({
      what,
      p50_ms: percentile(times, 0.5),
      p99_ms: percentile(times, 0.99),
      runs: times.length,
    })),
  };
}
