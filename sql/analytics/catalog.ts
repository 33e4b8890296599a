// What an analytics query may ask for: views with their measures, dimensions and filter fields, and
// the SQL expression of each. Data alone; plan.ts makes statements of it. The expressions of the
// view `spans` that have `rollup` set repeat those of the projection p_hour exactly, and days.ts derives
// those of days from them, because the engine reads a projection only for the very same expressions.

export const VIEWS = ['spans', 'traces', 'scores', 'usage'] as const;
export type View = (typeof VIEWS)[number];

export const PERCENTILES = ['p50', 'p75', 'p90', 'p95', 'p99'] as const;
export const AGGS = ['sum', 'avg', 'min', 'max', ...PERCENTILES, 'uniq', 'histogram'] as const;
export type Agg = (typeof AGGS)[number];

/** Levels of every digest, in the order of PERCENTILES. */
const DIGEST = 'quantilesTDigest(0.5, 0.75, 0.9, 0.95, 0.99)';
const HISTOGRAM_BINS = 20;
/** Duration of a span, as the projection has it. */
const SPAN_MS = "dateDiff('millisecond', started_at, ended_at)";

export interface Aggregate {
  sql: string;
  /** Returns the expression over the rows that meet a condition, so that a statement can have several. */
  only: (condition: string) => string;
  /** Returns the expression with each call of an aggregate function written by `call`. */
  written: Expression;
  /** True when the projections of hours and days hold what the expression needs. */
  rollup: boolean;
  /** True when the value of groups adds up to the value of all; it is 0 where there are no rows. */
  additive: boolean;
  /** True for estimates: digests, distinct counts, histograms. */
  approximate: boolean;
}

export interface Measure {
  unit: 'count' | 'share' | 'usd' | 'tokens' | 'ms' | 'tokens_per_second' | 'score';
  description: string;
  aggs: Partial<Record<Agg, Aggregate>>;
}

export interface Dimension {
  sql: string;
  rollup: boolean;
  description: string;
  /** The column is a list: a row counts in the group of each of its elements. */
  list?: true;
}

export interface Source {
  /** FROM clause. */
  from: string;
  /** Conditions besides those on organization and time. */
  where: string;
  /** Column of DateTime64 that time is counted by; of Date in the view usage. */
  time: string;
  measures: Readonly<Record<string, Measure>>;
  dimensions: Readonly<Record<string, Dimension>>;
  /** Numbers that filters compare: expressions of Float64. */
  numbers: Readonly<Record<string, string>>;
  /** True when filters on `attributes.<path>` are possible. */
  attributes: boolean;
}

/** Writes the call of an aggregate function, over the rows that meet the condition `known` if it is given. */
type Call = (name: string, argument?: string, known?: string) => string;
/** Expression made of aggregate functions. */
type Expression = (call: Call) => string;

/** Returns a writer of calls over all rows, or over those that meet a condition. */
function callsOver(condition?: string): Call {
  return (name, argument = '', known) => {
    const conditions = [known, condition].filter((one) => one !== undefined);
    if (conditions.length === 0) return `${name}(${argument})`;
    const where = conditions.length === 1 ? conditions.join('') : conditions.map((one) => `(${one})`).join(' AND ');
    const conditional = name.replace(/^\w+/, (word) => `${word}If`);
    return `${conditional}(${argument === '' ? where : `${argument}, ${where}`})`;
  };
}
/** Writes calls over all rows. */
export const everyRow = callsOver();

const exact = (expression: Expression, rollup: boolean): Aggregate => ({
  sql: expression(everyRow),
  only: (condition) => expression(callsOver(condition)),
  written: expression,
  rollup,
  additive: false,
  approximate: false,
});
const additive = (expression: Expression, rollup: boolean): Aggregate => ({
  ...exact(expression, rollup),
  additive: true,
});
const estimate = (expression: Expression, rollup: boolean): Aggregate => ({
  ...exact(expression, rollup),
  approximate: true,
});
const float =
  (expression: Expression): Expression =>
  (call) =>
    `toFloat64(${expression(call)})`;

