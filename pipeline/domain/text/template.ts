// Templates of prompts and judges: text with variables in double braces. In: a template and values.
// Out: the text, and the variables without a value. One pass: a value that looks like a variable
// stays as it is. The result is bounded, since a short template can name a long value any number of
// times.

/** {{name}}, with optional white space inside the braces. Anything else between braces is text. */
const VARIABLE = /\{\{\s*([\p{L}\p{N}_.-]+)\s*\}\}/gu;

/** Maximum characters of a rendered text. */
export const RENDERED_CHARS_MAX = 4 * 1024 * 1024;

/** Values by name. Texts are inserted as they are, everything else as compact JSON. */
export type TemplateVariables = Readonly<Record<string, unknown>>;

export interface Rendered {
  text: string;
  /**
   * Variables without a value, each once, in the order of the template; they stay in the text as
   * written.
   */
  missing: string[];
  /** True when the text exceeded the bound and was truncated there. */
  cut: boolean;
}

/**
 * Renders a template. A name with dots is looked up whole first, then as a path: {{input.question}}
 * is `variables['input.question']`, else `variables.input.question`.
 */
export function renderTemplate(
  template: string,
  variables: TemplateVariables,
  charsMax = RENDERED_CHARS_MAX,
): Rendered {
  const missing = new Set<string>();
  const texts = new Map<string, string | undefined>();
  const parts: string[] = [];
  let chars = 0;
  let at = 0;
  const add = (part: string) => {
    parts.push(part.slice(0, Math.max(0, charsMax - chars)));
    chars += part.length;
  };
  for (const match of template.matchAll(VARIABLE)) {
    const [written, name = ''] = match;
    if (!texts.has(name)) texts.set(name, textOf(valueOf(name, variables)));
    const text = texts.get(name);
    if (text === undefined) missing.add(name);
    add(template.slice(at, match.index));
    add(text ?? written);
    at = match.index + written.length;
  }
  add(template.slice(at));
  return { text: parts.join(''), missing: [...missing], cut: chars > charsMax };
}

/** Returns the names of a template's variables, each once, in order. */
export function variablesOf(template: string): string[] {
  return [...new Set(Array.from(template.matchAll(VARIABLE), ([, name = '']) => name))];
}

/** Returns a variable's value; undefined when there is none. */
function valueOf(name: string, variables: TemplateVariables): unknown {
  const whole = own(variables, name);
  return whole === undefined && name.includes('.') ? name.split('.').reduce<unknown>(own, variables) : whole;
}

/** A value that JSON cannot represent counts as missing. */
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : JSON.stringify(value));

function own(from: unknown, key: string): unknown {
  return typeof from === 'object' && from !== null && Object.hasOwn(from, key)
    ? (from as Record<string, unknown>)[key]
    : undefined;
}
