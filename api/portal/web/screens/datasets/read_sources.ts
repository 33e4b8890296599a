// Reads the texts from which items are made: of a span, or of whole traces, two in one request.
import type { QueryClient } from '@tanstack/react-query';
import { send } from '../../client/api.ts';
import { isAbort, RequestError } from '../../client/error.ts';
import { spanQuery, textQuery, type TextSide } from '../trace/trace_api.ts';
import type { Source } from './new_item.ts';

/** Traces whose texts are taken at once. */
export const TRACES_MAX = 200;
const REQUESTS_AT_ONCE = 4;

/** Reads the texts of one span, whole. @throws RequestError */
export async function readSpanSource(
  queries: QueryClient,
  org_id: string,
  trace_id: string,
  span_id: string,
): Promise<Source> {
  const { data } = await queries.query(spanQuery(org_id, trace_id, span_id));
  const whole = async (side: TextSide): Promise<string> =>
    data.truncated[side] ? queries.query(textQuery(org_id, trace_id, span_id, side)) : (data[side] ?? '');
  const [prompt, response] = await Promise.all([whole('prompt'), whole('response')]);
  const variables = data.attributes['prompt_variables'];
  const isFields = typeof variables === 'object' && variables !== null && !Array.isArray(variables);
  return {
    trace_id,
    span_id,
    prompt,
    response,
    variables: isFields ? (variables as Record<string, unknown>) : null,
  };
}

/** Returns the prompt and the answer of two traces by the comparison of both; null for a trace that cannot be read. */
async function readPair(org_id: string, ids: readonly string[], signal: AbortSignal): Promise<(Source | null)[]> {
  const [first = '', second = first] = ids;
  try {
    const { data } = await send(org_id, 'post', '/v1/traces/compare', {
      body: { baseline_trace_id: first, candidate_trace_id: second, fields: ['prompt', 'response'] },
      signal,
    });
    const textOf = (field: string, side: 'baseline' | 'candidate'): string => {
      const value = data.fields.find((one) => one.field === field)?.[side];
      return typeof value === 'string' ? value : '';
    };
    return ids.map((trace_id, at) => {
      const side = at === 0 ? 'baseline' : 'candidate';
      const [prompt, response] = [textOf('prompt', side), textOf('response', side)];
      return { trace_id, span_id: null, prompt, response, variables: null };
    });
  } catch (error) {
    if (isAbort(error) || !(error instanceof RequestError) || ![404, 422].includes(error.status)) throw error;
    if (ids.length === 1) return [null];
    // One of both is gone or too large; the other one is read by itself.
    return (await Promise.all(ids.map((id) => readPair(org_id, [id], signal)))).flat();
  }
}

/** Reads the prompts and answers of traces. @throws RequestError */
export async function readTraceSources(
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<Source[]> {
  const pairs = Array.from({ length: Math.ceil(trace_ids.length / 2) }, (_, i) => trace_ids.slice(2 * i, 2 * i + 2));
  const found: (Source | null)[] = [];
  for (let at = 0; at < pairs.length; at += REQUESTS_AT_ONCE) {
    const some = pairs.slice(at, at + REQUESTS_AT_ONCE).map((ids) => readPair(org_id, ids, signal));
    found.push(...(await Promise.all(some)).flat());
  }
  return found.filter((source) => source !== null);
}
