// Lists, shows and searches traces.
import type { MillraceClient, Query } from '../../client.ts';
import { type Call, type Command, EXIT, type Given, type Options, UsageError } from '../command.ts';
import { count, localTime, milliseconds, toneOfOutcome, usd } from '../output.ts';
import { type Column, plain } from '../table.ts';

/** A trace as the API lists it. */
export interface Trace {
  trace_id: string;
  root_span_name: string | null;
  agent_id: string | null;
  outcome: string;
  duration_ms: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  started_at: string;
  span_count: number;
}

interface Span {
  span_id: string;
  parent_span_id: string | null;
  name: string;
  model: string;
  outcome: string;
  duration_ms: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  started_at: string;
  attributes: { span_kind?: string; error_message?: unknown };
}

interface Hit {
  span_id: string;
  trace_id: string;
  name: string;
  model: string;
  outcome: string;
  started_at: string;
  score: number;
  snippet: string;
}

const PAGE = 200;
const LIMIT_MAX = 1_000_000;
/** Failures whose reasons are printed below a tree. */
const ERRORS_MAX = 5;
const ERROR_CHARS_MAX = 500;

export const TRACE_COLUMNS: readonly Column<Trace>[] = [
  { title: 'STARTED', value: ({ started_at }) => localTime(started_at), isWhole: true },
  { title: 'TRACE', value: ({ trace_id }) => trace_id, isWhole: true },
  { title: 'ROOT', value: ({ root_span_name }) => root_span_name },
  { title: 'AGENT', value: ({ agent_id }) => agent_id, isOptional: true },
  { title: 'OUTCOME', value: ({ outcome }) => outcome, tone: ({ outcome }) => toneOfOutcome(outcome) },
  { title: 'DURATION', value: ({ duration_ms }) => milliseconds(duration_ms), isRight: true, isOptional: true },
  {
    title: 'TOKENS',
    value: (trace) => count(trace.input_tokens + trace.output_tokens),
    isRight: true,
    isOptional: true,
  },
  { title: 'COST', value: ({ cost_usd }) => usd(cost_usd), isRight: true, isOptional: true },
  { title: 'SPANS', value: ({ span_count }) => count(span_count), isRight: true, isOptional: true },
];

const HIT_COLUMNS: readonly Column<Hit>[] = [
  { title: 'SCORE', value: ({ score }) => score.toFixed(2), isRight: true },
  { title: 'TRACE', value: ({ trace_id }) => trace_id, isWhole: true },
  { title: 'SPAN', value: ({ name }) => name, isOptional: true },
  { title: 'MODEL', value: ({ model }) => model, isOptional: true },
  {
    title: 'OUTCOME',
    value: ({ outcome }) => outcome,
    tone: ({ outcome }) => toneOfOutcome(outcome),
    isOptional: true,
  },
  { title: 'TEXT', value: ({ snippet }) => snippet },
];

/** Options that filter traces, and the parameters of the API that they are. */
const FILTERS: Readonly<Record<string, string>> = {
  agent: 'agent_id',
  outcome: 'outcome',
  model: 'model',
  user: 'user_id',
  session: 'session_id',
  search: 'search',
  'min-cost': 'min_cost_usd',
  'min-duration': 'min_duration_ms',
};

export const filterOptions: Options = {
  agent: { type: 'string', value: 'ID', about: 'Traces of this agent, or of several, comma-separated' },
  outcome: { type: 'string', value: 'OUTCOME', about: 'success, error or timeout' },
  model: { type: 'string', value: 'MODEL', about: 'Traces with a call of this model' },
  user: { type: 'string', value: 'ID', about: 'Traces of this end user' },
  session: { type: 'string', value: 'ID', about: 'Traces of this session' },
  tag: { type: 'string', multiple: true, value: 'TAG', about: 'Traces with any of these tags; may be repeated' },
  'min-cost': { type: 'string', value: 'USD', about: 'Traces that cost at least this' },
  'min-duration': { type: 'string', value: 'MS', about: 'Traces that took at least this long' },
  filter: {
    type: 'string',
    multiple: true,
    value: 'NAME=VALUE',
    about: 'Any other parameter of GET /v1/traces; may be repeated',
  },
};
const timeOptions: Options = {
  since: { type: 'string', value: 'TIME', about: 'ISO 8601, or an age such as 30m, 24h or 7d' },
  until: { type: 'string', value: 'TIME', about: 'The same' },
};

