// Reads the parts of messages that are not text: tool calls in the shapes of the vendors and
// libraries, and attachments. Pure; never throws.
import { hash } from 'node:crypto';
import { firstOf, isFields, textOf, type Fields } from './values.ts';

/** Maximum characters of an attachment's address that is shown. */
const URL_CHARS_MAX = 2000;

export interface ToolCall {
  /** null if the client sent none. */
  id: string | null;
  name: string;
  /** Arguments as text. */
  arguments: string;
}

export interface Attachment {
  type: string;
  /** Address of the content; null if the content was sent inline. */
  url: string | null;
  /** Hash of the part. */
  digest: string;
}

/** Returns a tool call of any vendor's shape. */
export function callOf(sent: unknown): ToolCall {
  if (!isFields(sent)) return { id: null, name: '', arguments: textOf(sent) };
  const inner = isFields(sent['function']) ? sent['function'] : sent;
  const { name, toolName, arguments: given, input, args, action } = inner;
  return {
    id: firstOf(sent['call_id'], sent['toolCallId'], sent['tool_call_id'], sent['id']),
    name: firstOf(name, toolName, sent['type']) ?? '',
    arguments: textOf(given ?? input ?? args ?? action),
  };
}

/** Returns the tool calls of a span's attribute. */
export function callsOf(sent: unknown): ToolCall[] {
  return Array.isArray(sent) ? (sent as unknown[]).map(callOf) : [];
}

/** Returns a part that is neither text nor tool call. */
export function attachmentOf(part: Fields, type: string): Attachment {
  return {
    type: type === '' ? 'unknown' : type,
    url: urlOf(part),
    digest: hash('sha1', JSON.stringify(part), 'base64'),
  };
}

function urlOf(part: Fields): string | null {
  const places = [part, part['image_url'], part['source'], part['file'], part['file_data'], part['image']];
  for (const place of places) {
    const url =
      typeof place === 'string'
        ? place
        : isFields(place)
          ? firstOf(place['url'], place['uri'], place['image_url'])
          : null;
    if (url !== null && url.length <= URL_CHARS_MAX && /^https?:\/\//i.test(url)) return url;
  }
  return null;
}
