// Finds the prompt and the answer of an OTLP span wherever its instrumentation puts them: the
// messages of the GenAI conventions (JSON or structured, in attributes or in an event; earlier one
// event a message; earlier still gen_ai.prompt.N), OpenInference's llm.input_messages.N, the Vercel
// AI SDK's ai.prompt, and plain inputs and outputs. In: attributes and events. Out: the
// conversation, the answer's text, its tool calls, and the attributes that became them or repeat
// them, since many spans use more than one convention.
import { addAll, contentText, isFields, type Fields } from './draft.ts';
import { documentsFound, documentsGiven } from './otlp_documents.ts';
import { itemsUnder, parsedList, parsedText, textOf, textsWithin } from './otlp_parts.ts';

export interface Conversation {
  /** When null, `prompt` is the prompt. */
  messages: unknown[] | null;
  prompt: string;
  response: string;
  tool_calls: unknown[];
  finish_reasons: string[];
  reasoning: string;
  /** Messages of the answer, reduced to parts that are neither text nor tool call nor reasoning. */
  rest: unknown[];
  /** Names of the attributes that became prompt or response, and of those that repeat them. */
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
  rest: unknown[];
  used: readonly string[];
}

const NOTHING_ASKED: Asked = { messages: null, prompt: '', used: [] };
const NOTHING_ANSWERED: Answered = {
  response: '',
  tool_calls: [],
  finish_reasons: [],
  reasoning: '',
  rest: [],
  used: [],
};

const INSTRUCTIONS = 'gen_ai.system_instructions';
const INPUT_MESSAGES = 'gen_ai.input.messages';
const OUTPUT_MESSAGES = 'gen_ai.output.messages';

/** Types of Mastra's spans whose texts have names of their own, in the order of what they hold. */
const MASTRA_SPANS = [
  'agent_run',
  'model_generation',
  'model_step',
  'model_chunk',
  'workflow_run',
  'workflow_step',
  'processor_run',
];

/**
 * Attributes with plain texts: of tools, of whole runs, of any span that names its input. The first
 * one present is used.
 */
const INPUTS = [
  'gen_ai.tool.call.arguments',
  'gen_ai.retrieval.query.text',
  'gen_ai.memory.query.text',
  'ai.toolCall.args',
  'gcp.vertex.agent.tool_call_args',
  'gcp.vertex.agent.data',
  'gen_ai.prompt',
  'ai.prompt',
  'input.value',
  'traceloop.entity.input',
  'ai.values',
  'ai.value',
  'ai.documents',
  INPUT_MESSAGES,
  ...MASTRA_SPANS.map((type) => `mastra.${type}.input`),
];
const OUTPUTS = [
  'gen_ai.tool.call.result',
  'gen_ai.retrieval.documents',
  'ai.toolCall.result',
  'gcp.vertex.agent.tool_response',
  'ai.ranking',
  'gen_ai.completion',
  'ai.response.text',
  'ai.response.object',
  'output.value',
  'traceloop.entity.output',
  OUTPUT_MESSAGES,
  ...MASTRA_SPANS.map((type) => `mastra.${type}.output`),
];
const INPUT_NAMES: ReadonlySet<string> = new Set(INPUTS);
const OUTPUT_NAMES: ReadonlySet<string> = new Set(OUTPUTS);
/** Embedded texts, one attribute each. */
const EMBEDDED = /^embedding\.embeddings\.\d+\.embedding\.text$/;

/** Attributes of a tool call; they are never the input or output of a model. */
const OF_TOOLS = new Set([
  'gen_ai.tool.call.arguments',
  'ai.toolCall.args',
  'gcp.vertex.agent.tool_call_args',
  'gen_ai.tool.call.result',
  'ai.toolCall.result',
  'gcp.vertex.agent.tool_response',
]);
/** Attributes that hold a model's prompt or answer, in any convention. */
const SAYS_ASKED =
  /^(?:gen_ai\.(?:system_instructions|input\.messages|prompt(?:\.\d+(?:\..+)?)?)|llm\.(?:input_messages|prompts)\.\d+(?:\..+)?|ai\.(?:prompt(?:\.messages)?|values?)|input\.value|traceloop\.entity\.input|embedding\.embeddings\.\d+\.embedding\.text)$/s;
