// Annotation queues and their items in KV, with their keys. A queue says what people are asked
// about its traces. An item is one trace, or a pair of traces, with who works on it and who has
// answered. Answers become scores in the store: an item holds a score only until the score is
// stored in the queue of scores.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { orgKey } from './org.ts';

/** single: one trace is scored. pairwise: two traces are compared. */
export const ANNOTATION_MODES = ['single', 'pairwise'] as const;

/** A member or an API key. Ids of users and of keys may be equal. */
export const annotator = z.object({ type: z.enum(['user', 'api_key']), id: z.string() });
export type Annotator = z.infer<typeof annotator>;

const named = { name: z.string(), required: z.boolean() };
export const annotationScore = z.discriminatedUnion('type', [
  z.object({ ...named, type: z.literal('categorical'), options: z.array(z.string()) }),
  z.object({ ...named, type: z.literal('boolean') }),
  z.object({ ...named, type: z.literal('numeric'), range: z.object({ min: z.number(), max: z.number() }) }),
  /** Which of two traces is better; the only type of a pairwise queue. */
  z.object({ ...named, type: z.literal('preference') }),
]);
export type AnnotationScore = z.infer<typeof annotationScore>;

const queueRecord = z.object({
  kind: z.literal('queue'),
  org_id: z.string(),
  queue_id: z.string(),
  name: z.string(),
  instructions: z.string(),
  mode: z.enum(ANNOTATION_MODES),
  scores: z.array(annotationScore),
  /** Number of people who answer each item. */
  people_per_item: z.int().min(1),
  made_by: annotator,
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});
export type QueueRecord = z.infer<typeof queueRecord>;

/** A score, or the deletion of one, that is not known to be stored in the queue of scores. */
const pendingScore = z.object({
  score_id: z.string(),
  org_id: z.string(),
  trace_id: z.string(),
  span_id: z.string(),
  trace_started_at: z.int(),
  name: z.string(),
  data_type: z.enum(['numeric', 'boolean', 'categorical']),
  number: z.number().nullable(),
  text: z.string(),
  comment: z.string(),
  author_type: z.enum(['user', 'api_key', 'otel']),
  author_id: z.string(),
  created_at: z.int(),
});

const answer = z.object({
  by: annotator,
  at_ms: z.int(),
  said: z.enum(['scores', 'skip']),
  /** SHA-256 of the answer, which recognizes its repetition. */
  digest: z.string(),
  /** Scores that the answer became. */
  scores: z.array(z.object({ score_id: z.string(), trace_id: z.string() })),
});
export type AnswerRecord = z.infer<typeof answer>;

const itemRecord = z.object({
  kind: z.literal('item'),
  org_id: z.string(),
  queue_id: z.string(),
  item_id: z.string(),
  /** Order in the queue: milliseconds of the request that added the item, and its index in it. */
  added_ms: z.int(),
  index: z.int().min(0),
  /** One trace, or two in a pairwise queue. Times are milliseconds since the epoch. */
  traces: z.array(z.object({ trace_id: z.string(), started_ms: z.int() })),
  leases: z.array(z.object({ by: annotator, until_ms: z.int() })),
  answers: z.array(answer),
  /** Number of answers ever given; it makes the ids of their scores unique. */
  round: z.int().min(0),
  outbox: z.array(pendingScore),
});
export type ItemRecord = z.infer<typeof itemRecord>;

export const annotationRecord = z.discriminatedUnion('kind', [queueRecord, itemRecord]);
export type AnnotationRecord = z.infer<typeof annotationRecord>;

export const queueKey = (org_id: string, queue_id: string): string => `${orgKey(org_id)}.${queue_id}`;
export const itemKey = (org_id: string, queue_id: string, item_id: string): string =>
  `${queueKey(org_id, queue_id)}.${item_id}`;
/** Returns the key of a queue or an item. */
export const annotationKey = (record: AnnotationRecord): string =>
  record.kind === 'queue'
    ? queueKey(record.org_id, record.queue_id)
    : itemKey(record.org_id, record.queue_id, record.item_id);

const sha256 = (...parts: readonly string[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** Returns the id of the item with these traces, whose order does not matter: a queue has each once. */
export const itemIdOf = (queue_id: string, trace_ids: readonly string[]): string =>
  `item_${sha256(queue_id, ...trace_ids.toSorted()).slice(0, 16)}`;

/** Returns the beginning of the ids of all scores that a queue's answers become. */
export const scorePrefixOf = (org_id: string, queue_id: string): string =>
  `score_${sha256(org_id, queue_id).slice(0, 12)}`;

/** Returns the id of the score that one answer becomes: the same at every repetition. */
export const annotationScoreId = (
  { org_id, queue_id, item_id, round }: Pick<ItemRecord, 'org_id' | 'queue_id' | 'item_id' | 'round'>,
  trace_id: string,
  name: string,
): string =>
  scorePrefixOf(org_id, queue_id) + sha256(org_id, queue_id, item_id, String(round), trace_id, name).slice(0, 20);

export const sameAnnotator = (a: Annotator, b: Annotator): boolean => a.type === b.type && a.id === b.id;

/** Returns true if the person sees the second trace of a pair on the left. Each person gets one order. */
export const isSwapped = (item_id: string, { type, id }: Annotator): boolean =>
  Number.parseInt(sha256(item_id, type, id).slice(0, 2), 16) % 2 === 1;
