// What follows a change of scores: they are stored a moment after the API accepted them, so the shown
// span is read again until it shows the change, then the outline.
import type { QueryClient, QueryFilters } from '@tanstack/react-query';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { toast } from '../../ui/toast.tsx';
import type { Score, SpanDetail } from './trace_api.ts';

/** Pauses before the reads, milliseconds. */
const READ_AFTER_MS = [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000];

/** Reads the shown span again until its scores are as they should be, then the outline. */
export async function readUntil(
  queries: QueryClient,
  org_id: string,
  isShown: (scores: readonly Score[]) => boolean,
): Promise<void> {
  const shown: QueryFilters = { queryKey: [org_id, '/v1/traces/{trace_id}/spans/{span_id}'], type: 'active' };
  // Spans that are not on the screen are read when they are selected.
  void queries.invalidateQueries({ ...shown, type: 'inactive', refetchType: 'none' });
  for (const pause of READ_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    await queries.invalidateQueries(shown);
    const scores = queries
      .getQueriesData<{ data: SpanDetail }>(shown)
      .flatMap(([, answer]) => answer?.data.scores ?? []);
    if (isShown(scores)) break;
  }
  await queries.invalidateQueries({ queryKey: [org_id, '/v1/traces/{trace_id}/outline'] });
}

/** Deletes a score and shows the span without it. */
export async function takeBack(queries: QueryClient, org_id: string, score_id: string): Promise<void> {
  try {
    await send(org_id, 'delete', '/v1/scores/{score_id}', { params: { path: { score_id } } });
  } catch (error) {
    toast({ tone: 'error', text: error instanceof RequestError ? error.detail : 'The score could not be taken back.' });
    return;
  }
  toast({ text: 'The score was taken back. It disappears in a moment.' });
  await readUntil(queries, org_id, (scores) => scores.every((score) => score.score_id !== score_id));
}
