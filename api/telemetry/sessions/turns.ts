// Reads the turns of a session or of an end user: one page of traces, oldest first, each with the
// text of the user, the answer and the scores. Texts are looked for in a bounded number of spans of
// each trace, and cut by the store, so a page is small however long its prompts are.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { storeTime } from '../../../sql/client/store_time.ts';
import { type Turn, TURN_CHARS_MAX, type TurnScore } from './schema.ts';
import { readTurnScores, readTurnSpans, readTurnTexts, type TurnRow, type TurnScoreRow } from './store.ts';

/** Spans of a trace in which the text of the user is looked for, and as many for the answer. */
const SPANS_MAX = 3;
/** Scores of a turn by people and applications, and as many by judges. */
const SCORES_MAX = 20;

interface Texts {
  user_text: Turn['user_text'];
  answer: Turn['answer'];
}
/** Position of a span in the log. */
type Place = readonly [seq: number, index: number, sub: number];

/** Returns the turns of these traces, in their order. */
export async function turnsOf(
  clickhouse: ClickHouse,
  org_id: string,
  rows: readonly TurnRow[],
  signal: AbortSignal,
): Promise<Turn[]> {
  if (rows.length === 0) return [];
  const stretch = {
    org_id,
    trace_keys: rows.map(({ key }) => key),
    from_ms: Math.min(...rows.map(({ started_ms }) => started_ms)),
    to_ms: Math.max(...rows.map(({ ended_ms }) => ended_ms)),
  };
  const [texts, scores] = await Promise.all([
    readTexts(clickhouse, stretch, signal),
    readTurnScores(clickhouse, { ...stretch, scores_max: SCORES_MAX }, { signal }),
  ]);
  const scoresOf = Map.groupBy(scores, ({ trace_id }) => trace_id);
  return rows.map((row) => ({
    trace_id: row.trace_id,
    root_span_name: orNull(row.root_name),
    agent_id: orNull(row.agent),
    session_id: orNull(row.session),
    user_id: orNull(row.user),
    outcome: row.result,
    started_at: new Date(row.started_ms).toISOString(),
    ended_at: new Date(row.ended_ms).toISOString(),
    duration_ms: Math.max(0, row.ended_ms - row.started_ms),
    span_count: row.span_count,
    input_tokens: row.tokens_in,
    output_tokens: row.tokens_out,
    cost_usd: row.usd,
    ...(texts.get(row.trace_id) ?? { user_text: null, answer: null }),
    scores: (scoresOf.get(row.trace_id) ?? []).toSorted(judgesLast).map(scoreOf),
  }));
}

const orNull = (text: string): string | null => (text === '' ? null : text);

async function readTexts(
  clickhouse: ClickHouse,
  stretch: { org_id: string; trace_keys: string[]; from_ms: number; to_ms: number },
  signal: AbortSignal,
): Promise<Map<string, Texts>> {
  const traces = await readTurnSpans(clickhouse, { ...stretch, spans_max: SPANS_MAX }, { signal });
  const asked = traces.flatMap((trace) => trace.asked.map(([, , ...span]) => span));
  const answered = traces.flatMap((trace) => trace.answered.map(([, , , ...span]) => span));
  if (asked.length === 0) return new Map();
  const found = await readTurnTexts(
    clickhouse,
    {
      org_id: stretch.org_id,
      chars_max: TURN_CHARS_MAX + 1,
      asked_times: asked.map(([at]) => storeTime(at)),
      asked_seqs: asked.map(([, seq]) => String(seq)),
      asked_indexes: asked.map(([, , index]) => index),
      asked_subs: asked.map(([, , , sub]) => sub),
      answered_times: answered.map(([at]) => storeTime(at)),
      answered_seqs: answered.map(([, seq]) => String(seq)),
      answered_indexes: answered.map(([, , index]) => index),
      answered_subs: answered.map(([, , , sub]) => sub),
    },
    { signal },
  );
  const texts = new Map(
    found.map(({ part, log_seq, log_index, log_sub, text }) => [keyOf(part, [log_seq, log_index, log_sub]), text]),
  );
  const first = (part: 'asked' | 'answered', places: readonly Place[]): string =>
    places.map((place) => texts.get(keyOf(part, place)) ?? '').find((text) => text !== '') ?? '';
  return new Map(
    traces.map((trace) => [
      trace.trace_id,
      {
        user_text: shown(
          first(
            'asked',
            trace.asked.map(([, , , ...place]) => place),
          ),
        ),
        answer: shown(
          first(
            'answered',
            trace.answered.map(([, , , , ...place]) => place),
          ),
        ),
      },
    ]),
  );
}

const keyOf = (part: 'asked' | 'answered', place: Place): string => `${part} ${place.join(' ')}`;

/** Returns a text as a turn shows it. The store counts characters as code points. */
function shown(text: string): Turn['answer'] {
  if (text === '') return null;
  if (text.length <= TURN_CHARS_MAX) return { text, truncated: false };
  const points = Array.from(text);
  const truncated = points.length > TURN_CHARS_MAX;
  return { text: truncated ? points.slice(0, TURN_CHARS_MAX).join('') : text, truncated };
}

function scoreOf({ name, source, data_type, number, text, verdict }: TurnScoreRow): TurnScore {
  const value = data_type === 'categorical' ? text : data_type === 'boolean' ? number === 1 : number;
  return { name, source, value, verdict: verdict === '' ? null : (verdict as TurnScore['verdict']) };
}

/** User and application scores first: a union has no order of its own. */
const judgesLast = (a: TurnScoreRow, b: TurnScoreRow): number =>
  Number(a.source === 'judge') - Number(b.source === 'judge');
