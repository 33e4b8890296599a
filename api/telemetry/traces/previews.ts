// Previews of traces for the visible rows of a list: takes trace ids, returns the beginnings of the
// first message of the user and of the last answer, the first error, the models and the verdicts.
// Texts are cut in the store, so what is read stays small whatever the prompts are.
import { messagesIn } from '../../../pipeline/domain/conversation/messages.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { type Preview, PREVIEW_CHARS, type PreviewsQuery } from './preview_schema.ts';
import {
  readPreviewSpans,
  readPreviewTexts,
  readPreviewTraces,
  readPreviewVerdicts,
  type SpanPlace,
} from './preview_store.ts';

/** Characters of a text that are read, so that PREVIEW_CHARS remain without repeated spaces. */
const READ_CHARS = 2000;
/** A longer prompt is read in part. */
const PROMPT_BYTES_MAX = 64 * 1024;

type Texts = ReadonlyMap<string, { asked: string; answer: string }>;

/**
 * Serves GET /v1/traces/previews.
 * @returns the traces that the organization has, in the order of the ids
 */
export async function previewTraces(
  clickhouse: ClickHouse,
  org_id: string,
  { trace_ids, fields }: PreviewsQuery,
  signal: AbortSignal,
): Promise<Preview[]> {
  const ids = [...new Set(trace_ids)];
  const traces = await readPreviewTraces(clickhouse, { org_id, trace_ids: ids }, { signal });
  if (traces.length === 0) return [];
  const has = (field: PreviewsQuery['fields'][number]): boolean => fields.includes(field);
  const known = traces.map(({ trace_id }) => trace_id);
  const ranges = traces.map(({ from_ms, to_ms }) => ({ from_ms, to_ms }));
  const [spans, verdicts] = await Promise.all([
    fields.some((field) => field !== 'verdicts')
      ? readPreviewSpans(clickhouse, { org_id, trace_ids: known, ranges, chars: READ_CHARS }, { signal })
      : [],
    has('verdicts')
      ? readPreviewVerdicts(
          clickhouse,
          { org_id, trace_ids: known, since_ms: Math.min(...ranges.map(({ from_ms }) => from_ms)) },
          { signal },
        )
      : [],
  ]);
  const places = spans.flatMap(({ first_call, last_call, failed, failed_message }) => [
    ...(has('user_text') ? [first_call] : []),
    ...(has('answer') ? [last_call] : []),
    ...(has('error') && failed_message === '' ? [failed] : []),
  ]);
  const texts = await textsAt(clickhouse, org_id, places, signal);
  const spansOf = new Map(spans.map((row) => [row.trace_id, row]));
  const verdictsOf = Map.groupBy(verdicts, ({ trace_id }) => trace_id);
  const isKnown = new Set(known);
  return ids
    .filter((id) => isKnown.has(id))
    .map((trace_id): Preview => {
      const row = spansOf.get(trace_id);
      const textOf = (place: SpanPlace | undefined) => (place === undefined ? undefined : texts.get(keyOf(place)));
      const failed =
        row === undefined || row.failed[1] === '0'
          ? null
          : {
              name: row.failed_name,
              message: shown(row.failed_message === '' ? textOf(row.failed)?.answer : row.failed_message),
            };
      return {
        trace_id,
        ...(has('user_text') ? { user_text: shown(userTextIn(textOf(row?.first_call)?.asked ?? '')) } : {}),
        ...(has('answer') ? { answer: shown(textOf(row?.last_call)?.answer) } : {}),
        ...(has('error') ? { error: failed } : {}),
        ...(has('models') ? { models: row?.models ?? [] } : {}),
        ...(has('verdicts')
          ? {
              verdicts: (verdictsOf.get(trace_id) ?? []).map(({ judge_id, name, verdict, score }) => ({
                judge_id,
                name,
                verdict,
                score,
              })),
            }
          : {}),
      };
    });
}

const keyOf = ([, seq, index, sub]: SpanPlace): string => `${seq} ${index} ${sub}`;

async function textsAt(
  clickhouse: ClickHouse,
  org_id: string,
  places: readonly SpanPlace[],
  signal: AbortSignal,
): Promise<Texts> {
  const found = places.filter(([, seq]) => seq !== '0');
  if (found.length === 0) return new Map();
  const rows = await readPreviewTexts(
    clickhouse,
    {
      org_id,
      times: [...new Set(found.map(([ms]) => new Date(ms).toISOString().replace('T', ' ').replace('Z', '')))],
      seqs: found.map(([, seq]) => seq),
      indexes: found.map(([, , index]) => index),
      subs: found.map(([, , , sub]) => sub),
      chars: READ_CHARS,
      whole_bytes: PROMPT_BYTES_MAX,
    },
    { signal },
  );
  return new Map(rows.map((row) => [`${row.seq} ${row.log_index} ${row.log_sub}`, row]));
}

const userTextIn = (prompt: string): string =>
  messagesIn(prompt).find(({ role, text }) => role === 'user' && text !== '')?.text ?? '';

/** Returns the beginning of a text on one line; null for an empty one. */
function shown(text: string | undefined): string | null {
  const line = (text ?? '').slice(0, READ_CHARS).replaceAll(/\s+/g, ' ').trim();
  return line === '' ? null : Array.from(line).slice(0, PREVIEW_CHARS).join('').toWellFormed();
}