/** Returns the parameters of the API for the options that filter traces. @throws UsageError */
export function filtersOf(given: Given): Query {
  const query: Query = { since: given.time('since'), until: given.time('until') };
  for (const [option, parameter] of Object.entries(FILTERS)) query[parameter] = given.text(option);
  const tags = given.list('tag');
  if (tags.length > 0) query['tags'] = tags.join(',');
  for (const pair of given.list('filter')) {
    const at = pair.indexOf('=');
    if (at < 1) throw new UsageError('--filter must be NAME=VALUE, for example department=search');
    query[pair.slice(0, at)] = pair.slice(at + 1);
  }
  return query;
}

/** Returns pages of traces until there are this many. */
async function* pagesOf(client: MillraceClient, query: Query, limit: number): AsyncGenerator<Trace[]> {
  let [left, cursor]: [number, string | undefined] = [limit, undefined];
  do {
    const { data, meta }: { data: Trace[]; meta: { next_cursor?: string | null } } = await client.get('/v1/traces', {
      ...query,
      limit: Math.min(left, PAGE),
      cursor,
    });
    yield data;
    left -= data.length;
    cursor = meta.next_cursor ?? undefined;
  } while (cursor !== undefined && left > 0);
}

export const tracesList: Command = {
  name: 'traces list',
  usage: '',
  about: 'Lists traces, newest first',
  args: [0, 0],
  options: {
    ...timeOptions,
    ...filterOptions,
    search: { type: 'string', value: 'WORDS', about: 'Words that all occur in the texts of one span' },
    sort: {
      type: 'string',
      value: 'ORDER',
      about: 'started_at, duration_ms, cost_usd or tokens; all but the first need --since',
    },
    limit: { type: 'string', short: 'n', value: 'N', about: 'Number of traces. Default: 50' },
  },
  run: async ({ client, given, out, signal }) => {
    const limit = given.whole('limit', { min: 1, max: LIMIT_MAX, fallback: 50 });
    const query = { ...filtersOf(given), sort: given.text('sort') };
    const all: Trace[] = [];
    for await (const page of pagesOf(client, query, limit)) {
      if (signal.aborted) break;
      // A table needs all rows for the width of its columns; lines are printed as they come.
      if (out.isTable) all.push(...page);
      else await out.records(page, TRACE_COLUMNS);
    }
    if (out.isTable) await out.records(all, TRACE_COLUMNS, 'No trace matches.');
    return EXIT.ok;
  },
};

export const tracesGet: Command = {
  name: 'traces get',
  usage: '<trace-id>',
  about: 'Shows the spans of a trace: as a tree on a terminal, else one span with its texts a line',
  args: [1, 1],
  options: {
    'no-texts': { type: 'boolean', about: 'Leaves prompts and responses out of the lines' },
  },
  run: async ({ client, args: [trace_id = ''], given, out, signal }) => {
    const path = `/v1/traces/${encodeURIComponent(trace_id)}`;
    if (!out.isTable) {
      const texts = !given.flag('no-texts');
      const body = { format: 'ndjson', include_prompts: texts, include_responses: texts };
      await printStream(await client.ask('POST', `${path}/export`, { body, signal, timeoutMs: 0 }), out);
      return EXIT.ok;
    }
    const { data: trace } = await client.get<{ data: Trace }>(path);
    const { data, meta } = await client.get<{ data: { spans: Span[] }; meta: { total: number } }>(`${path}/tree`);
    await out.records([trace], TRACE_COLUMNS);
    await out.line('');
    await out.records(treeOf(data.spans), SPAN_COLUMNS);
    await printErrors(data.spans, out);
    if (meta.total > data.spans.length)
      out.note(`The first ${count(data.spans.length)} of ${count(meta.total)} spans. --output ndjson prints all.`);
    return EXIT.ok;
  },
};

