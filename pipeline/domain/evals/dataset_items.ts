// Turns a dataset item into the messages sent to a model, and defines which items are equal. Pure.
import type { DatasetItem } from '../../../schemas/records/dataset.ts';
import type { PromptTemplate } from '../../../schemas/records/prompt.ts';
import { renderPrompt } from '../text/prompt.ts';

export interface ItemMessage {
  role: string;
  content: string;
}

/** Returns JSON with the keys of every object sorted, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${entries.map(([key, held]) => `${JSON.stringify(key)}:${canonicalJson(held)}`).join(',')}}`;
}

/**
 * Returns the conversation of an item: the template with the item's input filled in; without a
 * template, the input's own messages, prompt or text; else the input as JSON. {{input}} is the
 * whole input as JSON unless it has a field of that name.
 * @returns the messages, or the reason in words why there are none
 */
export function itemMessages(
  { input }: Pick<DatasetItem, 'input'>,
  template: PromptTemplate | null,
): ItemMessage[] | string {
  if (template !== null) {
    const { messages, missing } = renderPrompt(template, { input, ...input });
    return missing.length === 0
      ? messages
      : `the item's input has no value for ${missing.map((name) => `{{${name}}}`).join(', ')}`;
  }
  const { messages, prompt, text } = input;
  if (Array.isArray(messages) && messages.length > 0)
    return messages.every(isMessage)
      ? messages.map(({ role, content }) => ({ role, content }))
      : "the item's input.messages is no list of {role, content}";
  const single = typeof prompt === 'string' ? prompt : text;
  if (typeof single === 'string' && single !== '') return [{ role: 'user', content: single }];
  return Object.keys(input).length === 0
    ? "the item's input is empty, and the run has no prompt"
    : [{ role: 'user', content: JSON.stringify(input) }];
}

function isMessage(value: unknown): value is ItemMessage {
  if (typeof value !== 'object' || value === null) return false;
  const { role, content } = value as Record<string, unknown>;
  return typeof role === 'string' && typeof content === 'string';
}
