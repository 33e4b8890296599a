// Decoder of the format `chatcompletion`: an OpenAI-style chat completion. The prompt is the
// messages as sent, the response the text of the choices; tool calls, request parameters and the
// remaining response fields stay in the attributes.
import type { ChatcompletionEvent } from '../../../schemas/formats/chatcompletion.ts';
import {
  addAll,
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

type Response = NonNullable<ChatcompletionEvent['response']>;
type Message = NonNullable<Response['choices']>[number]['message'];

const REQUEST_FIELDS = new Set(['model', 'messages', 'tools']);
const RESPONSE_FIELDS = new Set(['id', 'model', 'choices', 'usage', 'object', 'error']);
const USAGE_FIELDS = new Set(['prompt_tokens', 'completion_tokens', 'total_tokens']);

export function decodeChatcompletion(event: ChatcompletionEvent): Draft {
  const { request, response } = event;
  const attributes = ownAttributes(event);
  addOthers(attributes, event, EVENT_FIELDS, '');
  addOthers(attributes, request, REQUEST_FIELDS, 'gen_ai.request.');
  addAttribute(attributes, 'gen_ai.tool.definitions', request['tools']);
  const texts: string[] = [];
  if (response != null) readResponse(response, attributes, texts);
  return {
    kind: 'llm',
    name: request.model,
    model: request.model,
    answered_model: response?.model ?? '',
    provider: 'openai',
    messages: request.messages,
    prompt_text: '',
    response: texts.join('\n'),
    usage: response?.usage == null ? NO_USAGE : openAiUsage(response.usage),
    answered: response?.choices != null,
    attributes,
    steps: [],
  };
}

function readResponse(response: Response, attributes: Record<string, unknown>, texts: string[]): void {
  const reasons: string[] = [];
  const toolCalls: unknown[] = [];
  let reasoning = '';
  for (const choice of response.choices ?? []) {
    const { message } = choice;
    const text = answerText(message);
    if (text !== '') texts.push(text);
    addAll(toolCalls, toolCallsOf(message));
    if (typeof message['reasoning_content'] === 'string') reasoning += message['reasoning_content'];
    if (choice.finish_reason != null) reasons.push(choice.finish_reason);
  }
  if (toolCalls.length > 0) addAttribute(attributes, 'tool_calls', toolCalls);
  if (reasoning !== '') addAttribute(attributes, 'gen_ai.response.reasoning', reasoning);
  if (reasons.length > 0) addAttribute(attributes, 'gen_ai.response.finish_reasons', reasons);
  addAttribute(attributes, 'gen_ai.response.id', response.id);
  addAttribute(attributes, 'gen_ai.response.model', response.model);
  addAttribute(attributes, 'error', response['error']);
  addOthers(attributes, response, RESPONSE_FIELDS, 'gen_ai.response.');
  if (response.usage != null) addOthers(attributes, response.usage, USAGE_FIELDS, 'gen_ai.usage.');
}

function answerText(message: Message): string {
  const text = contentText(message.content);
  return text === '' && typeof message['refusal'] === 'string' ? message['refusal'] : text;
}

function toolCallsOf(message: Message): readonly unknown[] {
  if (message.tool_calls != null) return message.tool_calls;
  const legacy = message['function_call'];
  return isFields(legacy) ? [{ type: 'function', function: legacy }] : [];
}

/**
 * Returns the usage as OpenAI reports it: prompt_tokens includes cached tokens. Also reads the
 * names that compatible vendors use.
 */
export function openAiUsage(usage: Fields): ReportedUsage {
  const prompt = isFields(usage['prompt_tokens_details']) ? usage['prompt_tokens_details'] : {};
  const completion = isFields(usage['completion_tokens_details']) ? usage['completion_tokens_details'] : {};
  return {
    input_tokens: tokenNumber(usage['prompt_tokens']),
    output_tokens: tokenNumber(usage['completion_tokens']),
    cached_input_tokens: tokenNumber(prompt['cached_tokens']) ?? tokenNumber(usage['prompt_cache_hit_tokens']) ?? 0,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
    input_audio_tokens: tokenNumber(prompt['audio_tokens']) ?? 0,
    output_audio_tokens: tokenNumber(completion['audio_tokens']) ?? 0,
    reasoning_tokens: tokenNumber(completion['reasoning_tokens']) ?? 0,
  };
}
