// Makes items of a dataset from the texts of a trace or span. Pure.
import { readMessages } from '../../trace/text/messages.ts';

/** Source of an item's input. */
export type InputForm = 'message' | 'messages' | 'variables';

/** Texts of a trace or span from which an item is made. */
export interface Source {
  trace_id: string;
  /** Null for the texts of the whole trace. */
  span_id: string | null;
  prompt: string;
  response: string;
  /** Values of the prompt's variables; null where none are recorded. */
  variables: Record<string, unknown> | null;
}

export interface NewItem {
  input: Record<string, unknown>;
  expected: Record<string, unknown> | null;
  metadata: Record<string, unknown>;
}

/** Returns the text of an answer, which may be recorded as a list of messages. */
export function answerOf(response: string): string {
  const messages = readMessages(response);
  return messages?.findLast(({ text }) => text !== '')?.text ?? response;
}

function inputOf({ prompt, variables }: Source, form: InputForm): Record<string, unknown> | null {
  if (form === 'variables') return variables;
  const messages = readMessages(prompt);
  if (messages === null) return prompt === '' ? null : { text: prompt };
  if (form === 'messages') return { messages: messages.map(({ role, text }) => ({ role, content: text })) };
  const last = messages.findLast(({ role, text }) => role === 'user' && text !== '');
  return last === undefined ? null : { text: last.text };
}

/**
 * Returns the item of a source; null where the source has no such input.
 * @param expected text that a good answer has; null for none
 */
export function itemFrom(source: Source, form: InputForm, expected: string | null): NewItem | null {
  const input = inputOf(source, form);
  if (input === null) return null;
  const { trace_id, span_id } = source;
  return {
    input,
    expected: expected === null || expected === '' ? null : { answer: expected },
    metadata: { trace_id, ...(span_id === null ? {} : { span_id }) },
  };
}

/** Reads an item that was written as JSON. @returns the item, or what is wrong with it in words */
export function readItem(text: string): NewItem | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not valid JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
  if (!isFields(value)) return 'The item must be an object with input, and may have expected and metadata.';
  const { input, expected = null, metadata = {}, ...more } = value;
  const [other] = Object.keys(more);
  if (other !== undefined) return `The item has a member ${other}; accepted are input, expected and metadata.`;
  if (!isFields(input)) return 'input must be an object, for example {"text": "May I return a sofa?"}.';
  if (expected !== null && !isFields(expected))
    return 'expected must be an object or null, for example {"answer": "yes"}.';
  if (metadata !== null && !isFields(metadata)) return 'metadata must be an object.';
  return { input, expected, metadata: metadata ?? {} };
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Writes an item as JSON that a person edits. */
export const writeItem = ({ input, expected, metadata }: NewItem): string =>
  JSON.stringify({ input, expected, metadata }, null, 2);
