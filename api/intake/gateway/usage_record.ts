// Makes the event of a call whose content is not stored (capture mode usage). Takes the call and how
// it ended; returns an event that names the model, whose call it was and what it used. Neither the
// ingest log nor the store gets its prompt, its response or its attributes.
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { type EndedCall, type RecordedEvent, recordOf } from './record.ts';
import { type Fields, isFields } from './values.ts';

/** The cost is computed when the event is decoded. */
const NO_PRICES = { prices: createPriceBook(() => []), maxPromptTokens: () => null, redactorOf: () => null };
/** Attributes that tell of the call itself and hold nothing that a person or a model wrote. */
const KEPT = ['http_status', 'gateway', 'cached', 'cost_usd', 'stream', 'aborted', 'upstream_request_id'];
const KEPT_OF_LABELS = ['prompt_name', 'prompt_version'];

const only = (fields: Fields, names: readonly string[]): Record<string, unknown> =>
  Object.fromEntries(names.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]));

/** Returns the event of a call without its content. */
export function usageRecordOf(call: EndedCall, partitions: number): RecordedEvent {
  const { request, response, labels, operation } = call;
  const answer: Fields = isFields(response) ? response : {};
  const usage = countsIn(answer['usage']);
  const [input, output, estimated] = tokensOf(call, partitions);
  const isChat = operation === 'chat' || operation === 'embeddings';
  return recordOf(
    {
      ...call,
      labels: { ...labels, attributes: only(labels.attributes, KEPT_OF_LABELS) },
      request: {
        model: request['model'],
        ...(operation === 'responses' || operation === 'embeddings' ? {} : { messages: [] }),
      },
      response: {
        ...only(answer, ['id', 'model']),
        ...(operation === 'chat' ? { choices: [] } : operation === 'messages' ? { content: [] } : {}),
        usage: estimated
          ? {
              ...usage,
              [isChat ? 'prompt_tokens' : 'input_tokens']: input,
              [isChat ? 'completion_tokens' : 'output_tokens']: output,
            }
          : usage,
      },
      attributes: {
        ...only(call.attributes, KEPT),
        ...(estimated ? { tokens_estimated: true } : {}),
        capture: 'usage',
      },
    },
    partitions,
  );
}

/** Returns the tokens of a call as the pipeline would count them, and whether it would estimate them. */
function tokensOf(call: EndedCall, partitions: number): [input: number, output: number, estimated: boolean] {
  const { event } = recordOf(call, partitions);
  const spans = spansOf(NO_PRICES, event, JSON.parse(event.body));
  const span = typeof spans === 'string' ? undefined : spans[0];
  const isEstimated = span?.attributes['tokens_estimated'] === true;
  // Anthropic's input_tokens are those that no cache held.
  const cached = (span?.cached_input_tokens ?? 0) + (span?.cache_write_tokens ?? 0);
  const input = (span?.input_tokens ?? 0) - (call.operation === 'messages' ? cached : 0);
  return [input, span?.output_tokens ?? 0, isEstimated || span === undefined];
}

/** Returns the numbers of a usage, those of its details included. */
function countsIn(usage: unknown, depth = 1): Fields {
  if (!isFields(usage)) return {};
  const entries = Object.entries(usage).flatMap(([key, value]): [string, unknown][] => {
    if (typeof value === 'number') return [[key, value]];
    return depth > 0 && isFields(value) ? [[key, countsIn(value, depth - 1)]] : [];
  });
  return Object.fromEntries(entries);
}
