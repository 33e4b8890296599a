// Runs of LangSmith, one a line, as its API returns them. The service's LangSmith endpoint reads them
// with their own ids.
import { type Fields, isFields, LANGSMITH, nanosOf, NotImported, type Piece } from './piece.ts';

/** The service takes no older events. */
const DAYS_MAX = 400;
const DAY_NANOS = 86_400_000_000_000n;

export const isLangsmith = (line: Fields): boolean => typeof line['run_type'] === 'string';

/** @throws NotImported */
export function langsmithPieces(line: Fields, text: string, now = Date.now()): Piece[] {
  if (typeof line['id'] !== 'string') throw new NotImported('id must be a text');
  const start = nanosOf(line['start_time']);
  if (start === null) throw new NotImported('start_time must be a time in ISO 8601');
  if (start < BigInt(now) * 1_000_000n - BigInt(DAYS_MAX) * DAY_NANOS)
    throw new NotImported(`began more than ${DAYS_MAX} days ago`);
  const more = { ...endOf(line), ...usageOf(line) };
  const whole = Object.keys(more).length === 0 ? text : JSON.stringify({ ...line, ...more });
  return [{ target: LANGSMITH, text: whole, records: 1 }];
}

/** A run that never ended is imported as it is: no end will come. */
const endOf = (line: Fields): Fields => (nanosOf(line['end_time']) === null ? { end_time: line['start_time'] } : {});

/** Exports have the tokens beside the outputs; clients send them in the metadata. */
function usageOf(line: Fields): Fields {
  const [input_tokens, output_tokens] = [line['prompt_tokens'], line['completion_tokens']];
  if (line['run_type'] !== 'llm' || typeof input_tokens !== 'number' || typeof output_tokens !== 'number') return {};
  const extra = isFields(line['extra']) ? line['extra'] : {};
  const metadata = isFields(extra['metadata']) ? extra['metadata'] : {};
  const outputs = isFields(line['outputs']) ? line['outputs'] : {};
  if ('usage_metadata' in metadata || 'usage_metadata' in outputs) return {};
  const usage_metadata = { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
  return { extra: { ...extra, metadata: { ...metadata, usage_metadata } } };
}
