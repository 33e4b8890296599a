// Shows one session or one end user: the totals of their traces, and one page of turns.
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import { ApiError } from '../../http/errors.ts';
import { type CursorMeta, cursorPage } from '../../http/list_pages.ts';
import { type Turn, turnCursorOf, turnPlaceOf, type TurnsQuery, type UserDay, type UserQuery } from './schema.ts';
import { type SessionsDeps, type Sums, sumsOf } from './sessions.ts';
import { readGroups, readSessionCount, readTurns, readUserDays, type Subject } from './store.ts';
import { turnsOf } from './turns.ts';

interface Shown<Data> {
  data: Data;
  meta: CursorMeta;
}

/** @throws ApiError not_found; invalid_request for a cursor that this route did not return */
export async function showSession(
  deps: SessionsDeps,
  subject: { org_id: string; session_id: string },
  query: TurnsQuery,
  signal: AbortSignal,
): Promise<Shown<Sums & { session_id: string; turns: Turn[] }>> {
  const { session_id } = subject;
  const { sums, turns, meta } = await readSubject(deps, subject, query, signal);
  if (sums === null) throw new ApiError('not_found', `There is no session ${session_id}.`);
  return { data: { session_id, ...sums, turns }, meta };
}

/** @throws ApiError not_found; invalid_request for a cursor that this route did not return */
export async function showEndUser(
  deps: SessionsDeps,
  subject: { org_id: string; user_id: string },
  query: UserQuery,
  signal: AbortSignal,
): Promise<Shown<Sums & { user_id: string; sessions: number; by_day: UserDay[]; turns: Turn[] }>> {
  const { user_id } = subject;
  const [{ sums, turns, meta }, by_day, [counted]] = await Promise.all([
    readSubject(deps, subject, query, signal),
    readDays(deps, subject, query.days, signal),
    readSessionCount(deps.clickhouse, subject, { signal }),
  ]);
  if (sums === null) throw new ApiError('not_found', `There is no end user ${user_id}.`);
  return { data: { user_id, ...sums, sessions: counted?.sessions ?? 0, by_day, turns }, meta };
}

/** Reads the totals, null if there is no trace, and one page of turns. */
async function readSubject(
  { clickhouse }: SessionsDeps,
  subject: Subject,
  query: TurnsQuery,
  signal: AbortSignal,
): Promise<{ sums: Sums | null; turns: Turn[]; meta: CursorMeta }> {
  const place = query.cursor === undefined ? null : turnPlaceOf(query.cursor);
  const from = place === null ? { skip: query.offset } : { skip: 0, from_ms: place.ms, from_key: place.key };
  const by = subject.session_id === undefined ? { by_user: true as const } : { by_session: true as const };
  const [[group], rows] = await Promise.all([
    readGroups(clickhouse, { ...subject, ...by, filtered: true, skip: 0, rows: 1 }, { signal }),
    readTurns(clickhouse, { ...subject, ...from, rows: query.limit + 1 }, { signal }),
  ]);
  const page = cursorPage(rows, {
    limit: query.limit,
    total: group?.traces ?? 0,
    before: place?.before ?? query.offset,
    byCursor: place !== null,
    cursorAfter: (last, before) => turnCursorOf({ ms: last.started_ms, key: last.key, before }),
  });
  const turns = await turnsOf(clickhouse, subject.org_id, page.data, signal);
  return { sums: group === undefined ? null : sumsOf(group), turns, meta: page.meta };
}

/** Returns every one of the last days; a day without traces counts 0. */
async function readDays(
  { clickhouse, now }: SessionsDeps,
  subject: Subject,
  days: number,
  signal: AbortSignal,
): Promise<UserDay[]> {
  const until = dayOf(now()) + 1;
  const from = until - days;
  const rows = await readUserDays(clickhouse, { ...subject, from, until }, { signal });
  const byDay = new Map(rows.map((row) => [row.on_day, row]));
  return Array.from({ length: days }, (_, index) => {
    const row = byDay.get(from + index);
    return {
      date: dateOf(from + index),
      traces: row?.traces ?? 0,
      failed_traces: row?.failed_traces ?? 0,
      sessions: row?.sessions ?? 0,
      cost_usd: picoToUsd(usdToPico(row?.cost ?? '0')),
      input_tokens: row?.input_tokens ?? 0,
      output_tokens: row?.output_tokens ?? 0,
    };
  });
}
