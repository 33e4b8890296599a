// Query parameters that filter traces: shared by the list, the facets and the series, so that a
// filter means the same in each. A list of values matches traces with any of them, and `not_` and
// its name matches the traces that the filter itself would leave out.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import type { TraceOutcome } from '../../../pipeline/domain/traces/span.ts';
import { booleanParam } from '../../http/common_params.ts';
import { timeParam } from '../../http/time_param.ts';
import { ATTRIBUTES, attributesParam } from './attribute_params.ts';
import { parseScoreCondition } from './score_condition.ts';
import { splitValues } from './split_values.ts';
import { NO_WORD, parseSearch } from '../../../pipeline/domain/text/search_text.ts';

const SEARCH_CHARS_MAX = 1000;
const SEARCH_WORDS_MAX = 32;
const DURATION_MAX_MS = 1_000_000_000_000;
/** Maximum values of one filter. */
const VALUES_MAX = 50;
const VALUE_CHARS_MAX = 1024;
/** Maximum ids of trace_ids: a page of the list. */
const TRACE_IDS_MAX = 200;
const SCORE_CONDITIONS_MAX = 5;

const wholeParam = (error: string) =>
  z
    .string()
    .regex(/^\d{1,12}$/, { error })
    .transform(Number)
    .pipe(z.int().max(DURATION_MAX_MS));
const durationParam = wholeParam('must be whole milliseconds');
const tokensParam = wholeParam('must be an integer of 0 or more');

/** A float as clients write it: 0.00001 is 1e-05 in Python, 1e-7 in JavaScript. */
const costParam = z
  .string()
  .regex(/^(?:\d{1,20}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,2})?$/i, { error: 'must be a number of USD, 0 or more' })
  .transform(Number);

const searchParam = z
  .string()
  .max(SEARCH_CHARS_MAX)
  .transform((text, context) => {
    const search = parseSearch(text);
    if (search === null) context.addIssue({ code: 'custom', message: NO_WORD });
    return search ?? z.NEVER;
  })
  .refine(({ words }) => words.length <= SEARCH_WORDS_MAX, {
    error: `must have at most ${SEARCH_WORDS_MAX} different words`,
  })
  .meta({
    type: 'string',
    description:
      'Words that must all occur in the prompt and response of one span, ignoring case and diacritics. "Quoted phrases" match consecutive words',
  });

interface Values {
  description: string;
  /** Maximum number of values. */
  max?: number;
}

/** Splits one value of a query, or several of them, as the query parser gives them. */
const split = (given: unknown): unknown =>
  given === undefined
    ? given
    : (Array.isArray(given) ? (given as unknown[]) : [given]).flatMap((part) =>
        typeof part === 'string' ? splitValues(part) : [part],
      );

const textList = (max: number) =>
  z
    .array(z.string().max(VALUE_CHARS_MAX, { error: `must be at most ${VALUE_CHARS_MAX} characters` }))
    .max(max, { error: `must have at most ${max} values` });

/**
 * Returns the schema of a filter by several values, comma-separated, repeated, or both. A parameter
 * without a value is no filter.
 */
export const textsParam = ({ description, max = VALUES_MAX }: Values) =>
  z.preprocess(split, textList(max)).optional().describe(description);

/** Returns the schema of a filter by several of a closed set of values. */
const choicesParam = <T extends string>(choices: readonly [T, ...T[]], { description, max = VALUES_MAX }: Values) =>
  z
    .preprocess(
      split,
      textList(max)
        .refine((given) => given.every((one) => (choices as readonly string[]).includes(one)), {
          error: `must be one or more of ${choices.join(', ')}`,
          abort: true,
        })
        .pipe(z.array(z.enum(choices))),
    )
    .optional()
    .describe(description);

/** Returns the schema of a filter by conditions on scores. */
const scoresParam = (description: string) =>
  z
    .preprocess(
      split,
      textList(SCORE_CONDITIONS_MAX).refine((given) => given.every((one) => parseScoreCondition(one) !== null), {
        error:
          'must be name:op:value, with an op of eq, ne, gt, gte, lt and lte, and a number after gt, gte, lt and lte; for example stars:gte:4',
      }),
    )
    .optional()
    .describe(description);

