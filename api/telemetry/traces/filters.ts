// Conditions of the filters in the form that sql/queries/traces/filters.sql takes: the shape of its
// parameters, and the translation from query parameters. Filters that are not given are left out.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { type AttributeCondition, attributeConditions } from '../../../sql/attribute_path.ts';
import { ATTRIBUTES } from './attribute_params.ts';
import type { FilterQuery } from './filter_params.ts';
import { parseScoreCondition } from './score_condition.ts';

const texts = z.array(z.string()).optional();
const flag = z.literal(true).optional();
/** A UInt64 inside an array is sent as a bare number. */
const uint64 = z.string().transform(BigInt);
const conditions = z
  .array(z.object({ name: z.string(), op: z.string(), number: z.number().nullable(), text: z.string() }))
  .default([]);

/** Parameters of filters.sql. */
export const filterShape = {
  org_id: z.string(),
  agent_id: texts,
  outcome: z.array(outcome).optional(),
  min_duration_ms: z.int().optional(),
  max_duration_ms: z.int().optional(),
  since_ms: z.int().optional(),
  until_ms: z.int().optional(),
  tags: texts,
  session_id: z.string().optional(),
  user_id: z.string().optional(),
  words: texts,
  /** Keys of the traces that other filters have found; an empty list matches no trace. */
  trace_keys: z.array(uint64).optional(),
  /** Keys of many traces that other filters have found, see keyParts. */
  trace_set: z.array(z.object({ part: z.string() })).optional(),
  root_span_name: texts,
  min_cost_usd: z.number().optional(),
  max_cost_usd: z.number().optional(),
  min_tokens: z.int().optional(),
  max_tokens: z.int().optional(),
  sampled: z.boolean().optional(),
  trace_ids: texts,
  model: texts,
  source_format: texts,
  department: texts,
  realm: texts,
  /** Set if a filter asks the spans of traces that only their spans describe. */
  undescribed: flag,
  /** Set if judge_id or verdict is. */
  judged: flag,
  judge_id: texts,
  verdict: texts,
  /** Set if prompt_name or prompt_version is. */
  prompted: flag,
  prompt_name: texts,
  prompt_version: texts,
  /** Elements of the column `prompts` that match prompt_name and prompt_version. */
  prompt_labels: texts,
  /** Set instead of prompt_labels if only prompt_version is given. */
  any_prompt: flag,
  scores: conditions,
  scored: flag,
  unscored: flag,
  not_agent_id: texts,
  not_outcome: texts,
  not_tags: texts,
  not_session_id: texts,
  not_user_id: texts,
  not_root_span_name: texts,
  not_trace_ids: texts,
  not_model: texts,
  not_source_format: texts,
  not_department: texts,
  not_realm: texts,
  not_prompt_name: texts,
  not_judge_id: texts,
  not_verdict: texts,
  not_scores: conditions,
  /** Set if `attributes` is not empty. */
  attributed: flag,
  attributes: z.array(z.custom<AttributeCondition>()).default([]),
};
/** Filters of traces; a filter that is left out matches everything. */
export type ListFilters = z.input<z.ZodObject<typeof filterShape>>;

/** Returns the list without its repeats; undefined for an empty one, which filters nothing. */
function some<T>(values: readonly T[] | undefined): T[] | undefined {
  return values === undefined || values.length === 0 ? undefined : [...new Set(values)];
}

const conditionsOf = (given: readonly string[] | undefined) =>
  (given ?? []).map(parseScoreCondition).filter((condition) => condition !== null);

/** Filters by values that the spans of a trace have. */
const OF_SPANS = [
  'model',
  'source_format',
  'department',
  'realm',
  'prompt_name',
  'prompt_version',
  'not_model',
  'not_source_format',
  'not_department',
  'not_realm',
  'not_prompt_name',
] as const;

/** Returns the conditions of an organization's traces for query parameters. */
export function filtersOf(orgId: string, query: FilterQuery): ListFilters {
  const [judges, verdicts] = [some(query.judge_id), some(query.verdict)];
  const [prompts, versions] = [some(query.prompt_name), some(query.prompt_version)];
  const attributes = attributeConditions(query[ATTRIBUTES] ?? []);
  return {
    org_id: orgId,
    agent_id: some(query.agent_id),
    outcome: some(query.outcome),
    min_duration_ms: query.min_duration_ms,
    max_duration_ms: query.max_duration_ms,
    since_ms: query.since,
    until_ms: query.until,
    tags: some(query.tags),
    session_id: query.session_id,
    user_id: query.user_id,
    words: query.search?.words,
    root_span_name: some(query.root_span_name),
    min_cost_usd: query.min_cost_usd,
    max_cost_usd: query.max_cost_usd,
    min_tokens: query.min_tokens,
    max_tokens: query.max_tokens,
    sampled: query.sampled,
    trace_ids: some(query.trace_ids),
    model: some(query.model),
    source_format: some(query.source_format),
    department: some(query.department),
    realm: some(query.realm),
    undescribed: OF_SPANS.some((name) => some(query[name]) !== undefined) ? true : undefined,
    judged: judges === undefined && verdicts === undefined ? undefined : true,
    judge_id: judges,
    verdict: verdicts,
    prompted: prompts === undefined && versions === undefined ? undefined : true,
    prompt_name: prompts,
    prompt_version: versions,
    prompt_labels: versions === undefined ? prompts : prompts?.flatMap((name) => versions.map((v) => `${name}\n${v}`)),
    any_prompt: prompts === undefined && versions !== undefined ? true : undefined,
    scores: conditionsOf(query.score),
    attributed: attributes.length === 0 ? undefined : true,
    attributes,
    scored: query.scored === true ? true : undefined,
    unscored: query.scored === false ? true : undefined,
    ...excludedBy(query),
  };
}

const excludedBy = (query: FilterQuery) => ({
  not_agent_id: some(query.not_agent_id),
  not_outcome: some(query.not_outcome),
  not_tags: some(query.not_tags),
  not_session_id: some(query.not_session_id),
  not_user_id: some(query.not_user_id),
  not_root_span_name: some(query.not_root_span_name),
  not_trace_ids: some(query.not_trace_ids),
  not_model: some(query.not_model),
  not_source_format: some(query.not_source_format),
  not_department: some(query.not_department),
  not_realm: some(query.not_realm),
  not_prompt_name: some(query.not_prompt_name),
  not_judge_id: some(query.not_judge_id),
  not_verdict: some(query.not_verdict),
  not_scores: conditionsOf(query.not_score),
});

const OF_TIME: readonly string[] = ['org_id', 'since_ms', 'until_ms'];

/** Returns true if the filter has a value that restricts the list. */
export const isGiven = (value: unknown): boolean =>
  value !== undefined && !(Array.isArray(value) && value.length === 0);

/**
 * Returns true if anything but the time restricts the list. An empty list of a filter restricts nothing; an empty list of
 * found traces leaves none.
 */
export const isFiltered = (filters: ListFilters): boolean =>
  filters.trace_keys !== undefined ||
  Object.entries(filters).some(([name, value]) => !OF_TIME.includes(name) && isGiven(value));
