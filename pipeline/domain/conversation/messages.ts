// Reads the messages of a stored prompt in one shape, whatever the client sent: OpenAI chat
// completions and responses, Anthropic messages, OpenTelemetry GenAI, LangChain, or plain text. In:
// the text of a prompt. Out: messages with their role, text, tool calls and a hash. Pure; never
// throws.
import { hash } from 'node:crypto';
import { attachmentOf, callOf, type Attachment, type ToolCall } from './parts.ts';
import { isFields, textOf, type Fields } from './values.ts';

/** Maximum characters of a message's text that are shown. */
export const MESSAGE_CHARS_MAX = 256 * 1024;

export interface Message {
  /** Position in the prompt as sent. One sent message may become several. */
  index: number;
  role: string;
  /** The whole text. */
  text: string;
  reasoning: string;
  tool_calls: ToolCall[];
  /** Call whose result the message is; empty for none. */
  tool_call_id: string;
  attachments: Attachment[];
  /** Hash of role, text, tool calls and attachments. Messages that say the same have the same. */
  key: string;
}

type Draft = Omit<Message, 'key'> & {
  /** True for an item of the Responses API, whose answers are spread over several items. */
  isItem?: true;
};

/** Returns the messages of a prompt; a text that is no list of messages is one message of the user. */
export function messagesIn(prompt: string): Message[] {
  if (prompt === '') return [];
  const sent = listIn(prompt);
  const drafts = sent?.flatMap(draftsOf) ?? [emptyDraft('user', 0, prompt)];
  return joinItems(drafts).map(keyed);
}

/** Returns the key of the message that an answer becomes when the client sends it back. */
export function answerKey(text: string, toolCalls: readonly ToolCall[]): string {
  return keyOf({ role: 'assistant', text, tool_calls: toolCalls, attachments: [] });
}

