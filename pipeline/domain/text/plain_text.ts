// Extracts the plain text of a prompt or a response: what people search. Of a list of messages it is
// the text of every message and text part, the names and arguments of tool calls, and tool results;
// of other JSON its strings and numbers; any other text is taken as it is. Keys, roles, part types,
// ids and media are left out. In: a stored text. Out: pieces of text, one a line. Pure; linear.
import { type JsonFields, type JsonValue, readJson } from './json_reader.ts';

const JSON_START = /^[ \t\n\r]*[[{"]/;
const CONTAINER_START = /^[ \t\n\r]*[[{]/;
const TOOL_ROLES: ReadonlySet<string> = new Set(['tool', 'function', 'ipython']);
/** Fields of a message or a part that contain text, or parts with text. */
const TEXT_KEYS = [
  'content',
  'parts',
  'text',
  'thinking',
  'reasoning',
  'reasoning_content',
  'summary',
  'refusal',
  'transcript',
  'value',
];
const CALL_KEYS = ['tool_calls', 'function_call', 'functionCall', 'tool_call'];
const NAME_KEYS = ['name', 'toolName', 'tool_name'];
const ARGUMENT_KEYS = ['arguments', 'args', 'input', 'parameters'];
const RESULT_KEYS = ['result', 'output', 'response', 'functionResponse'];
/** Part types whose text is a tool's result. */
const RESULT_TYPE = /result|response|output$/;

/** Returns the plain text of a prompt or a response. */
export function plainText(text: string): string {
  if (!JSON_START.test(text)) return text;
  const read = readJson(text);
  if (read === null) return text;
  // A truncated text is no longer JSON, but a truncated list of messages is still recognizable.
  if (read.truncated && !isMessages(read.value)) return text;
  const pieces: string[] = [];
  addValues(read.value, pieces);
  return pieces.join('\n');
}

const isFields = (value: JsonValue | undefined): value is JsonFields => value instanceof Map;

function isMessage(value: JsonValue): boolean {
  if (!isFields(value) || typeof value.get('role') !== 'string') return false;
  return ['content', 'parts', ...CALL_KEYS].some((key) => value.has(key));
}

/** Lists of some formats contain tool calls and results beside the messages. */
function isMessages(value: JsonValue): value is JsonFields[] {
  return Array.isArray(value) && value.some(isMessage) && value.every(isFields);
}

/** Adds the strings and numbers of a value; messages in it are read as such. */
function addValues(value: JsonValue, pieces: string[]): void {
  if (typeof value === 'string') pieces.push(value);
  else if (isMessages(value)) for (const message of value) addMessage(message, false, pieces);
  else if (Array.isArray(value)) for (const item of value) addValues(item, pieces);
  else if (value !== null) {
    if (isMessage(value)) addMessage(value, false, pieces);
    else for (const field of value.values()) addValues(field, pieces);
  }
}

/**
 * Adds the texts of a message or of a part of one.
 * @param result true within a tool's result
 */
function addMessage(message: JsonFields, result: boolean, pieces: string[]): void {
  const type = message.get('type');
  const role = message.get('role');
  const isResult =
    result ||
    (typeof role === 'string' && TOOL_ROLES.has(role)) ||
    (typeof type === 'string' && RESULT_TYPE.test(type) && type !== 'output_text');
  for (const key of TEXT_KEYS) addText(message.get(key), isResult, pieces);
  for (const key of CALL_KEYS) addCalls(message.get(key), pieces);
  if (role !== undefined) return;
  if (ARGUMENT_KEYS.some((key) => message.has(key)) || message.has('function')) addCalls(message, pieces);
  for (const key of RESULT_KEYS) addResult(message.get(key), pieces);
}

function addText(value: JsonValue | undefined, result: boolean, pieces: string[]): void {
  if (typeof value === 'string') addString(value, result, pieces);
  else if (Array.isArray(value)) for (const item of value) addText(item, result, pieces);
  else if (isFields(value) && result && !value.has('type')) addValues(value, pieces);
  else if (isFields(value)) addMessage(value, result, pieces);
}

/** A tool's arguments and results are often JSON in a string. */
function addString(text: string, decode: boolean, pieces: string[]): void {
  const read = decode && CONTAINER_START.test(text) ? readJson(text) : null;
  if (read === null || read.truncated) pieces.push(text);
  else addValues(read.value, pieces);
}

function addCalls(value: JsonValue | undefined, pieces: string[]): void {
  if (Array.isArray(value)) for (const item of value) addCalls(item, pieces);
  if (!isFields(value)) return;
  const inner = value.get('function');
  const call = isFields(inner) ? inner : value;
  const name = valueOf(call, NAME_KEYS);
  if (typeof name === 'string') pieces.push(name);
  const given = valueOf(call, ARGUMENT_KEYS);
  if (typeof given === 'string') addString(given, true, pieces);
  else if (given !== undefined) addValues(given, pieces);
}

function addResult(value: JsonValue | undefined, pieces: string[]): void {
  if (Array.isArray(value)) for (const item of value) addResult(item, pieces);
  else if (typeof value === 'string') addString(value, true, pieces);
  else if (isFields(value) && typeof value.get('type') === 'string') addMessage(value, true, pieces);
  else if (isFields(value)) addValues(value.get('response') ?? value, pieces);
}

function valueOf(fields: JsonFields, keys: readonly string[]): JsonValue | undefined {
  const key = keys.find((name) => fields.has(name));
  return key === undefined ? undefined : fields.get(key);
}
