// The rules of an item: who may work on it, which answers it has, and how an answer becomes scores.
// Functions over one record, without I/O.
import { hash } from 'node:crypto';
import {
  annotationScoreId,
  type AnnotationScore,
  type Annotator,
  type AnswerRecord,
  isSwapped,
  type ItemRecord,
  type QueueRecord,
  sameAnnotator,
} from '../../../schemas/records/annotation.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import { scoreDeletion } from '../../../schemas/score_deletion.ts';
import { ApiError } from '../../http/errors.ts';
import { scoreColumns } from '../../http/score_values.ts';
import type { AnswerBody, LeasedItem } from './schema.ts';

/** Time for which an item belongs to the person who got it. */
export const LEASE_MS = 600_000;

type Queue = Pick<QueueRecord, 'people_per_item' | 'scores' | 'mode'>;

export const answerOf = (item: ItemRecord, by: Annotator): AnswerRecord | undefined =>
  item.answers.find((answer) => sameAnnotator(answer.by, by));
const answered = (item: ItemRecord): number => item.answers.filter(({ said }) => said === 'scores').length;
export const isDone = (item: ItemRecord, queue: Queue): boolean => answered(item) >= queue.people_per_item;
/** Returns the leases that have not expired. */
export const leasesOf = (item: ItemRecord, now: number): ItemRecord['leases'] =>
  item.leases.filter(({ until_ms }) => until_ms > now);
export const leaseOf = (item: ItemRecord, by: Annotator, now: number): ItemRecord['leases'][number] | undefined =>
  leasesOf(item, now).find((lease) => sameAnnotator(lease.by, by));

/** Returns true if one more person, this one, may work on the item. */
export function isFreeFor(item: ItemRecord, queue: Queue, by: Annotator, now: number): boolean {
  if (answerOf(item, by) !== undefined) return false;
  const others = leasesOf(item, now).filter((lease) => !sameAnnotator(lease.by, by));
  return answered(item) + others.length < queue.people_per_item;
}

/** Returns the item leased to the person; null where it is not free. */
export function leased(item: ItemRecord, queue: Queue, by: Annotator, now: number): ItemRecord | null {
  if (!isFreeFor(item, queue, by, now)) return null;
  const others = leasesOf(item, now).filter((lease) => !sameAnnotator(lease.by, by));
  return { ...item, leases: [...others, { by, until_ms: now + LEASE_MS }] };
}

/** Returns the traces of an item in the order in which the person sees them. */
export function tracesFor(item: ItemRecord, by: Annotator): ItemRecord['traces'] {
  return item.traces.length === 2 && isSwapped(item.item_id, by) ? item.traces.toReversed() : item.traces;
}

/** Returns the item as the person who works on it sees it. */
export function leasedItemOf(item: ItemRecord, queue: Queue, by: Annotator, now: number): LeasedItem {
  const until = leaseOf(item, by, now)?.until_ms;
  return {
    item_id: item.item_id,
    queue_id: item.queue_id,
    trace_ids: tracesFor(item, by).map(({ trace_id }) => trace_id),
    state: isDone(item, queue) ? 'done' : 'open',
    leased_until: until === undefined ? null : new Date(until).toISOString(),
    said: answerOf(item, by)?.said ?? null,
  };
}

/** Returns the digest by which a repeated answer is recognized. */
export function digestOf({ scores, comment, skip }: AnswerBody): string {
  const sorted = Object.entries(scores).sort(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([sorted, comment, skip]), 'hex');
}

/**
 * Checks the values of an answer against the scores of its queue.
 * @throws ApiError invalid_request naming the score
 */
