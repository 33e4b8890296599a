// Decoder of the format `custom`: a free-form step. It becomes a tool or a model call where
// span_kind or event_type says so, else an event. Unknown fields join the attributes, so that a
// sender may write `input` or `model` in either place. A step's input and output (prompt or input,
// response or output; as JSON if not text) become its prompt and response, which the tree shows and
// search finds; they stay in the attributes as sent.
import type { CustomEvent } from '../../../schemas/formats/custom.ts';
import { customKind, OTHER_EVENT_TYPE } from './kinds.ts';
import { anthropicUsage } from './messages.ts';
import { openAiUsage } from './chatcompletion.ts';
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

const CUSTOM_FIELDS = new Set(
  [...EVENT_FIELDS].filter((field) => field !== 'request' && field !== 'response').concat('name', 'event_type'),
);

export function decodeCustom(event: CustomEvent): Draft {
  const attributes = ownAttributes(event);
  addOthers(attributes, event, CUSTOM_FIELDS, '');
  const name = event.name ?? event.event_type ?? '';
  const kind = customKind(attributes['span_kind'], [event.event_type, attributes['event_type']]);
  if (event.event_type !== name) {
    addAttribute(attributes, 'event_type', event.event_type);
    // The sender's own attribute of that name has another value: both are kept.
    if (attributes['event_type'] !== event.event_type) addAttribute(attributes, OTHER_EVENT_TYPE, event.event_type);
  }
  const messages = attributes['messages'];
  const isCall = kind === 'llm';
  const response = textOf(attributes['response'] ?? attributes['output']);
  return {
    kind,
    name,
    model: isCall ? firstString(attributes, ['model', 'gen_ai.request.model', 'gen_ai.response.model']) : '',
    answered_model: isCall ? firstString(attributes, ['gen_ai.response.model']) : '',
    provider: isCall ? firstString(attributes, ['provider', 'gen_ai.provider.name', 'gen_ai.system']) || null : null,
    messages: isCall && Array.isArray(messages) ? (messages as unknown[]) : null,
    prompt_text: textOf(attributes['prompt'] ?? attributes['input']),
    response,
    usage: isCall ? customUsage(attributes) : NO_USAGE,
    answered: response !== '',
    attributes,
    steps: [],
  };
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/** Returns the first of these attributes that is a text short enough for a name. */
export function firstString(attributes: Fields, keys: readonly string[]): string {
  for (const key of keys) {
    const value = attributes[key];
    if (typeof value === 'string' && value !== '' && value.length <= 1024) return value;
  }
  return '';
}

/**
 * Returns the usage of a model call from attributes.usage or from the attributes themselves, in the
 * names of OpenAI, Anthropic or OpenTelemetry.
 */
export function customUsage(attributes: Fields): ReportedUsage {
  const from = isFields(attributes['usage']) ? attributes['usage'] : attributes;
  if (tokenNumber(from['prompt_tokens']) !== null) return openAiUsage(from);
  if (tokenNumber(from['cache_read_input_tokens'] ?? from['cache_creation_input_tokens']) !== null)
    return anthropicUsage(from);
  const cached = tokenNumber(from['cached_input_tokens'] ?? attributes['gen_ai.usage.cache_read.input_tokens']) ?? 0;
  return {
    ...NO_USAGE,
    input_tokens: tokenNumber(from['input_tokens'] ?? attributes['gen_ai.usage.input_tokens']),
    output_tokens: tokenNumber(from['output_tokens'] ?? attributes['gen_ai.usage.output_tokens']),
    cached_input_tokens: cached,
    cache_write_tokens:
      tokenNumber(from['cache_write_tokens'] ?? attributes['gen_ai.usage.cache_creation.input_tokens']) ?? 0,
    reasoning_tokens: tokenNumber(from['reasoning_tokens'] ?? attributes['gen_ai.usage.reasoning.output_tokens']) ?? 0,
  };
}
