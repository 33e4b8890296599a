// Statements that make stored spans out of numbers: the n-th span of m with its trace, times,
// organization and all other columns, the same for every table, and the postings of their words. Pure
// text.
//
// Spans come in blocks of 36: traces of 4, 12 and 20. Time runs with the trace's number over 90
// days that end now. Organizations are drawn by Zipf's law so that the largest has about 38 %.
// Texts come from bench_texts, one after the other; in a quarter of the spans a word of its own
// makes the text unique.
//
// Texts have the document numbers that the text mover would have given them: the documents of a
// segment are neighbours in time, whichever organization they are of, and lie in it by organization
// and time.

import { SPAN_FLAGS } from '../../pipeline/domain/traces/span_flags.ts';
import { SEGMENT_DOCS } from '../../pipeline/landing/document_numbers.ts';

export const DAYS = 90;
const ORGS = 20;
/** With 20 organizations this exponent gives the largest 38.4 %. */
const ORG_EXPONENT = 1.245;
/** Spans in a block of traces; chunks must be multiples of it. */
export const BLOCK_SPANS = 36;
const BLOCK_TRACES = 3;
export const LARGE_TRACE_SPANS = 1000;
/**
 * A partition that no log has, and a position before that of every logged message: the rows are
 * older than whatever the pipeline lands, which looks for newer ones alone.
 */
const PARTITION = 60_000;
const LOG_SEQ = 0;
/** Large traces are numbered from here. */
const LARGE_FROM = 4_000_000_000;
/** Texts of a segment: the most that it can hold of whole blocks. */
export const SEGMENT_TEXTS = Math.floor(SEGMENT_DOCS / BLOCK_SPANS) * BLOCK_SPANS;
export const AGENTS = 30;
export const TAGS = 40;

/** Returns the cumulative shares of the organizations in millionths. */
export function orgShares(): number[] {
  const weights = Array.from({ length: ORGS }, (_, index) => (index + 1) ** -ORG_EXPONENT);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let sum = 0;
  return weights.map((weight) => Math.round(((sum += weight) / total) * 1e6));
}

export interface FillPlan {
  /** The organization with the largest share and the large traces. */
  org: string;
  /** Start and length of the filled time, milliseconds. */
  startMs: number;
  spanMs: number;
  /**
   * First span of this filling, at the start of a block; earlier fillings lie over the same time.
   */
  from: number;
  /** Spans of this filling, without the large traces. */
  spans: number;
}

/** The spans n = from to from + count; `texts` is true if they have texts. */
export interface FilledRange {
  from: number;
  count: number;
  texts: boolean;
}

/** Returns n, t (trace), pos, size and org of each row of a source with the column n. */
function placed({ org, startMs, spanMs, from, spans }: FillPlan, source: string, large: boolean): string {
  const traces = Math.ceil(spans / BLOCK_SPANS) * BLOCK_TRACES;
  const firstTrace = (from / BLOCK_SPANS) * BLOCK_TRACES;
  const place = large
    ? `toUInt64(${LARGE_FROM} + intDiv(n - ${LARGE_FROM}, ${LARGE_TRACE_SPANS})) AS t, toUInt64((n - ${LARGE_FROM}) % ${LARGE_TRACE_SPANS}) AS pos, ${LARGE_TRACE_SPANS} AS size, '${org}' AS org, toUInt64(sipHash64(t, 'at') % ${Math.floor(spanMs)}) AS offset_ms`
    : `n % ${BLOCK_SPANS} AS k, toUInt64(intDiv(n, ${BLOCK_SPANS}) * ${BLOCK_TRACES} + (k >= 4) + (k >= 16)) AS t, toUInt64(k - multiIf(k >= 16, 16, k >= 4, 4, 0)) AS pos, multiIf(k >= 16, 20, k >= 4, 12, 4) AS size,
       arrayFirstIndex(share -> share > sipHash64(t, 'org') % 1000000, [${orgShares().join(',')}]) AS org_number, if(org_number = 1, '${org}', concat('bench_org_', toString(org_number))) AS org, toUInt64((t - ${firstTrace}) / ${traces} * ${Math.floor(spanMs)}) AS offset_ms`;
  return `SELECT *, ${place}, sipHash64(t, 'trace') AS trace_hash, sipHash64(n, 'event') AS event_hash,
    toUInt64(${startMs} + offset_ms + pos * 400) AS start_ms,
    toUInt64(if(pos = 0, size * 400 + trace_hash % 4000, 150 + event_hash % 380)) AS length_ms,
    pos % 3 = 2 AS is_tool,
    if(is_tool, '', ['gpt-4o', 'gpt-4o-mini', 'gpt-4.1', 'gpt-4.1-mini', 'o4-mini', 'o3', 'gpt-5', 'gpt-5-mini', 'gpt-5-nano', 'gpt-4-turbo'][1 + event_hash % 10]) AS model_name,
    multiIf(event_hash % 1000 < 12, 'error', event_hash % 1000 < 15, 'timeout', 'success') AS outcome_name,
    toUInt32(if(is_tool, 0, 60 + event_hash % 2900)) AS tokens_in, toUInt32(if(is_tool, 0, 20 + event_hash % 500)) AS tokens_out,
    toDecimal64('0.000000150000', 12) * tokens_in + toDecimal64('0.000000600000', 12) * tokens_out AS cost
  FROM (${source})`;
}

