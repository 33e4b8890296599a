// The answer that was judged: the response of a trace's root, or else of its last model call that has
// one, as judges read it.
import { useQuery } from '@tanstack/react-query';
import { queryClient } from '../../client/query_client.ts';
import { outlineQuery, spanQuery } from '../trace/trace_api.ts';

/** Model calls whose texts are read for the answer. */
const CALLS_MAX = 3;

interface Texts {
  prompt: string;
  response: string;
  /** Why the texts are not there; `here` where they are. */
  text_state: string;
}

async function readTexts(org_id: string, trace_id: string): Promise<Texts> {
  const { data } = await queryClient.query(outlineQuery(org_id, trace_id));
  const { span_id, kind, parent } = data.spans;
  const root = parent.indexOf(-1);
  const calls = kind
    .flatMap((one, at) => (one === 'llm' && at !== root ? [at] : []))
    .slice(-CALLS_MAX)
    .toReversed();
  const found: Texts = { prompt: '', response: '', text_state: 'none' };
  for (const at of [root, ...calls]) {
    const id = span_id[at];
    if (id === undefined) continue;
    const { data: span } = await queryClient.query(spanQuery(org_id, trace_id, id));
    found.text_state = span.text_state;
    if (found.prompt === '') found.prompt = span.prompt ?? '';
    if (found.response === '') found.response = span.response ?? '';
    if (found.response !== '') break;
  }
  return found;
}

/** Returns the texts of the trace that was judged; null for an item without a trace. */
export function useTexts(org_id: string, trace_id: string | null) {
  return useQuery({
    queryKey: [org_id, 'judged texts', trace_id],
    queryFn: () => readTexts(org_id, trace_id ?? ''),
    enabled: trace_id !== null,
    staleTime: 300_000,
  });
}
