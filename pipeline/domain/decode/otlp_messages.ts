// What was asked and answered in an OTLP span, wherever its instrumentation puts it: the messages of the GenAI conventions (as
// JSON or structured, in attributes or in an event; before that one event a message; before that gen_ai.prompt.N), OpenInference's
// llm.input_messages.N, the Vercel AI SDK's ai.prompt, and plain inputs and outputs.
// In: attributes and events. Out: the conversation, the answer's text, its tool calls, and which attributes became them.
import { contentText, isFields, type Fields } from './draft.ts';
import { itemsUnder, parsedList, parsedText, textOf } from './otlp_parts.ts';

export interface Conversation {
  /** null: `prompt` is the prompt. */
  messages: unknown[] | null;
  prompt: string;
  response: string;
  tool_calls: unknown[];
  finish_reasons: string[];
  reasoning: string;
  /** Names of the attributes that became prompt or response whole. */
  used: ReadonlySet<string>;
}

interface Asked {
  messages: unknown[] | null;
  prompt: string;
  used: readonly string[];
}

interface Answered {
  response: string;
  tool_calls: unknown[];
  finish_reasons: string[];
  reasoning: string;
  used: readonly string[];
}

const NOTHING_ASKED: Asked = { messages: null, prompt: '', used: [] };
const NOTHING_ANSWERED: Answered = { response: '', tool_calls: [], finish_reasons: [], reasoning: '', used: [] };

/** Plain texts, by what they are: of tools, of whole runs, of whatever names its input. The first that is there is taken. */
const INPUTS = [
  'gen_ai.tool.call.arguments',
  'ai.toolCall.args',
  'gen_ai.prompt',
  'ai.prompt',
  'input.value',
  'traceloop.entity.input',
  'ai.values',
  'ai.value',
];
const OUTPUTS = [
  'gen_ai.tool.call.result',
  'ai.toolCall.result',
  'gen_ai.completion',
  'ai.response.text',
  'ai.response.object',
  'output.value',
  'traceloop.entity.output',
];

export function conversationOf(attributes: Fields, events: readonly unknown[]): Conversation {
  const asked = askedIn(attributes) ?? askedInEvents(events) ?? askedPlainly(attributes);
  const answered = answeredIn(attributes) ?? answeredInEvents(events) ?? answeredPlainly(attributes);
  return { ...asked, ...answered, used: new Set([...asked.used, ...answered.used]) };
}

// --- asked ---

function askedIn(attributes: Fields): Asked | null {
  const system = parsedList(attributes['gen_ai.system_instructions']);
  const messages = parsedList(attributes['gen_ai.input.messages']);
  if (messages !== null || system !== null) {
    const instructions = system === null ? [] : [{ role: 'system', content: contentOf(system) }];
    return {
      messages: [...instructions, ...(messages ?? []).map(messageOf)],
      prompt: '',
      used: ['gen_ai.system_instructions', 'gen_ai.input.messages'],
    };
  }
  const indexed =
    itemsUnder(attributes, 'gen_ai.prompt.') ?? itemsUnder(attributes, 'llm.input_messages.') ?? itemsUnder(attributes, 'llm.prompts.');
  if (indexed !== null) return { messages: indexed.items.map(indexedMessage), prompt: '', used: indexed.keys };
  const sent = parsedList(attributes['ai.prompt.messages']);
  return sent === null ? null : { messages: sent, prompt: '', used: ['ai.prompt.messages'] };
}

const MESSAGE_EVENT = /^gen_ai\.(system|user|assistant|tool)\.message$/;

function askedInEvents(events: readonly unknown[]): Asked | null {
  const messages: unknown[] = [];
  for (const [name, fields] of named(events)) {
    const role = MESSAGE_EVENT.exec(name)?.[1];
    if (role !== undefined) messages.push({ role, ...eventMessage(fields) });
    else if (name === 'gen_ai.content.prompt') messages.push(...(parsedList(fields['gen_ai.prompt']) ?? []));
    else if (name === 'gen_ai.client.inference.operation.details') {
      const found = askedIn(fields);
      if (found?.messages != null) return { ...found, used: [] };
    }
  }
  return messages.length === 0 ? null : { messages, prompt: '', used: [] };
}

function askedPlainly(attributes: Fields): Asked {
  const key = INPUTS.find((name) => textOf(attributes[name]) !== '');
  if (key === undefined) return NOTHING_ASKED;
  const text = textOf(attributes[key]);
  if (key !== 'ai.prompt') return { messages: null, prompt: text, used: [key] };
  // {system, messages} or {system, prompt} of generateText.
  const whole = parsedText(text);
  const list = isFields(whole) && Array.isArray(whole['messages']) ? (whole['messages'] as unknown[]) : null;
  if (!isFields(whole) || list === null) return { messages: null, prompt: text, used: [key] };
  const system = typeof whole['system'] === 'string' ? [{ role: 'system', content: whole['system'] }] : [];
  return { messages: [...system, ...list], prompt: '', used: [key] };
}

// --- answered ---

function answeredIn(attributes: Fields): Answered | null {
  const key = 'gen_ai.output.messages';
  const messages = parsedList(attributes[key]);
  if (messages !== null) return answerOf(messages, [key]);
  const indexed = itemsUnder(attributes, 'gen_ai.completion.') ?? itemsUnder(attributes, 'llm.output_messages.');
  if (indexed !== null) return answerOf(indexed.items.map(indexedMessage), indexed.keys);
  const calls = parsedList(attributes['ai.response.toolCalls']);
  if (calls === null) return null;
  const plain = answeredPlainly(attributes);
  return { ...plain, tool_calls: calls, used: [...plain.used, 'ai.response.toolCalls'] };
}

