// Request and response shapes of annotation queues.
import { z } from 'zod';
import { ANNOTATION_MODES, annotator } from '../../../schemas/records/annotation.ts';
import { offsetQuery } from '../../http/pagination.ts';
import { scoreValue } from '../../http/trace_items.ts';

const NAME_CHARS_MAX = 100;
const INSTRUCTIONS_CHARS_MAX = 4000;
const SCORES_MAX = 8;
/** Options of a category: each has a digit key in the portal. */
const OPTIONS_MAX = 9;
const OPTION_CHARS_MAX = 100;
export const PEOPLE_MAX = 5;
/** Maximum items of one request, and maximum traces that it looks at for a share of a list. */
export const ADDED_MAX = 1000;
const QUERY_CHARS_MAX = 4096;
const TRACE_ID_CHARS_MAX = 128;
/** Maximum items that one person is given ahead. */
const AHEAD_MAX = 3;
const COMMENT_CHARS_MAX = 2000;

const scoreName = z.string().trim().min(1).max(NAME_CHARS_MAX).describe('Name of the score, such as helpful');
const named = { name: scoreName, required: z.boolean().default(true).describe('Whether an answer must have it') };
const option = z.string().trim().min(1).max(OPTION_CHARS_MAX);
const isUnique = (values: readonly string[]) => new Set(values).size === values.length;

const scoreSpec = z.discriminatedUnion('type', [
  z.strictObject({
    ...named,
    type: z.literal('categorical'),
    options: z
      .array(option)
      .min(2)
      .max(OPTIONS_MAX)
      .refine(isUnique, { error: 'must not repeat an option' })
      .describe('Categories to choose from'),
  }),
  z.strictObject({ ...named, type: z.literal('boolean') }),
  z.strictObject({
    ...named,
    type: z.literal('numeric'),
    range: z
      .strictObject({ min: z.number(), max: z.number() })
      .refine(({ min, max }) => min < max, { error: 'must have a min below max' })
      .describe('Smallest and largest value'),
  }),
  z.strictObject({ ...named, type: z.literal('preference') }),
]);
type ScoreSpec = z.output<typeof scoreSpec>;

const mode = z
  .enum(ANNOTATION_MODES)
  .describe('single: one trace is scored at a time. pairwise: two traces are compared');
const name = z.string().trim().min(1).max(NAME_CHARS_MAX);
const instructions = z.string().max(INSTRUCTIONS_CHARS_MAX).describe('Shown to everybody who answers');
const people_per_item = z
  .int()
  .min(1)
  .max(PEOPLE_MAX)
  .describe('Number of people who answer each item. Agreement needs at least 2');
const scores = z
  .array(scoreSpec)
  .min(1)
  .max(SCORES_MAX)
  .refine((specs) => isUnique(specs.map((spec) => spec.name)), { error: 'must not repeat a name' })
  .describe('Scores that an answer gives');

const fitsMode = ({ mode: of, scores: specs }: { mode: 'single' | 'pairwise'; scores: readonly ScoreSpec[] }) =>
  specs.every(({ type }) => (type === 'preference') === (of === 'pairwise'));

export const createBody = z
  .strictObject({
    name,
    instructions: instructions.default(''),
    mode: mode.default('single'),
    scores,
    people_per_item: people_per_item.default(1),
  })
  .refine(fitsMode, {
    path: ['scores'],
    error: 'must all have the type preference in a pairwise queue, and none of them in a single one',
  });
export type CreateBody = z.output<typeof createBody>;

export const patchBody = z.strictObject({
  name: name.optional(),
  instructions: instructions.optional(),
  people_per_item: people_per_item.optional(),
});
export type PatchBody = z.output<typeof patchBody>;

const traceId = z.string().min(1).max(TRACE_ID_CHARS_MAX);
export const addBody = z
  .strictObject({
    trace_ids: z
      .array(traceId)
      .min(1)
      .max(ADDED_MAX)
      .optional()
      .describe('Traces to add. A pairwise queue pairs them in the given order'),
    query: z
      .string()
      .max(QUERY_CHARS_MAX)
      .optional()
      .describe('Query string of GET /v1/traces, without the leading question mark: adds the traces that it lists'),
    share: z
      .number()
      .gt(0)
      .max(1)
      .default(1)
      .describe('Share of the listed traces, with query. The same traces are chosen every time'),
    limit: z.int().min(1).max(ADDED_MAX).default(ADDED_MAX).describe('Maximum number of traces, with query'),
  })
  .refine(({ trace_ids, query }) => (trace_ids === undefined) !== (query === undefined), {
    path: ['trace_ids'],
    error: 'is needed, or query: give one of the two',
  });
export type AddBody = z.output<typeof addBody>;

export const addedItems = z.object({
  queue_id: z.string(),
  added: z.int().describe('Items that the queue has now and did not have before'),
  already: z.int().describe('Items that the queue had before'),
  missing: z.int().describe('Traces of trace_ids that do not exist'),
  unpaired: z.int().describe('Traces of a query for which a pairwise queue found no second one'),
});

