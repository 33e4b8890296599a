// Decoder of the format `gateway`: a gateway call other than a chat completion, that is, a response
// (OpenAI's Responses API) or embeddings. The prompt is the input as sent, the response the text of
// the output; embedding vectors are not stored.
import { gatewayEvent, type GatewayEvent } from '../../../schemas/formats/gateway.ts';
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import {
  addAttribute,
  addOthers,
  contentText,
  EVENT_FIELDS,
  isFields,
  NO_USAGE,
  ownAttributes,
  tokenNumber,
  type Draft,
  type Fields,
  type ReportedUsage,
} from './draft.ts';

const REQUEST_FIELDS = new Set(['model', 'input', 'instructions', 'tools']);
const RESPONSE_FIELDS = new Set([
  'id',
  'model',
  'object',
  'output',
  'output_text',
  'usage',
  'error',
  'data',
  'instructions',
  'tools',
]);
const USAGE_FIELDS = new Set(['input_tokens', 'output_tokens', 'total_tokens', 'prompt_tokens']);
const OWN_FIELDS = new Set([...EVENT_FIELDS, 'operation']);

/** Reads an event of the ingest log. */
export function readGateway(value: unknown): { ok: true; event: Fields; draft: Draft } | Refusal {
  const checked = gatewayEvent.safeParse(value);
  if (!checked.success) {
    const issue = checked.error.issues[0];
    return { ok: false, path: issue?.path.join('.') ?? '', message: issue?.message ?? 'is no call of the gateway' };
  }
  const event = value as GatewayEvent;
  return { ok: true, event, draft: decodeGateway(event) };
}

function decodeGateway(event: GatewayEvent): Draft {
  const { operation, request } = event;
  const response: Fields = event.response ?? {};
  const attributes = ownAttributes(event);
  addOthers(attributes, event, OWN_FIELDS, '');
  addAttribute(attributes, 'gen_ai.operation.name', operation);
  addOthers(attributes, request, REQUEST_FIELDS, 'gen_ai.request.');
  addAttribute(attributes, 'gen_ai.tool.definitions', request['tools']);
  const toolCalls = outputOf(response).filter(
    (item) => typeof item['type'] === 'string' && item['type'].endsWith('_call'),
  );
  if (toolCalls.length > 0) addAttribute(attributes, 'tool_calls', toolCalls);
  addAttribute(attributes, 'gen_ai.response.id', response['id']);
  addAttribute(attributes, 'gen_ai.response.model', response['model']);
  addAttribute(attributes, 'error', response['error']);
  addOthers(attributes, response, RESPONSE_FIELDS, 'gen_ai.response.');
  const usage = isFields(response['usage']) ? response['usage'] : null;
  if (usage !== null) addOthers(attributes, usage, USAGE_FIELDS, 'gen_ai.usage.');
  const answered = event.response != null && response['error'] == null;
  return {
    kind: 'llm',
    name: request.model,
    model: request.model,
    answered_model: typeof response['model'] === 'string' ? response['model'] : '',
    provider: 'openai',
    messages: messagesOf(request),
    prompt_text: textOf(request['input']),
    response: responseText(response),
    usage: usageOf(operation, usage),
    answered,
    attributes,
    steps: [],
  };
}

/**
 * Returns the conversation, instructions first; null when the input is a text or a list of texts.
 */
function messagesOf(request: Fields): readonly unknown[] | null {
  const { input, instructions } = request;
  const system =
    typeof instructions === 'string' && instructions !== '' ? [{ role: 'system', content: instructions }] : [];
  if (Array.isArray(input) && input.some(isFields)) return [...system, ...(input as unknown[])];
  return system.length === 0 ? null : [...system, { role: 'user', content: textOf(input) }];
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join('\n');
  return value == null ? '' : JSON.stringify(value);
}

function outputOf(response: Fields): Fields[] {
  const { output } = response;
  return Array.isArray(output) ? (output as unknown[]).filter(isFields) : [];
}

function responseText(response: Fields): string {
  const texts = outputOf(response)
    .filter((item) => item['type'] === 'message')
    .map((item) => refusalOr(item['content']))
    .filter((text) => text !== '');
  const whole = response['output_text'];
  return texts.length === 0 && typeof whole === 'string' ? whole : texts.join('\n');
}

function refusalOr(content: unknown): string {
  const text = contentText(content);
  if (text !== '' || !Array.isArray(content)) return text;
  return (content as unknown[])
    .map((part) => (isFields(part) && typeof part['refusal'] === 'string' ? part['refusal'] : ''))
    .join('');
}

/** Embeddings return no text, so they have no output tokens. */
function usageOf(operation: GatewayEvent['operation'], usage: Fields | null): ReportedUsage {
  if (operation === 'embeddings')
    return {
      ...NO_USAGE,
      input_tokens: tokenNumber(usage?.['prompt_tokens'] ?? usage?.['total_tokens']),
      output_tokens: 0,
    };
  const details = isFields(usage?.['input_tokens_details']) ? usage['input_tokens_details'] : {};
  const outputDetails = isFields(usage?.['output_tokens_details']) ? usage['output_tokens_details'] : {};
  return {
    ...NO_USAGE,
    input_tokens: tokenNumber(usage?.['input_tokens']),
    output_tokens: tokenNumber(usage?.['output_tokens']),
    cached_input_tokens: tokenNumber(details['cached_tokens']) ?? 0,
    reasoning_tokens: tokenNumber(outputDetails['reasoning_tokens']) ?? 0,
  };
}
