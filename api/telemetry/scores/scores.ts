// Stores scores that people and applications give to traces and spans. A score that was
// answered 201 is stored in the log, even if this process dies, and can be read a moment later.
import { randomUUID } from 'node:crypto';
import type { UserScore } from '../../../schemas/codec.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { ApiError, type ErrorCode } from '../../http/errors.ts';
import { awaitLanding, TRACE_NOT_YET } from '../../http/landed.ts';
import { scoreColumns, scoreValueOf } from '../../http/score_values.ts';
import type { ScoreItem } from '../../http/trace_items.ts';
import type { GivenScore, ScoreBody } from './schema.ts';
import { readScores, readSpan, type ScoreRow } from './store.ts';

/** The time range of a trace, milliseconds since the epoch. */
export interface TracePlace {
  from_ms: number;
  to_ms: number;
}

export interface ScoresDeps {
  clickhouse: ClickHouse;
  /** @throws ApiError trace_not_found, cross_org_access */
  locate: (org_id: string, trace_id: string, signal: AbortSignal) => Promise<TracePlace>;
  /** Resolves when the score is stored in the log. */
  queue: (score: UserScore) => Promise<void>;
  /**
   * Resolves when a score whose trace has not arrived is stored in the log.
   * @throws ApiError rate_limited when the organization has as many waiting as it may
   */
  queuePending: (score: UserScore) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Errors for a trace, or a span of it, that may still be landing. */
const NOT_YET: readonly ErrorCode[] = [...TRACE_NOT_YET, 'invalid_request'];

/**
 * Stores a score. A trace or span that is not found may still be landing, so the lookup is repeated
 * for a short while. A score of a trace that has not arrived then waits for it.
 *
 * @throws ApiError cross_org_access, invalid_request for a span that the trace does not have,
 * rate_limited when too many scores wait, upstream_unavailable
 */
export async function giveScore(
  deps: ScoresDeps,
  org_id: string,
  body: ScoreBody,
  author: { type: 'user' | 'api_key'; id: string },
  signal: AbortSignal,
): Promise<GivenScore> {
  const place = await awaitLanding(() => findScored(deps, org_id, body, signal), NOT_YET, signal).catch(
    (error: unknown) => {
      if (error instanceof ApiError && error.code === 'trace_not_found') return null;
      throw error;
    },
  );
  const { data_type, number, text } = scoreColumns(body.value);
  const score: UserScore = {
    score_id: `score_${randomUUID().replaceAll('-', '')}`,
    org_id,
    trace_id: body.trace_id,
    span_id: body.span_id ?? '',
    trace_started_at: place?.from_ms ?? 0,
    name: body.name,
    data_type,
    number,
    text,
    comment: body.comment ?? '',
    author_type: author.type,
    author_id: author.id,
    created_at: deps.now(),
  };
  try {
    await (place === null ? deps.queuePending(score) : deps.queue(score));
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw new ApiError('upstream_unavailable', 'The score could not be stored. Send it again.', { cause });
  }
  return {
    score_id: score.score_id,
    trace_id: score.trace_id,
    span_id: body.span_id ?? null,
    name: score.name,
    value: body.value,
    data_type,
    comment: score.comment === '' ? null : score.comment,
    source: 'user',
    author,
    verdict: null,
    judge_version: null,
    eval_id: null,
    created_at: new Date(score.created_at).toISOString(),
    ...(place === null ? { pending: true as const } : {}),
  };
}

/** Returns the newest scores of a trace that is known to exist, at most `rows`. */
export async function newestScores(
  clickhouse: ClickHouse,
  { org_id, trace_id, rows }: { org_id: string; trace_id: string; rows: number },
  signal: AbortSignal,
): Promise<ScoreItem[]> {
  const found = await readScores(clickhouse, { org_id, trace_id, rows }, { signal });
  return found.map((row) => itemOf(row, trace_id));
}

/** Returns the score as responses show it. */
export function itemOf(row: ScoreRow, trace_id: string): ScoreItem {
  return {
    score_id: row.score_id === '' ? null : row.score_id,
    trace_id,
    span_id: row.span_id === '' ? null : row.span_id,
    name: row.name,
    value: scoreValueOf(row),
    data_type: row.data_type,
    comment: row.comment === '' ? null : row.comment,
    source: row.source,
    author: { type: row.author_type, id: row.author_id },
    verdict: row.verdict === '' ? null : (row.verdict as ScoreItem['verdict']),
    judge_version: row.source === 'judge' ? row.judge_version : null,
    eval_id: row.eval_id === '' ? null : row.eval_id,
    created_at: new Date(row.created_ms).toISOString(),
  };
}

async function findScored(
  deps: ScoresDeps,
  org_id: string,
  { trace_id, span_id }: ScoreBody,
  signal: AbortSignal,
): Promise<TracePlace> {
  const place = await deps.locate(org_id, trace_id, signal);
  if (typeof span_id !== 'string') return place;
  const found = await readSpan(
    deps.clickhouse,
    { org_id, trace_id, span_id, from_ms: place.from_ms, to_ms: place.to_ms },
    { signal },
  );
  if (found.length === 0) throw new ApiError('invalid_request', 'span_id: the trace has no span with this id');
  return place;
}
