// Texts, models and verdicts of traces, for the rows that are on the screen.
import { type Answer, get } from '../client/api.ts';
import type { Verdict } from './marks.tsx';
import { previewRequests } from './preview_requests.ts';

export interface Preview {
  first_text: string | null;
  answer: string | null;
  /** The first error, with the name of its span. */
  first_error: string | null;
  models: readonly string[];
  verdicts: readonly { judge: string; verdict: Verdict }[];
}

type Answered = Answer<'/v1/traces/previews'>['data'][number];

const VERDICTS: readonly Verdict[] = ['pass', 'warn', 'fail', 'error'];

/** Returns the previews of traces by id; a trace without one is left out. */
export async function fetchPreviews(
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Preview>> {
  const previews = new Map<string, Preview>();
  for (const ids of previewRequests(trace_ids)) {
    const query = { trace_ids: ids };
    const { data } = await get(org_id, '/v1/traces/previews', { query }, { signal });
    for (const answered of data) previews.set(answered.trace_id, previewOf(answered));
  }
  return previews;
}

function previewOf({ user_text, answer, error, models, verdicts }: Answered): Preview {
  return {
    first_text: user_text ?? null,
    answer: answer ?? null,
    first_error: error == null ? null : [error.name, error.message].filter((part) => part !== null).join(': '),
    models: models ?? [],
    verdicts: (verdicts ?? []).map(({ name, verdict }) => ({
      judge: name,
      verdict: VERDICTS.find((known) => known === verdict) ?? 'error',
    })),
  };
}