const numbers = (from: number, count: number): string => `SELECT number AS n FROM numbers(${from}, ${count})`;

const SPAN_COLUMNS = [
  ['org_id', 'org'],
  ['started_at', "fromUnixTimestamp64Milli(toInt64(start_ms), 'UTC')"],
  ['ended_at', "fromUnixTimestamp64Milli(toInt64(start_ms + length_ms), 'UTC')"],
  ['received_at', "fromUnixTimestamp64Milli(toInt64(start_ms + length_ms), 'UTC')"],
  ['trace_id', "concat('trc_', lower(hex(trace_hash)))"],
  ['span_id', "concat('spn_', lower(hex(event_hash)))"],
  [
    'parent_span_id',
    "if(pos = 0, '', concat('spn_', lower(hex(sipHash64(toUInt64(n - if(pos > 6 AND pos % 3 = 2, 1, pos)), 'event')))))",
  ],
  ['event_key', 'event_hash'],
  ['kind', "if(is_tool, 'tool', 'llm')"],
  [
    'name',
    "if(is_tool, concat('tool_', toString(event_hash % 25)), if(pos = 0, concat('agent run ', toString(trace_hash % 50)), model_name))",
  ],
  ['model', 'model_name'],
  ['source_format', "if(is_tool, 'custom', 'chatcompletion')"],
  ['outcome', 'outcome_name'],
  ['agent_id', `concat('agent_', toString(sipHash64(t, 'agent') % ${AGENTS}))`],
  ['department', "concat('department_', toString(trace_hash % 6))"],
  ['realm', "concat('realm_', toString(trace_hash % 3))"],
  ['session_id', "concat('session_', toString(intDiv(t, 3)))"],
  ['user_id', "concat('user_', toString(sipHash64(t, 'user') % 3000))"],
  ['tags', `['bench', concat('tag_', toString(trace_hash % ${TAGS})), concat('env_', toString(trace_hash % 3))]`],
  ['input_tokens', 'tokens_in'],
  ['output_tokens', 'tokens_out'],
  ['cost_usd', 'cost'],
  ['price_source', "if(is_tool, '', 'bench')"],
  ['storage_bytes', '1500'],
  [
    'attributes',
    `concat('{"agent_id":"agent_', toString(sipHash64(t, 'agent') % ${AGENTS}), '","temperature":0.2,"step":', toString(pos), ',"request_id":"', lower(hex(event_hash)), '"}')`,
  ],
  ['sampled', 'true'],
  ['partition', String(PARTITION)],
  ['log_seq', String(LOG_SEQ)],
  ['log_index', 'n'],
] as const;

const insert = (table: string, columns: readonly (readonly [string, string])[], source: string): string =>
  `INSERT INTO ${table} (${columns.map(([name]) => name).join(', ')}) SELECT ${columns.map(([, expression]) => expression).join(', ')} FROM (${source})`;

/** Returns the columns of spans that landed with or without texts. */
const spanColumns = (texts: boolean) =>
  [...SPAN_COLUMNS, ['flags', String(SPAN_FLAGS.recorded | (texts ? SPAN_FLAGS.has_texts : 0))]] as const;