/** Returns the list of messages that a text is the JSON of; null if it is no such list. */
function listIn(prompt: string): unknown[] | null {
  if (!/^\s*[[{]/.test(prompt)) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(prompt);
  } catch {
    // The prompt is plain text that begins like JSON.
    return null;
  }
  const list = Array.isArray(parsed) ? (parsed as unknown[]) : listWithin(parsed);
  return list !== null && list.length > 0 && list.every(isMessage) ? list : null;
}

/** Returns the messages of a request that was stored as a whole. */
function listWithin(request: unknown): unknown[] | null {
  if (!isFields(request)) return null;
  const { messages, contents, input, system, instructions } = request;
  const list = [messages, contents, input].find((value) => Array.isArray(value));
  if (list === undefined) return null;
  const first = system ?? instructions;
  return first === undefined || first === null
    ? (list as unknown[])
    : [{ role: 'system', content: first }, ...(list as unknown[])];
}

function isMessage(value: unknown): boolean {
  if (typeof value === 'string') return true;
  // LangChain also writes [role, text].
  if (Array.isArray(value)) return value.length === 2 && value.every((item) => typeof item === 'string');
  if (!isFields(value)) return false;
  return (
    typeof value['role'] === 'string' ||
    (typeof value['type'] === 'string' &&
      ['content', 'kwargs', 'data', 'call_id', 'summary', 'output', 'id'].some((key) => key in value)) ||
    'content' in value ||
    'parts' in value
  );
}

/** Roles by the names that libraries give them. */
const ROLES: ReadonlyMap<string, string> = new Map([
  ['human', 'user'],
  ['ai', 'assistant'],
  ['model', 'assistant'],
  ['aimessagechunk', 'assistant'],
  ['humanmessage', 'user'],
  ['aimessage', 'assistant'],
  ['systemmessage', 'system'],
  ['toolmessage', 'tool'],
  ['functionmessage', 'tool'],
  ['function', 'tool'],
]);

const roleOf = (role: string): string => ROLES.get(role.toLowerCase()) ?? role;

function emptyDraft(role: string, index: number, text = ''): Draft {
  return { index, role, text, reasoning: '', tool_calls: [], tool_call_id: '', attachments: [] };
}

function draftsOf(sent: unknown, index: number): Draft[] {
  if (typeof sent === 'string') return [emptyDraft('user', index, sent)];
  if (Array.isArray(sent)) {
    const [role, text] = sent as [string, string];
    return [emptyDraft(roleOf(role), index, text)];
  }
  if (!isFields(sent)) return [];
  const item = itemDraft(sent, index);
  if (item !== null) return [item];
  const { fields, role } = unwrapped(sent);
  return messageDrafts(fields, role, index);
}

/** Returns an item of the Responses API that is no message; null for anything else. */
function itemDraft(sent: Fields, index: number): Draft | null {
  const { type } = sent;
  if (typeof type !== 'string' || typeof sent['role'] === 'string') return null;
  if (type === 'reasoning')
    return {
      ...emptyDraft('assistant', index),
      reasoning: partsText(sent['summary'] ?? sent['content']),
      isItem: true,
    };
  if (type.endsWith('_call_output'))
    return { ...emptyDraft('tool', index, contentText(sent['output'])), tool_call_id: textOf(sent['call_id']) };
  if (type.endsWith('_call')) return { ...emptyDraft('assistant', index), tool_calls: [callOf(sent)], isItem: true };
  return null;
}

/** Returns the fields of a message and its role, for messages that LangChain serialized too. */
function unwrapped(sent: Fields): { fields: Fields; role: string } {
  const inner = isFields(sent['kwargs']) ? sent['kwargs'] : isFields(sent['data']) ? sent['data'] : null;
  const { id, role, type } = sent;
  if (typeof role === 'string') return { fields: sent, role: roleOf(role) };
  const className = Array.isArray(id) ? (id as unknown[]).at(-1) : undefined;
  const named = typeof className === 'string' ? className : typeof type === 'string' ? type : 'user';
  const known = ROLES.get(named.toLowerCase()) ?? (named === 'message' || named === 'constructor' ? 'user' : named);
  return { fields: inner ?? sent, role: known };
}

/**
 * Returns a message, preceded by the results of tools that it holds: Anthropic's clients send these
 * as parts of a user's message.
 */
function messageDrafts(fields: Fields, role: string, index: number): Draft[] {
  const draft = emptyDraft(role, index);
  const results: Draft[] = [];
  const content = fields['content'] ?? fields['parts'] ?? fields['text'];
  if (Array.isArray(content)) for (const part of content as unknown[]) addPart(draft, results, part);
  else draft.text = textOf(content);
  for (const key of ['reasoning_content', 'reasoning'])
    if (typeof fields[key] === 'string') draft.reasoning += fields[key];
  if (typeof fields['refusal'] === 'string' && draft.text === '') draft.text = fields['refusal'];
  const { tool_calls: calls, function_call: legacy } = fields;
  if (Array.isArray(calls) && draft.tool_calls.length === 0) draft.tool_calls = (calls as unknown[]).map(callOf);
  else if (isFields(legacy)) draft.tool_calls.push(callOf(legacy));
  if (role === 'tool') draft.tool_call_id = textOf(fields['tool_call_id'] ?? fields['id'] ?? fields['name']);
  const isEmpty =
    draft.text === '' && draft.reasoning === '' && draft.tool_calls.length + draft.attachments.length === 0;
  return isEmpty && results.length > 0 ? results : [...results, draft];
}

const CALLS = new Set(['tool_use', 'server_tool_use', 'mcp_tool_use', 'tool_call', 'tool-call', 'function_call']);
const RESULTS = new Set(['tool_result', 'tool_call_response', 'tool-result', 'function_response']);
const THOUGHTS = new Set(['thinking', 'reasoning', 'redacted_thinking']);

function addPart(draft: Draft, results: Draft[], part: unknown): void {
  if (!isFields(part)) {
    draft.text += textOf(part);
    return;
  }
  const type = typeof part['type'] === 'string' ? part['type'] : '';
  if (THOUGHTS.has(type))
    draft.reasoning += partsText(part['thinking'] ?? part['text'] ?? part['content'] ?? part['summary']);
  else if (CALLS.has(type) || isFields(part['functionCall']))
    draft.tool_calls.push(callOf(part['functionCall'] ?? part));
  else if (RESULTS.has(type) || isFields(part['functionResponse'])) results.push(resultDraft(part, draft.index));
  else if (typeof part['text'] === 'string') draft.text += part['text'];
  else if (type === 'refusal') draft.text += textOf(part['refusal']);
  else if ((type === 'text' || type === '') && typeof part['content'] === 'string') draft.text += part['content'];
  else draft.attachments.push(attachmentOf(part, type));
}

function resultDraft(part: Fields, index: number): Draft {
  const given = isFields(part['functionResponse']) ? part['functionResponse'] : part;
  const result = given['content'] ?? given['response'] ?? given['result'] ?? given['output'];
  const id = given['tool_use_id'] ?? given['toolCallId'] ?? given['tool_call_id'] ?? given['id'] ?? given['name'];
  return { ...emptyDraft('tool', index, contentText(result)), tool_call_id: textOf(id) };
}

/** Returns the text of a content: of a text, of its parts, or its JSON if it has no text. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content);
  const texts = partsText(content);
  return texts === '' && content.length > 0 ? JSON.stringify(content) : texts;
}

function partsText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content);
  return (content as unknown[])
    .map((part) =>
      isFields(part) ? textOf(part['text'] ?? (part['type'] === 'text' ? part['content'] : '')) : textOf(part),
    )
    .join('');
}

/** Joins the items of one answer of the Responses API: its thinking, its text and its calls. */
function joinItems(drafts: readonly Draft[]): Draft[] {
  const joined: Draft[] = [];
  for (const draft of drafts) {
    const last = joined.at(-1);
    if (last?.role === 'assistant' && draft.role === 'assistant' && (last.isItem ?? draft.isItem) === true) {
      last.text += draft.text;
      last.reasoning += draft.reasoning;
      last.tool_calls.push(...draft.tool_calls);
      last.attachments.push(...draft.attachments);
    } else joined.push(draft);
  }
  return joined;
}

function keyed({ index, role, text, reasoning, tool_calls, tool_call_id, attachments }: Draft): Message {
  const key = keyOf({ role, text, tool_calls, attachments });
  return { index, role, text, reasoning, tool_calls, tool_call_id, attachments, key };
}

type Said = { role: string; text: string; tool_calls: readonly ToolCall[]; attachments: readonly Attachment[] };

function keyOf({ role, text, tool_calls, attachments }: Said): string {
  const calls = tool_calls.map(({ name, arguments: given }) => [name, given]);
  const others = attachments.map(({ type, digest }) => [type, digest]);
  const frame = JSON.stringify([role, calls, others]);
  return hash('sha1', `${frame}\n${text}`, 'base64');
}