interface NumberOptions {
  /** Aggregates that p_hour can answer. */
  rollup?: readonly Agg[];
  /** Expression of the sum, where it is not sum(x). */
  sum?: Expression;
  /** Condition of rows that have the number; others count in no average. */
  known?: string;
  /** Expression of the number for digests, which take no decimals. */
  digested?: string;
}

const sumOf =
  (x: string, known?: string): Expression =>
  (call) =>
    call('sum', x, known);

/** Returns every aggregate of a number. */
function numeric(x: string, { rollup = [], known, sum = sumOf(x), digested = x }: NumberOptions = {}): Measure['aggs'] {
  const has = (agg: Agg): boolean => rollup.includes(agg);
  const extreme =
    (name: 'min' | 'max'): Expression =>
    (call) =>
      `if(${call('count', '', known)} = 0, NULL, toFloat64(${call(name, x, known)}))`;
  const percentile =
    (index: number): Expression =>
    (call) =>
      `toFloat64((${call(DIGEST, digested, known)})[${index + 1}])`;
  return {
    sum: additive(float(sum), has('sum')),
    avg: exact((call) => `toFloat64(${sum(call)}) / ${call('count', '', known)}`, has('avg')),
    min: exact(extreme('min'), has('min')),
    max: exact(extreme('max'), has('max')),
    ...Object.fromEntries(PERCENTILES.map((name, index) => [name, estimate(percentile(index), has(name))])),
    histogram: estimate((call) => call(`histogram(${HISTOGRAM_BINS})`, `toFloat64(${x})`, known), false),
  };
}

/** Returns the count of different non-empty texts. */
const distinct = (column: string): Measure['aggs'] => ({
  uniq: estimate((call) => `toFloat64(${call('uniq', column, `${column} != ''`)})`, false),
});

const FAILED = "outcome != 'success'";
const outcomes = (what: string, rollup: boolean): Record<string, Measure> => ({
  count: {
    unit: 'count',
    description: `Number of ${what}`,
    aggs: {
      sum: additive(
        float((call) => call('count')),
        rollup,
      ),
    },
  },
  errors: {
    unit: 'count',
    description: `Number of ${what} whose outcome is error or timeout`,
    aggs: {
      sum: additive(
        float((call) => call('count', '', FAILED)),
        rollup,
      ),
    },
  },
  error_rate: {
    unit: 'share',
    description: `Share of ${what} whose outcome is error or timeout, 0 to 1`,
    aggs: { avg: exact((call) => `${call('count', '', FAILED)} / ${call('count')}`, rollup) },
  },
});
const MEANS: readonly Agg[] = ['sum', 'avg'];

const tokens = (column: string, description: string, rollup: readonly Agg[] = MEANS): Measure => ({
  unit: 'tokens',
  description,
  aggs: numeric(column, { rollup }),
});
const totalTokens: Expression = (call) => `${call('sum', 'input_tokens')} + ${call('sum', 'output_tokens')}`;
const people: Record<string, Measure> = {
  users: { unit: 'count', description: 'Number of different end users', aggs: distinct('user_id') },
  sessions: { unit: 'count', description: 'Number of different sessions', aggs: distinct('session_id') },
};
const text = (sql: string, description: string, rollup = false): Dimension => ({ sql, rollup, description });
const TAG: Dimension = {
  sql: "arrayJoin(if(empty(tags), [''], tags))",
  rollup: false,
  description: 'Tag. A row with several tags counts in the group of each',
  list: true,
};
const SPEED = 'output_tokens * 1000 / (' + SPAN_MS + ' - first_token_ms)';
const HAS_SPEED = "kind = 'llm' AND output_tokens > 0 AND " + SPAN_MS + ' > first_token_ms';

