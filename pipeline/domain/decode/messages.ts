// Decoder of the format `messages`: an Anthropic-style messages call. The prompt is the messages
// preceded by the system prompt, the response the joined text blocks; tool_use blocks, request
// parameters and the remaining response fields stay in the attributes.
import type { MessagesEvent } from '../../../schemas/formats/messages.ts';
import {
  addAttribute,
  addOthers,
  EVENT_FIELDS,
  isFields,
  NO_USAGE,
  ownAttributes,
  tokenNumber,
  type Draft,
  type Fields,
  type ReportedUsage,
} from './draft.ts';

type Response = NonNullable<MessagesEvent['response']>;

const REQUEST_FIELDS = new Set(['model', 'messages', 'system', 'tools']);
const RESPONSE_FIELDS = new Set(['id', 'model', 'content', 'stop_reason', 'usage', 'type', 'role', 'error']);
const USAGE_FIELDS = new Set(['input_tokens', 'output_tokens', 'cache_read_input_tokens']);

export function decodeMessages(event: MessagesEvent): Draft {
  const { request, response } = event;
  const attributes = ownAttributes(event);
  addOthers(attributes, event, EVENT_FIELDS, '');
  addOthers(attributes, request, REQUEST_FIELDS, 'gen_ai.request.');
  addAttribute(attributes, 'gen_ai.tool.definitions', request['tools']);
  const system = request.system;
  return {
    kind: 'llm',
    name: request.model,
    model: request.model,
    answered_model: response?.model ?? '',
    provider: 'anthropic',
    messages: system == null ? request.messages : [{ role: 'system', content: system }, ...request.messages],
    prompt_text: '',
    response: response == null ? '' : readResponse(response, attributes),
    usage: response?.usage == null ? NO_USAGE : anthropicUsage(response.usage),
    answered: response?.content != null,
    attributes,
    steps: [],
  };
}

/** Adds the response's fields to the attributes and returns its text. */
function readResponse(response: Response, attributes: Record<string, unknown>): string {
  let text = '';
  let reasoning = '';
  const toolCalls: unknown[] = [];
  for (const block of response.content ?? []) {
    if (block.type === 'text') text += block.text ?? '';
    else if (block.type === 'thinking' && typeof block['thinking'] === 'string') reasoning += block['thinking'];
    else if (block.type.endsWith('tool_use')) toolCalls.push(block);
  }
  if (toolCalls.length > 0) addAttribute(attributes, 'tool_calls', toolCalls);
  if (reasoning !== '') addAttribute(attributes, 'gen_ai.response.reasoning', reasoning);
  if (response.stop_reason != null) addAttribute(attributes, 'gen_ai.response.finish_reasons', [response.stop_reason]);
  addAttribute(attributes, 'gen_ai.response.id', response.id);
  addAttribute(attributes, 'gen_ai.response.model', response.model);
  addAttribute(attributes, 'error', response['error']);
  addOthers(attributes, response, RESPONSE_FIELDS, 'gen_ai.response.');
  if (response.usage != null) addOthers(attributes, response.usage, USAGE_FIELDS, 'gen_ai.usage.');
  return text;
}

/**
 * Returns the usage as Anthropic reports it: cache reads and writes come in addition to
 * input_tokens, and all three together are the input.
 */
export function anthropicUsage(usage: Fields): ReportedUsage {
  const uncached = tokenNumber(usage['input_tokens']);
  const read = tokenNumber(usage['cache_read_input_tokens']) ?? 0;
  const written = tokenNumber(usage['cache_creation_input_tokens']) ?? 0;
  const creation = isFields(usage['cache_creation']) ? usage['cache_creation'] : {};
  const details = isFields(usage['output_tokens_details']) ? usage['output_tokens_details'] : {};
  const writtenForAnHour = Math.min(written, tokenNumber(creation['ephemeral_1h_input_tokens']) ?? 0);
  return {
    input_tokens: uncached === null ? null : uncached + read + written,
    output_tokens: tokenNumber(usage['output_tokens']),
    cached_input_tokens: read,
    cache_write_tokens: written - writtenForAnHour,
    cache_write_1h_tokens: writtenForAnHour,
    input_audio_tokens: 0,
    output_audio_tokens: 0,
    reasoning_tokens: tokenNumber(details['thinking_tokens']) ?? 0,
  };
}