const SAYS_ANSWERED =
  /^(?:gen_ai\.(?:output\.messages|completion(?:\.\d+(?:\..+)?)?)|llm\.output_messages\.\d+(?:\..+)?|ai\.response\.(?:text|object)|output\.value|traceloop\.entity\.output)$/s;

/**
 * Returns the conversation of a span.
 * @param isCall true when the span is one model call: then every attribute that holds a prompt or
 * an answer belongs to that call
 */
export function conversationOf(attributes: Fields, events: readonly unknown[], isCall: boolean): Conversation {
  const asked = askedOf(attributes, events);
  const answered = answeredOf(attributes, events);
  const used = new Set([...asked.used, ...answered.used]);
  const askedAgain: string[] = [];
  const answeredAgain: string[] = [];
  for (const key of Object.keys(attributes)) {
    if (used.has(key)) continue;
    if (INPUT_NAMES.has(key) || SAYS_ASKED.test(key)) askedAgain.push(key);
    if (OUTPUT_NAMES.has(key) || SAYS_ANSWERED.test(key)) answeredAgain.push(key);
  }
  const asks = asked.messages?.flatMap(saidIn) ?? [asked.prompt];
  for (const key of repeating(attributes, askedAgain, asks, isCall)) used.add(key);
  for (const key of repeating(attributes, answeredAgain, [answered.response], isCall)) used.add(key);
  return { ...asked, ...answered, used };
}

/** Returns the content of a message without its role and type. */
function saidIn(message: unknown): unknown[] {
  if (!isFields(message)) return [message];
  const content = message['content'] ?? message['parts'];
  return Array.isArray(content) ? (content as unknown[]).map(partText) : [content];
}

/**
 * Returns the attributes that repeat texts already found. In a model call their names decide. In
 * other spans, where an input may be another text, an attribute repeats when it contains all the
 * texts found, or none but those.
 */
function repeating(attributes: Fields, keys: readonly string[], said: readonly unknown[], isCall: boolean): string[] {
  if (keys.length === 0) return [];
  const texts = new Set(textsWithin(said));
  return keys.filter((key) => {
    const value = attributes[key];
    if (texts.size === 0) return said.length === 1 && said[0] !== '' && textOf(value) === said[0];
    if (isCall && !OF_TOOLS.has(key)) return true;
    const own = new Set(textsWithin(value));
    return own.size > 0 && (texts.isSubsetOf(own) || own.isSubsetOf(texts));
  });
}

// --- prompt ---

function askedOf(attributes: Fields, events: readonly unknown[]): Asked {
  return withInstructions(attributes, messagesIn(attributes) ?? askedInEvents(events) ?? askedPlainly(attributes));
}

/** Returns the same prompt preceded by the instructions, when these are given separately. */
function withInstructions(attributes: Fields, asked: Asked): Asked {
  const text = textOf(attributes[INSTRUCTIONS]);
  const parts = parsedList(attributes[INSTRUCTIONS]) ?? (text === '' ? [] : [text]);
  if (parts.length === 0) return asked;
  const rest = asked.messages ?? (asked.prompt === '' ? [] : [{ role: 'user', content: asked.prompt }]);
  return {
    messages: [{ role: 'system', content: contentOf(parts) }, ...rest],
    prompt: '',
    used: [...asked.used, INSTRUCTIONS],
  };
}

function messagesIn(attributes: Fields): Asked | null {
  const messages = parsedList(attributes[INPUT_MESSAGES]) ?? [];
  if (messages.length > 0) return { messages: messages.map(messageOf), prompt: '', used: [INPUT_MESSAGES] };
  const indexed =
    itemsUnder(attributes, 'gen_ai.prompt.') ??
    itemsUnder(attributes, 'llm.input_messages.') ??
    itemsUnder(attributes, 'llm.prompts.');
  if (indexed !== null) return { messages: indexed.items.map(indexedMessage), prompt: '', used: indexed.keys };
  const sent = parsedList(attributes['ai.prompt.messages']);
  return sent === null || sent.length === 0 ? null : { messages: sent, prompt: '', used: ['ai.prompt.messages'] };
}

const MESSAGE_EVENT = /^gen_ai\.(system|user|assistant|tool)\.message$/;