const spans: Source = {
  from: 'spans',
  where: '',
  time: 'started_at',
  measures: {
    ...outcomes('spans', true),
    cost_usd: {
      unit: 'usd',
      description: 'Cost',
      aggs: numeric('cost_usd', { rollup: MEANS, digested: 'toFloat64(cost_usd)' }),
    },
    input_tokens: tokens('input_tokens', 'Input tokens, cached ones included'),
    output_tokens: tokens('output_tokens', 'Output tokens, reasoning included'),
    total_tokens: {
      unit: 'tokens',
      description: 'Input and output tokens',
      aggs: numeric('input_tokens + output_tokens', { sum: totalTokens, rollup: MEANS }),
    },
    cached_input_tokens: tokens('cached_input_tokens', 'Input tokens that the provider had cached'),
    cache_write_tokens: tokens('cache_write_tokens', 'Input tokens that the provider wrote to its cache'),
    reasoning_tokens: tokens('reasoning_tokens', 'Output tokens that the model spent on reasoning'),
    duration_ms: {
      unit: 'ms',
      description: 'Duration of a span',
      aggs: numeric(SPAN_MS, { rollup: ['sum', 'avg', 'min', 'max', ...PERCENTILES] }),
    },
    time_to_first_token_ms: {
      unit: 'ms',
      description: 'Time from the start of a call to its first token, of calls that report it',
      aggs: numeric('first_token_ms', { known: 'first_token_ms > 0', rollup: ['sum', 'avg', ...PERCENTILES] }),
    },
    output_tokens_per_second: {
      unit: 'tokens_per_second',
      description: 'Output tokens of a model call by the seconds after its first token',
      aggs: speedAggs(),
    },
    ...people,
    traces: { unit: 'count', description: 'Number of different traces', aggs: distinct('trace_id') },
  },
  dimensions: {
    kind: text('kind', 'llm, tool, event or app', true),
    name: text('name', 'Model, chain, tool or event name'),
    model: text('model', 'Model as the client named it', true),
    provider: text('provider', 'Vendor that answered a model call'),
    agent_id: text('agent_id', 'Agent', true),
    outcome: text('outcome', 'success, error or timeout', true),
    source_format: text('source_format', 'Ingest format'),
    environment: text('environment', 'Deployment environment', true),
    service: text('service', 'Service that sent the span'),
    release: text('release', 'Version of the service'),
    department: text('department', 'Department'),
    realm: text('realm', 'Realm'),
    prompt_name: text('prompt_name', 'Registered prompt'),
    prompt_version: text('prompt_version', 'Version of the prompt'),
    tag: TAG,
    user_id: text('user_id', 'End user'),
    session_id: text('session_id', 'Session'),
  },
  numbers: {
    duration_ms: `toFloat64(${SPAN_MS})`,
    time_to_first_token_ms: 'toFloat64(first_token_ms)',
    cost_usd: 'toFloat64(cost_usd)',
    input_tokens: 'toFloat64(input_tokens)',
    output_tokens: 'toFloat64(output_tokens)',
    total_tokens: 'toFloat64(input_tokens + output_tokens)',
  },
  attributes: true,
};

/** Returns averages and percentiles of the speed of generation; a sum of speeds means nothing. */
function speedAggs(): Measure['aggs'] {
  const all = numeric(SPEED, { known: HAS_SPEED, sum: sumOf(SPEED, HAS_SPEED) });
  return Object.fromEntries(Object.entries(all).filter(([agg]) => agg !== 'sum' && agg !== 'histogram'));
}

