// Renders a prompt of the registry with values: what a model is sent, and how it reads. In: a
// template (a text, or the messages of a chat) and values. Out: messages, text, and the variables
// without a value.
import type { PromptMessage, PromptTemplate } from '../../../schemas/records/prompt.ts';
import { RENDERED_CHARS_MAX, renderTemplate, type TemplateVariables, variablesOf } from './template.ts';

export interface RenderedPrompt {
  /** The messages sent to a model; a text is one message of the user. */
  messages: PromptMessage[];
  /**
   * The form that people read: the text, or the JSON of the messages, as spans store their prompts.
   */
  text: string;
  /** Variables without a value, each once. */
  missing: string[];
  /** True when the result exceeded RENDERED_CHARS_MAX and was truncated there. */
  cut: boolean;
}

/** Returns every variable of a prompt, each once, in order. */
export function promptVariables(template: PromptTemplate): string[] {
  const texts = typeof template === 'string' ? [template] : template.map(({ content }) => content);
  return [...new Set(texts.flatMap(variablesOf))];
}

/** Renders a prompt with values. Roles are not templates. */
export function renderPrompt(template: PromptTemplate, variables: TemplateVariables): RenderedPrompt {
  let left = RENDERED_CHARS_MAX;
  const missing = new Set<string>();
  let cut = false;
  const fill = (text: string): string => {
    const rendered = renderTemplate(text, variables, left);
    left -= rendered.text.length;
    cut ||= rendered.cut;
    for (const name of rendered.missing) missing.add(name);
    return rendered.text;
  };
  const chat = typeof template !== 'string';
  const messages = (chat ? template : [{ role: 'user', content: template }]).map(({ role, content }) => ({
    role,
    content: fill(content),
  }));
  return { messages, text: chat ? JSON.stringify(messages) : (messages[0]?.content ?? ''), missing: [...missing], cut };
}