function answeredInEvents(events: readonly unknown[]): Answered | null {
  const messages: unknown[] = [];
  for (const [name, fields] of named(events)) {
    if (name === 'gen_ai.choice') {
      const message = parsedText(fields['message']);
      messages.push({ finish_reason: fields['finish_reason'], ...eventMessage(isFields(message) ? { ...fields, ...message } : fields) });
    } else if (name === 'gen_ai.content.completion') messages.push(...(parsedList(fields['gen_ai.completion']) ?? []));
    else if (name === 'gen_ai.client.inference.operation.details') {
      const found = answeredIn(fields);
      if (found !== null) return { ...found, used: [] };
    }
  }
  return messages.length === 0 ? null : answerOf(messages, []);
}

function answeredPlainly(attributes: Fields): Answered {
  const key = OUTPUTS.find((name) => textOf(attributes[name]) !== '');
  return key === undefined ? NOTHING_ANSWERED : { ...NOTHING_ANSWERED, response: textOf(attributes[key]), used: [key] };
}

const CALL_TYPES = new Set(['tool_call', 'tool-call', 'tool_use', 'function_call']);

/** The answer that messages hold. What is neither text nor a tool call nor reasoning keeps its attributes where they are. */
function answerOf(messages: readonly unknown[], used: readonly string[]): Answered {
  const texts: string[] = [];
  const tool_calls: unknown[] = [];
  const finish_reasons: string[] = [];
  let reasoning = '';
  let whole = true;
  for (const message of messages) {
    if (!isFields(message)) {
      if (typeof message === 'string') texts.push(message);
      continue;
    }
    const content = message['parts'] ?? message['content'];
    for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
      const type = isFields(part) ? part['type'] : undefined;
      const text = partText(part);
      if (typeof type === 'string' && CALL_TYPES.has(type)) tool_calls.push(part);
      else if (type === 'reasoning' || type === 'thinking') reasoning += text;
      else if (text !== '') texts.push(text);
      else if (part !== undefined && part !== null && part !== '') whole = false;
    }
    const calls = parsedList(message['tool_calls']);
    if (calls !== null) tool_calls.push(...calls);
    const reason = message['finish_reason'];
    if (typeof reason === 'string' && reason !== '') finish_reasons.push(reason);
  }
  return { response: texts.join('\n'), tool_calls, finish_reasons, reasoning, used: whole ? used : [] };
}

// --- messages and their parts ---

function partText(part: unknown): string {
  if (typeof part === 'string') return part;
  if (!isFields(part)) return '';
  const { text, content, type } = part;
  if (typeof text === 'string') return text;
  return typeof content === 'string' && type !== 'tool_call_response' ? content : '';
}

/** A text where all parts are text, else the parts, those of text in the vendors' shape. */
function contentOf(parts: readonly unknown[]): unknown {
  const texts = parts.map((part) => (isFields(part) && part['type'] !== undefined && part['type'] !== 'text' ? null : partText(part)));
  if (texts.every((text) => text !== null)) return texts.join('');
  return parts.map((part, index) => (typeof texts[index] === 'string' ? { type: 'text', text: texts[index] } : part));
}

/** A message of the conventions, {role, parts}, as {role, content}. */
function messageOf(message: unknown): unknown {
  if (!isFields(message) || !Array.isArray(message['parts'])) return message;
  const { parts, ...rest } = message;
  return { ...rest, content: contentOf(parts as unknown[]) };
}

/** What an event of a message says: its own attributes, or those in its body. */
function eventMessage(fields: Fields): Record<string, unknown> {
  const { content, tool_calls, id, name } = fields;
  const message: Record<string, unknown> = { content: parsedText(content ?? fields['gen_ai.event.content']) ?? '' };
  const calls = parsedList(tool_calls);
  if (calls !== null) message['tool_calls'] = calls;
  if (typeof id === 'string') message['tool_call_id'] = id;
  if (typeof name === 'string') message['name'] = name;
  return message;
}

/** A message that was spread over attributes: gen_ai.prompt.0.role, llm.input_messages.0.message.contents.0.message_content.text. */
function indexedMessage(item: unknown): unknown {
  const message = isFields(item) && isFields(item['message']) ? item['message'] : item;
  if (!isFields(message)) return { role: 'user', content: message };
  const { contents, tool_calls, ...rest } = message;
  const out: Record<string, unknown> = { ...rest };
  if (Array.isArray(contents)) {
    const parts = (contents as unknown[]).map((one) => (isFields(one) && isFields(one['message_content']) ? one['message_content'] : one));
    out['content'] = contentOf(parts);
  }
  if (Array.isArray(tool_calls))
    out['tool_calls'] = (tool_calls as unknown[]).map((one) => (isFields(one) && isFields(one['tool_call']) ? one['tool_call'] : one));
  // OpenLLMetry wrote the parts of a message as JSON.
  const parts = typeof out['content'] === 'string' && out['content'].startsWith('[{') ? parsedList(out['content']) : null;
  if (parts !== null && contentText(parts) !== '') out['content'] = contentOf(parts);
  return out;
}

function* named(events: readonly unknown[]): Generator<[string, Fields]> {
  for (const event of events) {
    if (!isFields(event) || typeof event['name'] !== 'string') continue;
    yield [event['name'], isFields(event['attributes']) ? event['attributes'] : {}];
  }
}