const names = (description: string) => textsParam({ description });
const OUTCOMES = outcome.options as [TraceOutcome, ...TraceOutcome[]];
const VERDICTS = ['pass', 'warn', 'fail', 'error'] as const;
const agents = z
  .string()
  .transform(splitValues)
  .pipe(textList(VALUES_MAX).min(1, { error: 'must name an agent' }));

/** Parameters of everything that filters traces. */
export const filterParams = {
  agent_id: agents.optional().describe('Traces of any of these agents, comma-separated'),
  outcome: choicesParam(OUTCOMES, { description: 'Traces with any of these outcomes' }),
  min_duration_ms: durationParam.optional(),
  max_duration_ms: durationParam.optional(),
  since: timeParam.optional().describe('Traces that started at or after this time'),
  until: timeParam.optional().describe('Traces that started at or before this time'),
  search: searchParam.optional(),
  tags: names('Traces with any of these tags'),
  session_id: z.string().min(1).optional(),
  user_id: z.string().min(1).optional(),
  root_span_name: names('Traces whose root span has any of these names'),
  model: names('Traces with a span of any of these models'),
  source_format: names('Traces with a span that arrived in any of these formats'),
  department: names('Traces with a span of any of these departments'),
  realm: names('Traces with a span of any of these realms'),
  min_cost_usd: costParam.optional(),
  max_cost_usd: costParam.optional(),
  min_tokens: tokensParam.optional().describe('Input and output tokens together'),
  max_tokens: tokensParam.optional().describe('Input and output tokens together'),
  judge_id: names('Traces that any of these judges scored. `verdict` narrows it to their newest verdicts'),
  verdict: choicesParam(VERDICTS, { description: 'Traces whose newest verdict of a judge is any of these' }),
  score: scoresParam(
    'Conditions on scores of people and applications, as `name:op:value` with an op of eq, ne, gt, gte, lt and lte. Each condition must hold for a score of the trace',
  ),
  prompt_name: names('Traces with a call that used any of these registered prompts'),
  prompt_version: names('Traces with a call that used any of these versions of its prompt, together with prompt_name'),
  [ATTRIBUTES]: attributesParam.optional(),
  sampled: booleanParam.optional().describe('false for traces of which sampling kept only a summary'),
  scored: booleanParam
    .optional()
    .describe('true for traces that a person, an application or a judge scored, false for the others'),
  trace_ids: textsParam({ description: 'Traces with these ids', max: TRACE_IDS_MAX }),
  not_agent_id: names('Leaves out traces of these agents'),
  not_outcome: choicesParam(OUTCOMES, { description: 'Leaves out traces with these outcomes' }),
  not_tags: names('Leaves out traces with any of these tags'),
  not_session_id: names('Leaves out traces of these sessions'),
  not_user_id: names('Leaves out traces of these end users'),
  not_root_span_name: names('Leaves out traces whose root span has any of these names'),
  not_model: names('Leaves out traces with a span of any of these models'),
  not_source_format: names('Leaves out traces with a span that arrived in any of these formats'),
  not_department: names('Leaves out traces with a span of any of these departments'),
  not_realm: names('Leaves out traces with a span of any of these realms'),
  not_judge_id: names('Leaves out traces that any of these judges scored'),
  not_verdict: choicesParam(VERDICTS, {
    description:
      'Leaves out traces whose newest verdict of a judge, among those of `judge_id` if given, is any of these',
  }),
  not_prompt_name: names('Leaves out traces with a call that used any of these registered prompts'),
  not_score: scoresParam('Leaves out traces for which any of these conditions on scores holds'),
  not_trace_ids: textsParam({ description: 'Leaves out traces with these ids', max: TRACE_IDS_MAX }),
};

export type FilterQuery = z.output<z.ZodObject<typeof filterParams>>;
