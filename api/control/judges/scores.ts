// Reads what judges said of live traffic: scores newest first, and counts by day and version.
import { dayOf, startOfDay } from '../../../pipeline/domain/time/days.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { countLiveScores, readLiveDays, readLiveJudges, readLiveScores } from '../../../sql/stores/live_scores.ts';
import { type CursorMeta, cursorPage } from '../../http/list_pages.ts';
import { getJudge, type JudgesDeps } from './judges.ts';
import {
  type JudgeStats,
  type JudgeSummary,
  type LiveScore,
  type LiveScoresQuery,
  scoreCursorOf,
  scorePlaceOf,
} from './score_schema.ts';

export interface JudgeScoresDeps extends JudgesDeps {
  clickhouse: ClickHouse;
}

interface Counts {
  total: number;
  passed: number;
  warned: number;
  failed: number;
  errors: number;
  mean_score: number | null;
}

const NOTHING: Counts = { total: 0, passed: 0, warned: 0, failed: 0, errors: 0, mean_score: null };

/** Serves GET /v1/judges/{judge_id}/scores. @throws ApiError judge_not_found, invalid_request */
export async function listLiveScores(
  deps: JudgeScoresDeps,
  org_id: string,
  judge_id: string,
  query: LiveScoresQuery,
  signal: AbortSignal,
): Promise<{ data: LiveScore[]; meta: CursorMeta }> {
  getJudge(deps, org_id, judge_id);
  const { limit, cursor, verdict, version } = query;
  const place = cursor === undefined ? null : scorePlaceOf(cursor);
  const asked = {
    org_id,
    judge_id,
    since_ms: since(deps, query.days),
    ...(verdict === undefined ? {} : { verdicts: verdict }),
    ...(version === undefined ? {} : { judge_version: version }),
  };
  const after =
    place === null
      ? {}
      : { after_ms: place.scored_ms, after_trace: place.trace_id, after_version: place.judge_version };
  const [[counted], rows] = await Promise.all([
    countLiveScores(deps.clickhouse, asked, { signal }),
    readLiveScores(
      deps.clickhouse,
      { ...asked, ...after, rows: limit + 1, skip: place === null ? query.offset : 0 },
      { signal },
    ),
  ]);
  const page = cursorPage(rows, {
    limit,
    total: counted?.total ?? 0,
    before: place?.before ?? query.offset,
    byCursor: place !== null,
    cursorAfter: ({ scored_ms, trace_id, judge_version }, before) =>
      scoreCursorOf({ scored_ms, trace_id, judge_version, before }),
  });
  return {
    data: page.data.map(({ scored_ms, ...row }) => ({ ...row, scored_at: new Date(scored_ms).toISOString() })),
    meta: page.meta,
  };
}

/** Serves GET /v1/judges/{judge_id}/stats. @throws ApiError judge_not_found */
export async function readJudgeStats(
  deps: JudgeScoresDeps,
  org_id: string,
  judge_id: string,
  days: number,
  signal: AbortSignal,
): Promise<JudgeStats> {
  getJudge(deps, org_id, judge_id);
  const rows = await readLiveDays(deps.clickhouse, { org_id, judge_id, since_ms: since(deps, days) }, { signal });
  const sum = rows.reduce(added, NOTHING);
  return { judge_id, days, ...rated(sum), by_day: rows.map((row) => ({ ...row, ...rated(row) })) };
}

/** Serves GET /v1/judges/stats: a row for each judge of the organization, oldest id first. */
export async function readAllStats(
  deps: JudgeScoresDeps,
  org_id: string,
  days: number,
  signal: AbortSignal,
): Promise<JudgeSummary[]> {
  const rows = await readLiveJudges(deps.clickhouse, { org_id, since_ms: since(deps, days) }, { signal });
  const byJudge = new Map(rows.map((row) => [row.judge_id, row]));
  return deps.judges.list(org_id).map(({ judge_id }) => {
    const row = byJudge.get(judge_id);
    const last = row?.last_breach_ms ?? null;
    return {
      judge_id,
      ...rated(row ?? NOTHING),
      last_breach_at: last === null ? null : new Date(last).toISOString(),
    };
  });
}

/** Returns the first instant of the days up to today, milliseconds since the epoch. */
const since = ({ now }: JudgesDeps, days: number): number => startOfDay(dayOf(now()) - days + 1);

function rated({ total, passed, warned, failed, errors, mean_score }: Counts) {
  const scored = passed + warned + failed;
  return {
    total,
    passed,
    warned,
    failed,
    errors,
    pass_rate: scored === 0 ? null : passed / scored,
    mean_score,
  };
}

/** Adds counts; the mean of both is weighted by their scores. */
function added(a: Counts, b: Counts): Counts {
  const [scoredA, scoredB] = [a.total - a.errors, b.total - b.errors];
  const sum = (a.mean_score ?? 0) * scoredA + (b.mean_score ?? 0) * scoredB;
  return {
    total: a.total + b.total,
    passed: a.passed + b.passed,
    warned: a.warned + b.warned,
    failed: a.failed + b.failed,
    errors: a.errors + b.errors,
    mean_score: scoredA + scoredB === 0 ? null : sum / (scoredA + scoredB),
  };
}
