// Reads the scores of an eval as they stream: one JSON object a line. Bounded: the first LINES_MAX
// scores are kept, and the request ends there.
import { errorOfAnswer, errorOfThrown } from '../../client/error.ts';

export const LINES_MAX = 20_000;
/** A line longer than this is no score: reasons have at most 2,000 characters. */
const LINE_CHARS_MAX = 65_536;

export interface ScoreLine {
  trace_id: string;
  judge_version: number;
  score: number | null;
  verdict: 'pass' | 'warn' | 'fail' | 'error';
  reason: string;
  item_index?: number;
}

/**
 * Reads the scores and hands them on in the order of the stream.
 * @param query query string of the request, without the question mark
 * @param onLines called with each batch
 * @returns true if more scores follow than LINES_MAX
 * @throws RequestError
 */
export async function readScores(
  org_id: string,
  { eval_id, query }: { eval_id: string; query: string },
  onLines: (lines: ScoreLine[]) => void,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const answer = await fetch(`/v1/evals/${encodeURIComponent(eval_id)}/scores${query === '' ? '' : `?${query}`}`, {
      headers: { 'X-Org-Id': org_id, Accept: 'application/x-ndjson, application/json' },
      signal,
    });
    if (!answer.ok) throw errorOfAnswer(answer.status, await answer.json().catch(() => null), answer.headers);
    let read = 0;
    for await (const lines of linesOf(answer)) {
      const kept = lines.slice(0, LINES_MAX - read);
      read += kept.length;
      if (kept.length > 0) onLines(kept);
      // Leaving the loop ends the request.
      if (lines.length > kept.length) return true;
    }
    return false;
  } catch (thrown) {
    throw errorOfThrown(thrown);
  }
}

async function* linesOf({ body }: Response): AsyncGenerator<ScoreLine[]> {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const texts = (rest + part.value).split('\n');
      rest = texts.pop() ?? '';
      if (rest.length > LINE_CHARS_MAX) throw new Error('The stream of scores has a line that is too long.');
      yield texts.filter((text) => text !== '').map((text) => JSON.parse(text) as ScoreLine);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