/** Returns the statement for the spans n = from to from + count of the plan. */
export const spansSql = (plan: FillPlan, { from, count, texts }: FilledRange): string =>
  insert('spans', spanColumns(texts), placed(plan, numbers(from, count), false));

/** A quarter of the spans has a word of its own at the end of its response. */
const HAS_OWN_WORD = 'n % 4 = 0';
const OWN_WORD = "concat('x', lower(hex(toUInt32(n))), 'q')";
const DROP_ON = "toDate(fromUnixTimestamp64Milli(toInt64(start_ms), 'UTC')) + 365";

const TEXT_COLUMNS = [
  ...SPAN_COLUMNS.filter(([name]) =>
    [
      'org_id',
      'started_at',
      'trace_id',
      'span_id',
      'event_key',
      'name',
      'model',
      'outcome',
      'cost_usd',
      'partition',
      'log_seq',
      'log_index',
    ].includes(name),
  ),
  ['prompt', 'prompt'],
  ['response', `if(${HAS_OWN_WORD}, concat(response, ' ', ${OWN_WORD}), response)`],
  ['dl', `dl + (${HAS_OWN_WORD})`],
  ['doc', 'doc'],
  ['flags', String(SPAN_FLAGS.recorded | SPAN_FLAGS.has_texts)],
  ['drop_on', DROP_ON],
] as const;

/**
 * The texts of a segment: those of the spans n = from to from + count, which are at most as many as
 * the segment can hold. Their prompts and responses are those of bench_texts from `firstText` on.
 */
export interface FilledSegment {
  /** Number of the segment, at least 1: 0 would have the document 0, which is none. */
  segment: number;
  from: number;
  count: number;
  firstText: number;
}

/**
 * Returns the columns of the texts of a segment, with `doc`. Only narrow columns are sorted for it,
 * and joined with the texts.
 */
function textsOf(plan: FillPlan, { segment, from, count, firstText }: FilledSegment, columns: string): string {
  const narrow = `SELECT *, ${segment * SEGMENT_DOCS} + row_number() OVER (ORDER BY org, start_ms, n) - 1 AS doc, toUInt32(n - ${from} + ${firstText}) AS i FROM (${placed(plan, numbers(from, count), from >= LARGE_FROM)})`;
  return `SELECT ${columns} FROM (SELECT i, prompt, response, words, dl FROM bench_texts WHERE i >= ${firstText} AND i < ${firstText + count}) AS b INNER JOIN (${narrow}) AS s ON b.i = s.i`;
}

/** Returns the statement for the texts of a segment. */
export const textsSql = (plan: FillPlan, filled: FilledSegment): string =>
  insert('span_texts', TEXT_COLUMNS, textsOf(plan, filled, '*'));

/**
 * Returns the statement for the postings of a segment: what writePostings of sql/stores/postings.ts
 * writes after all moves and merges of the segment. Texts are read in any order, so places are
 * sorted.
 */
export function postingsSql(plan: FillPlan, filled: FilledSegment): string {
  const texts = textsOf(
    plan,
    filled,
    `${DROP_ON} AS drop_on, if(${HAS_OWN_WORD}, concat(words, ' ', ${OWN_WORD}), words) AS own_words, toUInt16(bitAnd(doc, ${SEGMENT_DOCS - 1})) AS place`,
  );
  return `INSERT INTO span_words (week, word, segment, places, counts)
    SELECT week, word, ${filled.segment}, arrayCompact(occurrences),
      arrayMap(times -> toUInt16(least(times, 65535)), arrayPopFront(arrayDifference(arrayPushBack(begins, toUInt32(length(occurrences) + 1)))))
    FROM (
      SELECT week, word, occurrences, arrayFilter((at, place, before) -> at = 1 OR place != before, arrayEnumerate(occurrences), occurrences, arrayShiftRight(occurrences, 1)) AS begins
      FROM (
        SELECT toMonday(drop_on) AS week, cityHash64(arrayJoin(splitByChar(' ', own_words))) AS word, arraySort(groupArray(place)) AS occurrences
        FROM (${texts})
        GROUP BY week, word
      )
    )`;
}

/** Returns the statement for the spans of large traces of 1,000 spans each, in the largest organization. */
export const largeSql = (plan: FillPlan, traces: number): string =>
  insert('spans', spanColumns(true), placed(plan, numbers(LARGE_FROM, traces * LARGE_TRACE_SPANS), true));

