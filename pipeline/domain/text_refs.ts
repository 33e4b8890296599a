// A step's input and output often stand in its attributes and, as they are what can be read and searched, in its prompt and
// response too. Stored once: in the stored attributes a reference takes their place, and readers put the text back. What
// happens to the text (retention, redaction, erasure) so happens to the attribute.

/** Attributes that may hold the text of the prompt or of the response. */
const PLACES = [
  ['prompt', 'prompt'],
  ['input', 'prompt'],
  ['response', 'response'],
  ['output', 'response'],
] as const;

/** Shorter texts are not worth a reference. */
const LENGTH_MIN = 48;

type Fields = Record<string, unknown>;

/** The attributes as they are stored: `{"$ref": "prompt"}` in place of the text; `"$json": true` where it was no text but its JSON is. */
export function foldTexts(attributes: Fields, prompt: string, response: string): Fields {
  let folded = attributes;
  for (const [key, column] of PLACES) {
    const value = attributes[key];
    const text = column === 'prompt' ? prompt : response;
    const stored = fold(value, text, column);
    if (stored === value) continue;
    if (folded === attributes) folded = { ...attributes };
    folded[key] = stored;
  }
  return folded;
}

function fold(value: unknown, text: string, column: string): unknown {
  if (typeof value === 'string') return text.length >= LENGTH_MIN && value === text ? { $ref: column } : value;
  if (typeof value !== 'object' || value === null) return value;
  if (text.length >= LENGTH_MIN && JSON.stringify(value) === text) return { $ref: column, $json: true };
  // What looks like a reference of ours but was sent by the user.
  return '$ref' in value ? { $ref: 'value', $value: value } : value;
}

/** Puts the texts back in place of their references; a text that is no longer there, or not asked for, leaves its key out. */
export function unfoldTexts(attributes: Fields, prompt: string | undefined, response: string | undefined): Fields {
  if (!PLACES.some(([key]) => isRef(attributes[key]))) return attributes;
  const texts: Record<string, string | undefined> = { prompt, response };
  const entries = Object.entries(attributes).flatMap(([key, value]): [string, unknown][] => {
    if (!isRef(value) || !PLACES.some(([place]) => place === key)) return [[key, value]];
    if ('$value' in value) return [[key, value.$value]];
    const text = texts[String(value.$ref)] ?? '';
    if (text === '') return [];
    return [[key, '$json' in value ? (JSON.parse(text) as unknown) : text]];
  });
  return Object.fromEntries(entries);
}

function isRef(value: unknown): value is { $ref: unknown; $value?: unknown } {
  return typeof value === 'object' && value !== null && '$ref' in value;
}