export function checkScores(queue: Queue, { scores, skip, comment }: AnswerBody): void {
  if (skip) return;
  const known = new Map(queue.scores.map((spec) => [spec.name, spec]));
  for (const [name, value] of Object.entries(scores)) {
    const spec = known.get(name);
    if (spec === undefined)
      throw invalid(name, `is not a score of this queue, which has ${[...known.keys()].join(', ')}`);
    const accepted = acceptedOf(spec, value);
    if (accepted !== null) throw invalid(name, accepted);
  }
  for (const { name, required } of queue.scores)
    if (required && scores[name] === undefined) throw invalid(name, 'is missing');
  if (Object.keys(scores).length === 0)
    throw new ApiError(
      'invalid_request',
      comment === '' ? 'scores: must have a value, or skip must be true' : 'comment: needs a score that it belongs to',
    );
}

const invalid = (name: string, said: string) => new ApiError('invalid_request', `scores.${name}: ${said}`);

/** Returns which values the score accepts; null when this is one of them. */
function acceptedOf(spec: AnnotationScore, value: string | number | boolean): string | null {
  switch (spec.type) {
    case 'boolean':
      return typeof value === 'boolean' ? null : 'must be true or false';
    case 'categorical':
      return spec.options.some((option) => option === value) ? null : `must be one of ${spec.options.join(', ')}`;
    case 'preference':
      return value === 'left' || value === 'right' || value === 'equal' ? null : 'must be left, right or equal';
    case 'numeric': {
      const { min, max } = spec.range;
      const fits = typeof value === 'number' && value >= min && value <= max;
      return fits ? null : `must be a number between ${min} and ${max}`;
    }
  }
}

export interface Answering {
  by: Annotator;
  body: AnswerBody;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Returns the item with this answer in place of the person's earlier one, and without their lease. */
export function withAnswer(item: ItemRecord, queue: Queue, { by, body, now }: Answering): ItemRecord {
  const before = withoutAnswer(item, by);
  const round = item.round + 1;
  const scores = body.skip ? [] : scoresOf({ ...item, round }, queue, { by, body, now });
  const answer: AnswerRecord = {
    by,
    at_ms: now,
    said: body.skip ? 'skip' : 'scores',
    digest: digestOf(body),
    scores: scores.map(({ score_id, trace_id }) => ({ score_id, trace_id })),
  };
  return {
    ...before,
    round,
    leases: item.leases.filter((lease) => !sameAnnotator(lease.by, by) && lease.until_ms > now),
    answers: [...before.answers, answer],
    outbox: [...before.outbox, ...scores],
  };
}

/** Returns the item without the person's answer; its scores are to be deleted. */
export function withoutAnswer(item: ItemRecord, by: Annotator): ItemRecord {
  const mine = answerOf(item, by);
  if (mine === undefined) return item;
  const deletions = mine.scores.map(({ score_id, trace_id }) =>
    scoreDeletion(
      {
        score_id,
        org_id: item.org_id,
        trace_id,
        trace_started_at: item.traces.find((trace) => trace.trace_id === trace_id)?.started_ms ?? mine.at_ms,
        created_at: mine.at_ms,
      },
      { author_type: by.type, author_id: by.id },
    ),
  );
  return {
    ...item,
    answers: item.answers.filter((answer) => answer !== mine),
    outbox: [...item.outbox, ...deletions],
  };
}

function scoresOf(item: ItemRecord, queue: Queue, { by, body, now }: Answering): UserScore[] {
  const seen = tracesFor(item, by);
  const scores: UserScore[] = [];
  for (const { name, type } of queue.scores) {
    const value = body.scores[name];
    if (value === undefined) continue;
    seen.forEach(({ trace_id, started_ms }, side) => {
      scores.push({
        score_id: annotationScoreId(item, trace_id, name),
        org_id: item.org_id,
        trace_id,
        span_id: '',
        trace_started_at: started_ms,
        name,
        ...scoreColumns(type === 'preference' ? outcomeOf(value, side) : value),
        comment: scores.length === 0 ? body.comment : '',
        author_type: by.type,
        author_id: by.id,
        created_at: now,
      });
    });
  }
  return scores;
}

/** Returns what a preference says of one side: 0 is the left trace, 1 the right one. */
function outcomeOf(value: string | number | boolean, side: number): string {
  if (value === 'equal') return 'tie';
  return (value === 'left') === (side === 0) ? 'win' : 'loss';
}