function askedInEvents(events: readonly unknown[]): Asked | null {
  const messages: unknown[] = [];
  for (const [name, fields] of named(events)) {
    const role = MESSAGE_EVENT.exec(name)?.[1];
    if (role !== undefined) messages.push({ role, ...eventMessage(fields) });
    else if (name === 'gen_ai.content.prompt') addAll(messages, parsedList(fields['gen_ai.prompt']) ?? []);
    else if (name === 'gen_ai.client.inference.operation.details') {
      const found = withInstructions(fields, messagesIn(fields) ?? NOTHING_ASKED);
      if (found.messages !== null) return { ...found, used: [] };
    }
  }
  return messages.length === 0 ? null : { messages, prompt: '', used: [] };
}

function askedPlainly(attributes: Fields): Asked {
  const documents = documentsGiven(attributes);
  if (documents !== null) return { messages: null, prompt: documents.text, used: documents.used };
  const key = INPUTS.find((name) => isFound(name, attributes[name]));
  if (key === undefined) {
    const embedded = Object.keys(attributes).filter((name) => name.startsWith('embedding.') && EMBEDDED.test(name));
    return { messages: null, prompt: embedded.map((name) => textOf(attributes[name])).join('\n'), used: embedded };
  }
  const text = textOf(attributes[key]);
  if (key !== 'ai.prompt') return { messages: null, prompt: text, used: [key] };
  // {system, messages} or {system, prompt} of generateText.
  const whole = parsedText(text);
  const list = isFields(whole) && Array.isArray(whole['messages']) ? (whole['messages'] as unknown[]) : null;
  if (!isFields(whole) || list === null) return { messages: null, prompt: text, used: [key] };
  const system = typeof whole['system'] === 'string' ? [{ role: 'system', content: whole['system'] }] : [];
  return { messages: [...system, ...list], prompt: '', used: [key] };
}

/**
 * A JSON list that was searched for messages has none left to repeat; a text that does not parse
 * was truncated by the exporter.
 */
function isFound(name: string, value: unknown): boolean {
  if (value === undefined || textOf(value) === '') return false;
  return (name !== INPUT_MESSAGES && name !== OUTPUT_MESSAGES) || parsedList(value) === null;
}

// --- answer ---

function answeredOf(attributes: Fields, events: readonly unknown[]): Answered {
  const found = [answeredIn(attributes), answeredInEvents(events)].filter((answered) => answered !== null);
  const telling = found.find(saysAnything);
  if (telling !== undefined) return telling;
  const plain = answeredPlainly(attributes);
  const { finish_reasons, used } = found[0] ?? NOTHING_ANSWERED;
  return { ...plain, finish_reasons, used: [...used, ...plain.used] };
}

const saysAnything = ({ response, tool_calls, reasoning, rest }: Answered): boolean =>
  response !== '' || tool_calls.length > 0 || reasoning !== '' || rest.length > 0;

function answeredIn(attributes: Fields): Answered | null {
  const messages = parsedList(attributes[OUTPUT_MESSAGES]);
  if (messages !== null) return answerOf(messages, [OUTPUT_MESSAGES]);
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
      messages.push({
        finish_reason: fields['finish_reason'],
        ...eventMessage(isFields(message) ? { ...fields, ...message } : fields),
      });
    } else if (name === 'gen_ai.content.completion') addAll(messages, parsedList(fields['gen_ai.completion']) ?? []);
    else if (name === 'gen_ai.client.inference.operation.details') {
      const found = answeredIn(fields);
      if (found !== null) return { ...found, used: [] };
    }
  }
  return messages.length === 0 ? null : answerOf(messages, []);
}

function answeredPlainly(attributes: Fields): Answered {
  const documents = documentsFound(attributes);
  if (documents !== null) return { ...NOTHING_ANSWERED, response: documents.text, used: documents.used };
  const key = OUTPUTS.find((name) => isFound(name, attributes[name]));
  return key === undefined ? NOTHING_ANSWERED : { ...NOTHING_ANSWERED, response: textOf(attributes[key]), used: [key] };
}

const CALL_TYPES = new Set(['tool_call', 'tool-call', 'tool_use', 'function_call']);