/** Prints why spans failed: the first of them, in the order in which they began. */
async function printErrors(spans: readonly Span[], out: Call['out']): Promise<void> {
  const failed = spans
    .filter(({ outcome }) => outcome !== 'success')
    .toSorted((a, b) => a.started_at.localeCompare(b.started_at))
    .flatMap(({ name, attributes: { error_message } }) =>
      typeof error_message === 'string' && error_message !== '' ? [`${name}: ${error_message}`] : [],
    );
  if (failed.length === 0) return;
  await out.line('');
  for (const reason of failed.slice(0, ERRORS_MAX))
    await out.line(out.toned(plain(reason).slice(0, ERROR_CHARS_MAX), 'bad'));
  if (failed.length > ERRORS_MAX) out.note(`${count(failed.length - ERRORS_MAX)} further spans failed.`);
}

/** Prints an answer as it arrives. */
export async function printStream(answer: Response, out: Call['out']): Promise<void> {
  if (answer.body === null) return;
  for await (const chunk of answer.body) await out.write(chunk as Uint8Array);
}

interface Placed {
  span: Span;
  depth: number;
}

const SPAN_COLUMNS: readonly Column<Placed>[] = [
  { title: 'SPAN', value: ({ span, depth }) => '  '.repeat(Math.min(depth, 20)) + plain(span.name) },
  { title: 'KIND', value: ({ span }) => span.attributes.span_kind, isOptional: true },
  { title: 'MODEL', value: ({ span }) => span.model, isOptional: true },
  { title: 'OUTCOME', value: ({ span }) => span.outcome, tone: ({ span }) => toneOfOutcome(span.outcome) },
  { title: 'DURATION', value: ({ span }) => milliseconds(span.duration_ms), isRight: true },
  {
    title: 'TOKENS',
    value: ({ span }) => count(span.input_tokens + span.output_tokens),
    isRight: true,
    isOptional: true,
  },
  { title: 'COST', value: ({ span }) => usd(span.cost_usd), isRight: true, isOptional: true },
  { title: 'ID', value: ({ span }) => span.span_id, isWhole: true },
];

/** Returns the spans depth first. Every span is there once, also where parents form a circle. */
function treeOf(spans: readonly Span[]): Placed[] {
  const known = new Set(spans.map(({ span_id }) => span_id));
  const below = new Map<string, Span[]>();
  const roots: Span[] = [];
  for (const span of spans) {
    const { parent_span_id: parent } = span;
    if (parent === null || !known.has(parent)) roots.push(span);
    else below.set(parent, [...(below.get(parent) ?? []), span]);
  }
  const placed = new Map<Span, Placed>();
  const waiting = roots.map((span): Placed => ({ span, depth: 0 })).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (placed.has(next.span)) continue;
    placed.set(next.span, next);
    const { depth } = next;
    for (const span of (below.get(next.span.span_id) ?? []).toReversed()) waiting.push({ span, depth: depth + 1 });
  }
  const circles = spans.filter((span) => !placed.has(span)).map((span): Placed => ({ span, depth: 0 }));
  return [...placed.values(), ...circles];
}

export const tracesSearch: Command = {
  name: 'traces search',
  usage: '<words>…',
  about: 'Searches prompts and responses; the best match comes first',
  args: [1, 100],
  options: {
    ...timeOptions,
    model: { type: 'string', value: 'MODEL', about: 'Calls of this model' },
    outcome: { type: 'string', value: 'OUTCOME', about: 'success, error or timeout' },
    agent: { type: 'string', value: 'ID', about: 'Spans of traces of this agent' },
    limit: { type: 'string', short: 'n', value: 'N', about: 'Number of spans, at most 200. Default: 20' },
  },
  run: async ({ client, args, given, out }) => {
    const { data } = await client.get<{ data: Hit[] }>('/v1/spans/search', {
      q: args.join(' '),
      since: given.time('since'),
      until: given.time('until'),
      model: given.text('model'),
      outcome: given.text('outcome'),
      agent_id: given.text('agent'),
      limit: given.whole('limit', { min: 1, max: PAGE, fallback: 20 }),
      snippets: true,
    });
    await out.records(data, HIT_COLUMNS, 'No span matches.');
    return EXIT.ok;
  },
};
