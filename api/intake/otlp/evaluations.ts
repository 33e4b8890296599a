// Evaluation results of the GenAI conventions (gen_ai.evaluation.result) as scores. A result is an
// event of the evaluated span, or a log record that names it. In: what the readers return. Out: the
// results, and scores for the queue of scores whose trace may not have arrived. A result without a
// name, or with neither a number nor a label, stays an event and becomes no score. Pure.
import type { UserScore } from '../../../schemas/codec.ts';
import { authorOf, type OrgCredential } from '../../http/credential.ts';
import { foreignValue, scoreName, userScoreOf } from '../compat/score.ts';
import type { ReadLog, ReadSpan } from './normal.ts';
import type { Fields } from './values.ts';

/** Maximum evaluation results of one export. */
export const EVALUATIONS_MAX = 5000;
const RESULT = 'gen_ai.evaluation.result';
const COMMENT_CHARS_MAX = 10_000;
/** Digits of nanoseconds below the millisecond. */
const NANO_DIGITS = 6;

/** A result in the record that it came with. */
export interface Evaluation {
  trace_id: string;
  /** Empty: the result is of the trace as a whole. */
  span_id: string;
  name: string;
  value: number | string;
  comment: string;
  /** Differs between the results of one record. */
  index: number;
  /** Milliseconds since the epoch. */
  at: number;
}

type Place = Pick<Evaluation, 'trace_id' | 'span_id'>;

/** Returns the results among the events of a span. */
export function evaluationsOfSpan({ trace_id, span_id, events }: ReadSpan): Evaluation[] {
  if (events.length === 0) return [];
  return events.flatMap(({ name, attributes, time_unix_nano }, index) =>
    name === RESULT ? resultOf(attributes, { trace_id, span_id }, index, millisOf(time_unix_nano)) : [],
  );
}

/** Returns the result that a log record is. @param trace_id trace of the record's event */
export function evaluationsOfLog(log: ReadLog, trace_id: string): Evaluation[] {
  const { event_name, attributes, span_id, time_unix_nano, observed_time_unix_nano } = log;
  if (event_name !== RESULT && attributes['event.name'] !== RESULT) return [];
  const nanos = time_unix_nano === '0' ? observed_time_unix_nano : time_unix_nano;
  return resultOf(attributes, { trace_id, span_id }, 0, millisOf(nanos));
}

/** Returns whole milliseconds of nanoseconds, which exceed what a number holds exactly. */
const millisOf = (nanos: string): number => Number(nanos.slice(0, -NANO_DIGITS));

function resultOf(attributes: Fields, place: Place, index: number, at: number): Evaluation[] {
  const name = scoreName.safeParse(attributes['gen_ai.evaluation.name']);
  const number = attributes['gen_ai.evaluation.score.value'];
  const label = foreignValue.safeParse(attributes['gen_ai.evaluation.score.label']).data;
  const value = typeof number === 'number' && Number.isFinite(number) ? number : label;
  if (!name.success || value === undefined || typeof value === 'boolean') return [];
  const said = [value === label ? undefined : label, attributes['gen_ai.evaluation.explanation']];
  const comment = said.filter((text) => typeof text === 'string' && text !== '').join(': ');
  return [{ ...place, name: name.data, value, comment: comment.slice(0, COMMENT_CHARS_MAX), index, at }];
}

/**
 * Returns the score of a result. Its id follows from the event, so a result that is sent again is
 * the same score.
 * @param now milliseconds since the epoch
 */
export function scoreOfEvaluation(
  { trace_id, span_id, name, value, comment, index, at }: Evaluation,
  { event_hex, credential, now }: { event_hex: string; credential: OrgCredential; now: number },
): UserScore {
  const score = userScoreOf({
    org_id: credential.org_id,
    key: `otel\n${trace_id}\n${event_hex}\n${index}`,
    trace_id,
    span_id,
    name,
    value,
    comment,
    author: authorOf(credential),
    given_at: at,
    now,
  });
  return { ...score, author_type: 'otel' };
}