const traces: Source = {
  from: 'traces FINAL',
  where: "sign = 1 AND anchor >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')",
  time: 'started_at',
  measures: {
    ...outcomes('traces', false),
    cost_usd: {
      unit: 'usd',
      description: 'Cost of a trace',
      aggs: numeric('cost_usd', { digested: 'toFloat64(cost_usd)' }),
    },
    input_tokens: tokens('input_tokens', 'Input tokens of a trace', []),
    output_tokens: tokens('output_tokens', 'Output tokens of a trace', []),
    total_tokens: {
      unit: 'tokens',
      description: 'Input and output tokens of a trace',
      aggs: numeric('input_tokens + output_tokens', { sum: totalTokens }),
    },
    duration_ms: { unit: 'ms', description: 'Last end minus first start of a trace', aggs: numeric('duration_ms') },
    spans: { unit: 'count', description: 'Spans of a trace', aggs: numeric('spans') },
    ...people,
  },
  dimensions: {
    name: text('root_span_name', 'Name of the root span'),
    agent_id: text('agent_id', 'Agent'),
    outcome: text('outcome', 'success, error or timeout'),
    tag: TAG,
    user_id: text('user_id', 'End user'),
    session_id: text('session_id', 'Session'),
  },
  numbers: {
    duration_ms: 'toFloat64(duration_ms)',
    cost_usd: 'toFloat64(cost_usd)',
    total_tokens: 'toFloat64(input_tokens + output_tokens)',
    spans: 'toFloat64(spans)',
  },
  attributes: false,
};

/** Scores of judges and of people, under the columns that both have. */
const SCORES = `(
  SELECT org_id, started_at, agent_id, judge_id, judge_name AS score_name, verdict, 'judge' AS given_by, score
  FROM judge_scores FINAL
  WHERE org_id = {org_id:String} AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
  UNION ALL
  SELECT org_id, started_at, '' AS agent_id, '' AS judge_id, name AS score_name, text AS verdict, if(author_type = 'otel', 'otel', 'user') AS given_by, number AS score
  FROM user_scores FINAL
  WHERE org_id = {org_id:String} AND started_at >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')
    AND name != '' AND score_id NOT IN (SELECT score_id FROM user_scores WHERE org_id = {org_id:String} AND name = '')
)`;

const scores: Source = {
  from: SCORES,
  where: '',
  time: 'started_at',
  measures: {
    count: {
      unit: 'count',
      description: 'Number of scores',
      aggs: {
        sum: additive(
          float((call) => call('count')),
          false,
        ),
      },
    },
    score: {
      unit: 'score',
      description:
        'Value of a score: a number, or 1 and 0 for true and false. Categories and failed judgements have none',
      aggs: numeric('ifNull(score, 0)', { known: 'isNotNull(score)', sum: sumOf('ifNull(score, 0)') }),
    },
  },
  dimensions: {
    judge: text('judge_id', 'Judge that scored; empty for people and applications'),
    score_name: text('score_name', 'Name of the judge or of the score'),
    verdict: text('verdict', 'pass, warn, fail or error of a judge; the category of a categorical score'),
    given_by: text('given_by', 'judge, user for people and applications, or otel for OpenTelemetry'),
    agent_id: text('agent_id', 'Agent of the trace, for scores of judges'),
  },
  numbers: { score: 'toFloat64(ifNull(score, 0))' },
  attributes: false,
};

const usage: Source = {
  from: 'usage_events',
  where: '',
  time: 'day',
  measures: {
    cost_usd: { unit: 'usd', description: 'Cost', aggs: sumOnly(sumOf('cost_usd')) },
    input_tokens: { unit: 'tokens', description: 'Input tokens', aggs: sumOnly(sumOf('input_tokens')) },
    output_tokens: { unit: 'tokens', description: 'Output tokens', aggs: sumOnly(sumOf('output_tokens')) },
    total_tokens: { unit: 'tokens', description: 'Input and output tokens', aggs: sumOnly(totalTokens) },
  },
  dimensions: {
    model: text('model', 'Model'),
    agent_id: text('agent_id', 'Agent'),
    department: text('department', 'Department'),
    realm: text('realm', 'Realm'),
  },
  numbers: {},
  attributes: false,
};

function sumOnly(sum: Expression): Measure['aggs'] {
  return { sum: additive(float(sum), false) };
}

export const SOURCES: Readonly<Record<View, Source>> = { spans, traces, scores, usage };
