// Answers a call from the cache. Takes the call and the cached answer; sends the answer and records
// the call, with cost 0, because no model was asked.
import { REQUEST_ID_HEADER } from '../../http/request_id.ts';
import { AnswerReader } from './answer.ts';
import type { CachedAnswer } from './cache.ts';
import type { Invocation, InvokeDeps } from './invoke.ts';
import { recordOf } from './record.ts';
import { type Fields, isFields } from './values.ts';

/** Usage of an answer that no model was asked for, under the names of every API. */
const NO_USAGE = { prompt_tokens: 0, completion_tokens: 0, input_tokens: 0, output_tokens: 0 };

/** Sends the cached answer and records the call. */
export function answerFromCache(
  { org_id, call, res, answering }: Invocation,
  { content_type, body }: CachedAnswer,
  deps: Pick<InvokeDeps, 'recorder' | 'countUse' | 'partitions' | 'now' | 'observeCall'>,
): void {
  const started_at = deps.now();
  const length = ['Content-Type', content_type, 'Content-Length', String(body.length)];
  res.writeHead(200, [...length, ...answering.headers, REQUEST_ID_HEADER, answering.request_id]);
  res.end(body);
  const isStream = content_type.startsWith('text/event-stream');
  const head = { status: 200, isStream, isPlain: true, isHtml: false };
  const reader = new AnswerReader(call, head, () => performance.now(), org_id);
  reader.take(body);
  const { response, outcome, attributes } = reader.read('complete');
  const event = recordOf(
    {
      org_id,
      operation: call.operation,
      labels: call.labels,
      request: call.request,
      response: isFields(response) ? withoutUsage(response) : response,
      outcome,
      started_at,
      ended_at: deps.now(),
      attributes: {
        ...attributes,
        gateway: true,
        cached: true,
        cost_usd: 0,
        request_id: answering.request_id,
        ...(isFields(response) && isFields(response['usage']) ? { cached_usage: response['usage'] } : {}),
        ...(call.stream ? { stream: true } : {}),
      },
    },
    deps.partitions,
  );
  answering.admission.stamp([event]);
  deps.recorder.add(event, deps.countUse(org_id, event));
  deps.observeCall(call.operation, outcome);
}

/** Returns an answer without its id as well, which belongs to the call that was made. */
function withoutUsage({ id: _, usage: __, ...response }: Fields): Fields {
  return { ...response, usage: NO_USAGE };
}
