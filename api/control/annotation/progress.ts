// How far a queue is, what was said in it, and how far the people agree.
import { agreementOf, type Rating } from '../../../pipeline/domain/annotation/agreement.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { Annotator, ItemRecord, QueueRecord } from '../../../schemas/records/annotation.ts';
import { pageMetaOf, type PageMeta } from '../../http/pagination.ts';
import { scoreValueOf } from '../../http/score_values.ts';
import { isDone, leasesOf } from './items.ts';
import { countsOf, getQueue, type QueuesDeps } from './queues.ts';
import { type QueueScore, scoresOfItems } from './read.ts';
import type { AnsweredItem, ItemsQuery, ProgressData } from './schema.ts';

const HOUR_MS = 3_600_000;
const VALUES_MAX = 20;
const KAPPA_SOURCE =
  'Cohen, J. (1960): A coefficient of agreement for nominal scales. Educational and Psychological Measurement 20(1), 37-46. ' +
  'With more than two people, the mean over the pairs of people, weighted by the items that they share.';

export interface ProgressDeps extends QueuesDeps {
  clickhouse: ClickHouse;
}

type Stored = ReadonlyMap<string, QueueScore>;

/** Serves GET /v1/annotation-queues/{queue_id}/progress. @throws ApiError not_found */
export async function readProgress(
  deps: ProgressDeps,
  org_id: string,
  queue_id: string,
  signal: AbortSignal,
): Promise<ProgressData> {
  const queue = getQueue(deps, org_id, queue_id);
  const items = deps.annotations.items(org_id, queue_id);
  const stored = await scoresOfItems(deps.clickhouse, queue, items, false, signal);
  const now = deps.now();
  const people = peopleOf(items, now);
  return {
    ...countsOf(queue, items),
    leased: items.filter((item) => leasesOf(item, now).length > 0).length,
    pace_per_hour: people.reduce((sum, { pace_per_hour }) => sum + pace_per_hour, 0),
    people,
    scores: queue.scores.map(({ name }) => summaryOf(name, items, stored)),
    agreement_source: KAPPA_SOURCE,
  };
}

/** Serves GET /v1/annotation-queues/{queue_id}/items. @throws ApiError not_found */
export async function listItems(
  deps: ProgressDeps,
  org_id: string,
  queue_id: string,
  { state, limit, offset }: ItemsQuery,
  signal: AbortSignal,
): Promise<{ data: AnsweredItem[]; meta: PageMeta }> {
  const queue = getQueue(deps, org_id, queue_id);
  const now = deps.now();
  let items = deps.annotations.items(org_id, queue_id);
  if (state === 'done' || state === 'open') items = items.filter((item) => isDone(item, queue) === (state === 'done'));
  if (state === 'skipped') items = items.filter(({ answers }) => answers.some(({ said }) => said === 'skip'));
  if (state === 'disagreed') {
    const stored = await scoresOfItems(deps.clickhouse, queue, items, false, signal);
    items = items.filter((item) => disagreedOn(queue, item, stored).length > 0);
  }
  const page = items.slice(offset, offset + limit);
  const stored = await scoresOfItems(deps.clickhouse, queue, page, true, signal);
  return {
    data: page.map((item) => answeredItemOf(queue, item, stored, now)),
    meta: pageMetaOf(items.length, limit, offset),
  };
}

function answeredItemOf(queue: QueueRecord, item: ItemRecord, stored: Stored, now: number): AnsweredItem {
  return {
    item_id: item.item_id,
    queue_id: item.queue_id,
    trace_ids: item.traces.map(({ trace_id }) => trace_id),
    state: isDone(item, queue) ? 'done' : 'open',
    answers: item.answers.map(({ by, at_ms, said, scores }) => {
      const found = scores.flatMap(({ score_id }) => stored.get(score_id) ?? []);
      // Both traces of a pair have the score, so only that of the first trace is counted.
      const first = found.filter(({ trace_id }) => trace_id === item.traces[0]?.trace_id);
      const comment = found.find((score) => score.said !== '')?.said;
      return {
        by,
        at: new Date(at_ms).toISOString(),
        said,
        comment: comment ?? null,
        scores: Object.fromEntries(first.map((score) => [score.name, scoreValueOf(score)])),
      };
    }),
    leased_by: leasesOf(item, now).map(({ by }) => by),
    disagreed: disagreedOn(queue, item, stored),
  };
}

const personOf = ({ type, id }: Annotator): string => JSON.stringify([type, id]);
const textOf = (score: QueueScore): string => String(scoreValueOf(score));

/** Returns what each person said of an item under one name, of the first trace of a pair. */
function ratingsOf(name: string, item: ItemRecord, stored: Stored): Rating[] {
  return item.answers.flatMap(({ by, scores }) =>
    scores.flatMap(({ score_id, trace_id }) => {
      const score = stored.get(score_id);
      if (score?.name !== name || trace_id !== item.traces[0]?.trace_id) return [];
      return [{ item: item.item_id, person: personOf(by), value: textOf(score) }];
    }),
  );
}

const disagreedOn = ({ scores }: QueueRecord, item: ItemRecord, stored: Stored): string[] =>
  scores.map(({ name }) => name).filter((name) => agreementOf(ratingsOf(name, item, stored)).disagreed.length > 0);

function summaryOf(name: string, items: readonly ItemRecord[], stored: Stored): ProgressData['scores'][number] {
  const ratings = items.flatMap((item) => ratingsOf(name, item, stored));
  const counts = new Map<string, number>();
  for (const { value } of ratings) counts.set(value, (counts.get(value) ?? 0) + 1);
  const numbers = [...stored.values()].flatMap((score) =>
    score.name === name && score.data_type === 'numeric' && score.number !== null ? [score.number] : [],
  );
  const { disagreed, ...agreement } = agreementOf(ratings);
  return {
    name,
    given: ratings.length,
    mean: numbers.length === 0 ? null : numbers.reduce((sum, value) => sum + value, 0) / numbers.length,
    values: [...counts]
      .map(([value, count]) => ({ value, count }))
      .sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
      .slice(0, VALUES_MAX),
    agreement: { ...agreement, disagreed: disagreed.length },
  };
}

function peopleOf(items: readonly ItemRecord[], now: number): ProgressData['people'] {
  const people = new Map<string, ProgressData['people'][number] & { last_ms: number }>();
  for (const { answers } of items) {
    for (const { by, at_ms, said } of answers) {
      const one = people.get(personOf(by)) ?? {
        by,
        answered: 0,
        skipped: 0,
        pace_per_hour: 0,
        last_at: null,
        last_ms: 0,
      };
      if (said === 'scores') one.answered += 1;
      else one.skipped += 1;
      if (said === 'scores' && at_ms > now - HOUR_MS) one.pace_per_hour += 1;
      one.last_ms = Math.max(one.last_ms, at_ms);
      people.set(personOf(by), one);
    }
  }
  return [...people.values()]
    .sort((a, b) => b.answered - a.answered || b.last_ms - a.last_ms)
    .map(({ last_ms, ...one }) => ({ ...one, last_at: new Date(last_ms).toISOString() }));
}
