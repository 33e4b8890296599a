// Reads a prompt as a list of messages. Prompts are stored as JSON text of messages; other texts are
// shown as they are. Pure; large texts are read in the worker.

export interface MessageToolCall {
  id: string | null;
  name: string;
  arguments: string;
}

export interface Attachment {
  type: string;
  /** Address of the content, which may be a data: URL; null if there is none. */
  url: string | null;
}

export interface Message {
  role: string;
  text: string;
  reasoning: string | null;
  tool_calls: readonly MessageToolCall[];
  tool_call_id: string | null;
  attachments: readonly Attachment[];
}

type Fields = Record<string, unknown>;
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? null, null, 2));

interface Parts {
  text: string[];
  reasoning: string[];
  calls: MessageToolCall[];
  attachments: Attachment[];
  result: string | null;
}

function readPart(part: unknown, into: Parts): void {
  if (typeof part === 'string') into.text.push(part);
  if (!isObject(part)) return;
  const type = textOf(part['type']);
  if (type === 'thinking' || type === 'reasoning')
    into.reasoning.push(textOf(part['thinking'] ?? part['text'] ?? part['content']));
  else if (type === 'tool_use' || type === 'tool-call' || type === 'tool_call')
    into.calls.push({
      id: textOrNull(part['id'] ?? part['toolCallId']),
      name: textOf(part['name'] ?? part['toolName']),
      arguments: asText(part['input'] ?? part['args'] ?? part['arguments'] ?? {}),
    });
  else if (type === 'tool_result' || type === 'tool-result' || type === 'tool_call_response') {
    into.result = textOrNull(part['tool_use_id'] ?? part['toolCallId'] ?? part['id']);
    into.text.push(contentText(part['content'] ?? part['output'] ?? part['result'] ?? part['response']));
  } else if (typeof part['text'] === 'string') into.text.push(part['text']);
  else if (type === 'text' && typeof part['content'] === 'string') into.text.push(part['content']);
  else into.attachments.push({ type: type === '' ? 'part' : type, url: urlOf(part) });
}

function urlOf(part: Fields): string | null {
  const image = part['image_url'] ?? part['url'] ?? part['file_url'];
  if (typeof image === 'string') return image;
  if (isObject(image)) return textOrNull(image['url']);
  const source = part['source'];
  if (!isObject(source)) return null;
  if (typeof source['url'] === 'string') return source['url'];
  return typeof source['data'] === 'string' ? `data:${textOf(source['media_type'])};base64,${source['data']}` : null;
}

function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : asText(content);
  const parts: Parts = { text: [], reasoning: [], calls: [], attachments: [], result: null };
  for (const part of content) readPart(part, parts);
  return parts.text.join('\n');
}

function readToolCall(value: unknown): MessageToolCall {
  const call = isObject(value) ? value : {};
  const fn = isObject(call['function']) ? call['function'] : call;
  return {
    id: textOrNull(call['id']),
    name: textOf(fn['name']),
    arguments: asText(fn['arguments'] ?? fn['args'] ?? ''),
  };
}

function readMessage(value: Fields): Message {
  const parts: Parts = { text: [], reasoning: [], calls: [], attachments: [], result: null };
  const content = value['content'] ?? value['parts'];
  if (Array.isArray(content)) for (const part of content) readPart(part, parts);
  else if (content !== null && content !== undefined) parts.text.push(asText(content));
  const calls = Array.isArray(value['tool_calls']) ? value['tool_calls'].map(readToolCall) : [];
  const reasoning = textOrNull(value['reasoning_content'] ?? value['reasoning']);
  if (reasoning !== null) parts.reasoning.unshift(reasoning);
  return {
    role: textOf(value['role']) || (parts.result === null ? 'message' : 'tool'),
    text: parts.text.join('\n'),
    reasoning: parts.reasoning.length === 0 ? null : parts.reasoning.join('\n'),
    tool_calls: [...parts.calls, ...calls],
    tool_call_id: textOrNull(value['tool_call_id']) ?? parts.result,
    attachments: parts.attachments,
  };
}

/** Returns the messages of a prompt; null for a text that is no list of messages. */
export function readMessages(text: string): Message[] | null {
  const start = text.trimStart().charAt(0);
  if (start !== '[' && start !== '{') return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const list: unknown = isObject(value) && Array.isArray(value['messages']) ? value['messages'] : value;
  if (!Array.isArray(list) || list.length === 0) return null;
  if (!list.every((item) => isObject(item) && (typeof item['role'] === 'string' || 'content' in item))) return null;
  return list.filter(isObject).map(readMessage);
}