export const nextBody = z.strictObject({
  count: z
    .int()
    .min(1)
    .max(AHEAD_MAX)
    .default(1)
    .describe('Number of items to lease: the next one, and those after it'),
  item_id: z.string().min(1).max(100).optional().describe('Leases this item, if it is free, before the others'),
});
export type NextBody = z.output<typeof nextBody>;

export const answerBody = z
  .strictObject({
    scores: z
      .record(z.string().max(NAME_CHARS_MAX), scoreValue)
      .default({})
      .describe('Values by name of the score. A preference is left, right or equal'),
    comment: z.string().max(COMMENT_CHARS_MAX).default('').describe('Stored with the first score'),
    skip: z.boolean().default(false).describe('Leaves the item to other people'),
  })
  .refine(({ skip, scores: given, comment }) => !skip || (Object.keys(given).length === 0 && comment === ''), {
    path: ['skip'],
    error: 'cannot be given together with scores or a comment',
  });
export type AnswerBody = z.output<typeof answerBody>;

export const queueParams = z.object({ queue_id: z.string() });
export const itemParams = z.object({ queue_id: z.string(), item_id: z.string() });

const counts = z.object({
  total: z.int(),
  done: z.int().describe('Items with all answers'),
  left: z.int().describe('Items that wait for answers'),
  skipped: z.int().describe('Items that wait and that somebody has skipped'),
});
export type Counts = z.infer<typeof counts>;

export const queueItem = z
  .object({
    queue_id: z.string(),
    name: z.string(),
    instructions: z.string(),
    mode,
    scores: z.array(scoreSpec),
    people_per_item: z.int(),
    progress: counts,
    last_answer_at: z.iso.datetime().nullable(),
    made_by: annotator,
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'AnnotationQueue' });
export type QueueItem = z.infer<typeof queueItem>;

const place = {
  item_id: z.string(),
  queue_id: z.string(),
  trace_ids: z
    .array(z.string())
    .describe('The trace; in a pairwise queue the left and the right one, in an order of the caller'),
  state: z.enum(['open', 'done']),
};

export const leasedItem = z
  .object({
    ...place,
    leased_until: z.iso.datetime().nullable().describe('null for an item that the caller has answered'),
    said: z.enum(['scores', 'skip']).nullable().describe("The caller's own answer; null before it"),
  })
  .meta({ id: 'AnnotationItem' });
export type LeasedItem = z.infer<typeof leasedItem>;
export const workMeta = z.object({ progress: counts });

export const answeredItem = z
  .object({
    ...place,
    answers: z.array(
      z.object({
        by: annotator,
        at: z.iso.datetime(),
        said: z.enum(['scores', 'skip']),
        comment: z.string().nullable(),
        scores: z
          .record(z.string(), scoreValue.nullable())
          .describe('Values by name. Scores that were deleted, and those that have not landed, are missing'),
      }),
    ),
    leased_by: z.array(annotator).describe('People who have the item now'),
    disagreed: z.array(z.string()).describe('Scores for which people gave different values'),
  })
  .meta({ id: 'AnsweredAnnotationItem' });
export type AnsweredItem = z.infer<typeof answeredItem>;

export const itemsQuery = z.object({
  ...offsetQuery,
  state: z
    .enum(['open', 'done', 'skipped', 'disagreed'])
    .optional()
    .describe('Only items that wait for answers, have all, were skipped, or have different values'),
});
export type ItemsQuery = z.output<typeof itemsQuery>;

const valueCount = z.object({ value: z.string(), count: z.int() });
export const progressData = counts.extend({
  leased: z.int().describe('Items that somebody has now'),
  pace_per_hour: z.number().describe('Answers of the last hour; skips are none'),
  people: z.array(
    z.object({
      by: annotator,
      answered: z.int(),
      skipped: z.int(),
      pace_per_hour: z.number(),
      last_at: z.iso.datetime().nullable(),
    }),
  ),
  scores: z
    .array(
      z.object({
        name: z.string(),
        given: z.int(),
        mean: z.number().nullable().describe('Of numeric scores'),
        values: z.array(valueCount).describe('The 20 commonest values. In a pairwise queue win, loss and tie'),
        agreement: z.object({
          items: z.int().describe('Items with values of two or more people'),
          disagreed: z.int().describe('Those of them with different values'),
          percent: z.number().nullable().describe('Share of pairs of values that are equal, 0 to 1'),
          kappa: z.number().nullable().describe("Cohen's kappa; null where chance alone gives full agreement"),
        }),
      }),
    )
    .describe('What was said, by score, as far as it has landed'),
  agreement_source: z.string().describe('Where the formula of kappa is from'),
});
export type ProgressData = z.infer<typeof progressData>;

export const deletedQueue = z.object({ queue_id: z.string(), deleted: z.literal(true) });