/** Returns the texts of large traces as the texts of a segment. */
export const largeTexts = (segment: number, traces: number): FilledSegment => ({
  segment,
  from: LARGE_FROM,
  count: traces * LARGE_TRACE_SPANS,
  firstText: 0,
});

const landedBetween = (from: number, count: number): string =>
  `s.partition = ${PARTITION} AND s.log_index >= ${from} AND s.log_index < ${from + count}`;

/** Returns the statement for the trace rows of the spans n = from to from + count. */
export function tracesSql(from: number, count: number): string {
  return `INSERT INTO traces (org_id, anchor, trace_key, trace_id, started_at, ended_at, root_at, root_span_id, root_span_name, agent_id, outcome, session_id, user_id, tags, spans, input_tokens, output_tokens, cost_usd, sampled, described, models, source_formats, departments, realms, partition, log_seq, sign, version)
  SELECT s.org_id, min(s.started_at), sipHash64(s.trace_id), s.trace_id, min(s.started_at), max(s.ended_at), minIf(s.started_at, s.parent_span_id = ''), anyIf(s.span_id, s.parent_span_id = ''), anyIf(s.name, s.parent_span_id = ''), any(s.agent_id),
    multiIf(countIf(s.outcome = 'error') > 0, 'error', countIf(s.outcome = 'timeout') > 0, 'timeout', 'success'), any(s.session_id), any(s.user_id), any(s.tags), count(), sum(s.input_tokens), sum(s.output_tokens), sum(s.cost_usd), true,
    true, groupUniqArrayIf(s.model, s.model != ''), groupUniqArray(s.source_format), groupUniqArray(s.department), groupUniqArray(s.realm),
    ${PARTITION}, ${LOG_SEQ}, 1, max(s.log_index)
  FROM spans AS s WHERE ${landedBetween(from, count)}
  GROUP BY s.org_id, s.trace_id`;
}

/** Events of one landing of the usage rows. */
const LANDING_EVENTS = 1000;

/**
 * Returns the usage rows of the spans n = from to from + count, as landings of some events would
 * have written them.
 */
export function usageSql(from: number, count: number): string {
  return `INSERT INTO usage_events (org_id, hour, day, agent_id, model, department, realm, last_received_at, events, input_tokens, output_tokens, storage_bytes, sandbox_seconds, cost_usd, partition, log_seq)
  SELECT s.org_id, toStartOfHour(s.received_at) AS hour, toDate(s.started_at) AS day, s.agent_id, s.model, s.department, s.realm, max(s.received_at), count(), sum(s.input_tokens), sum(s.output_tokens), sum(s.storage_bytes), sum(s.sandbox_seconds), sum(s.cost_usd),
    ${PARTITION}, ${LOG_SEQ}
  FROM spans AS s WHERE ${landedBetween(from, count)}
  GROUP BY s.org_id, hour, day, s.agent_id, s.model, s.department, s.realm, intDiv(s.log_index, ${LANDING_EVENTS})`;
}

/** Returns the last activity of these rows' agents, as a worker would have written it. */
export const activitySql = (from: number, count: number): string =>
  `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at)
  SELECT s.org_id, s.agent_id, max(s.received_at), now64(3) FROM spans AS s WHERE ${landedBetween(from, count)} AND s.agent_id != '' GROUP BY s.org_id, s.agent_id`;

export const largeTracesSql = (traces: number): string => tracesSql(LARGE_FROM, traces * LARGE_TRACE_SPANS);
export const largeUsageSql = (traces: number): string => usageSql(LARGE_FROM, traces * LARGE_TRACE_SPANS);
/** SQL for the id of a large trace, by its number from 0. */
export const largeTraceIdSql = (count: number): string =>
  `SELECT concat('trc_', lower(hex(sipHash64(toUInt64(${LARGE_FROM} + number), 'trace')))) FROM numbers(${count}) FORMAT TSV`;

export const BENCH_TEXTS_DDL = `CREATE TABLE bench_texts (i UInt32, prompt String CODEC(LZ4), response String CODEC(LZ4), words String CODEC(LZ4), dl UInt32) ENGINE = MergeTree ORDER BY i`;