/** Returns the answer that messages contain. */
function answerOf(messages: readonly unknown[], used: readonly string[]): Answered {
  const texts: string[] = [];
  const tool_calls: unknown[] = [];
  const finish_reasons: string[] = [];
  const rest: unknown[] = [];
  let reasoning = '';
  for (const message of messages) {
    if (!isFields(message)) {
      if (typeof message === 'string') texts.push(message);
      continue;
    }
    const content = message['parts'] ?? message['content'];
    const others: unknown[] = [];
    for (const part of Array.isArray(content) ? (content as unknown[]) : [content]) {
      const type = isFields(part) ? part['type'] : undefined;
      const text = partText(part);
      if (typeof type === 'string' && CALL_TYPES.has(type)) tool_calls.push(part);
      else if (type === 'reasoning' || type === 'thinking') reasoning += text;
      else if (text !== '') texts.push(text);
      else if (part !== undefined && part !== null && part !== '' && type !== 'text') others.push(part);
    }
    if (others.length > 0) rest.push({ role: message['role'], parts: others });
    const calls = parsedList(message['tool_calls']);
    if (calls !== null) addAll(tool_calls, calls);
    const reason = message['finish_reason'];
    if (typeof reason === 'string' && reason !== '') finish_reasons.push(reason);
  }
  return { response: texts.join('\n'), tool_calls, finish_reasons, reasoning, rest, used };
}

// --- messages and their parts ---

function partText(part: unknown): string {
  if (typeof part === 'string') return part;
  if (!isFields(part)) return '';
  const { text, content, type } = part;
  if (typeof text === 'string') return text;
  return typeof content === 'string' && type !== 'tool_call_response' ? content : '';
}

/**
 * Returns a text when all parts are text, else the parts, with text parts in the vendors' shape.
 */
function contentOf(parts: readonly unknown[]): unknown {
  const texts = parts.map((part) =>
    isFields(part) && part['type'] !== undefined && part['type'] !== 'text' ? null : partText(part),
  );
  if (texts.every((text) => text !== null)) return texts.join('');
  return parts.map((part, index) => (typeof texts[index] === 'string' ? { type: 'text', text: texts[index] } : part));
}

/** Converts a message of the conventions, {role, parts}, to {role, content}. */
function messageOf(message: unknown): unknown {
  if (!isFields(message) || !Array.isArray(message['parts'])) return message;
  const { parts, ...rest } = message;
  return { ...rest, content: contentOf(parts as unknown[]) };
}

/** Returns the message in a span event: its attributes, or those in its body. */
function eventMessage(fields: Fields): Record<string, unknown> {
  const { content, tool_calls, id, name } = fields;
  const message: Record<string, unknown> = { content: parsedText(content ?? fields['gen_ai.event.content']) ?? '' };
  const calls = parsedList(tool_calls);
  if (calls !== null) message['tool_calls'] = calls;
  if (typeof id === 'string') message['tool_call_id'] = id;
  if (typeof name === 'string') message['name'] = name;
  return message;
}

/**
 * Builds a message spread over attributes: gen_ai.prompt.0.role,
 * llm.input_messages.0.message.contents.0.message_content.text.
 */
function indexedMessage(item: unknown): unknown {
  const message = isFields(item) && isFields(item['message']) ? item['message'] : item;
  if (!isFields(message)) return { role: 'user', content: message };
  const { contents, tool_calls, ...rest } = message;
  const out: Record<string, unknown> = { ...rest };
  if (Array.isArray(contents)) {
    const parts = (contents as unknown[]).map((one) =>
      isFields(one) && isFields(one['message_content']) ? one['message_content'] : one,
    );
    out['content'] = contentOf(parts);
  }
  if (Array.isArray(tool_calls))
    out['tool_calls'] = (tool_calls as unknown[]).map((one) =>
      isFields(one) && isFields(one['tool_call']) ? one['tool_call'] : one,
    );
  // OpenLLMetry writes the parts of a message as JSON.
  const parts =
    typeof out['content'] === 'string' && out['content'].startsWith('[{') ? parsedList(out['content']) : null;
  if (parts !== null && contentText(parts) !== '') out['content'] = contentOf(parts);
  return out;
}

function* named(events: readonly unknown[]): Generator<[string, Fields]> {
  for (const event of events) {
    if (!isFields(event) || typeof event['name'] !== 'string') continue;
    yield [event['name'], isFields(event['attributes']) ? event['attributes'] : {}];
  }
}
