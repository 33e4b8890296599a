// Templates of prompts as the portal edits and fills them: a text, or the messages of a chat. Rendering
// gives what the service's own rendering gives (pipeline/domain/text/prompt.ts; a unit test compares
// the two). Pure.
import { variableNames, variablePlaces } from '../../editor/variables.ts';

export interface TemplateMessage {
  role: string;
  content: string;
}
export type Template = string | TemplateMessage[];
export type Values = Readonly<Record<string, unknown>>;

/** Returns the messages of a template; a text is one message of the user. */
export const messagesOf = (template: Template): readonly TemplateMessage[] =>
  typeof template === 'string' ? [{ role: 'user', content: template }] : template;

/** Returns the variables of templates, each once, in order. */
export const variablesOf = (...templates: readonly Template[]): string[] =>
  variableNames(...templates.flatMap((template) => messagesOf(template).map(({ content }) => content)));

export const sameTemplate = (a: Template, b: Template): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns true if nothing could be sent: no message has a text. */
export const isBlank = (template: Template): boolean =>
  messagesOf(template).every(({ content }) => content.trim() === '');

/** Returns a template as the other type; what cannot be kept of a chat is its roles. */
export function asType(template: Template, type: 'text' | 'chat'): Template {
  if (type === 'chat') return messagesOf(template).map((message) => ({ ...message }));
  return messagesOf(template)
    .map(({ content }) => content)
    .join('\n\n');
}

/**
 * Returns the value of a variable: that of its whole name, else that of the path that its dots make;
 * undefined without one.
 */
export function valueOf(name: string, values: Values): unknown {
  const whole = own(values, name);
  return whole === undefined && name.includes('.') ? name.split('.').reduce<unknown>(own, values) : whole;
}

function own(from: unknown, key: string): unknown {
  return typeof from === 'object' && from !== null && Object.hasOwn(from, key)
    ? (from as Record<string, unknown>)[key]
    : undefined;
}

/** Returns a value as it stands in a rendered text. */
export const textOf = (value: unknown): string => {
  if (typeof value === 'string') return value;
  return value === undefined ? '' : JSON.stringify(value);
};

/** Returns the variables of a template without a value, each once. */
export const missingValues = (template: Template, values: Values): string[] =>
  variablesOf(template).filter((name) => valueOf(name, values) === undefined);

/** Returns the messages with values in the place of variables; one without a value stays as it is written. */
export function rendered(template: Template, values: Values): TemplateMessage[] {
  return messagesOf(template).map(({ role, content }) => ({ role, content: filled(content, values) }));
}

function filled(content: string, values: Values): string {
  const parts: string[] = [];
  let at = 0;
  for (const { name, from, to } of variablePlaces(content)) {
    const value = valueOf(name, values);
    parts.push(content.slice(at, from), value === undefined ? content.slice(from, to) : textOf(value));
    at = to;
  }
  return [...parts, content.slice(at)].join('');
}
