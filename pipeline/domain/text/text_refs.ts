// Stores a text once. A step's input and output are often in its attributes and, since people read
// and search them there, in its prompt and response too. The stored attributes contain a reference
// instead, however short the text, and readers restore it. So whatever happens to the text
// (retention, redaction, erasure, an export without it) also happens to the attribute.

/** Attributes that may contain the text of the prompt or of the response. */
const PLACES = [
  ['prompt', 'prompt'],
  ['input', 'prompt'],
  ['messages', 'prompt'],
  ['response', 'response'],
  ['output', 'response'],
] as const;

/** By attribute name, the text that it may refer to. */
export const TEXT_PLACES: ReadonlyMap<string, 'prompt' | 'response'> = new Map(PLACES);

type Fields = Record<string, unknown>;

interface Texts {
  prompt: string;
  response: string;
}

/**
 * Returns the attributes as stored, with `{"$ref": "prompt"}` in place of the text, and `"$json":
 * true` where the value is not a text but its JSON is.
 */
export function foldTexts(attributes: Fields, prompt: string, response: string): Fields {
  let folded = attributes;
  for (const [key, column] of PLACES) {
    const value = attributes[key];
    const stored = fold(value, column === 'prompt' ? prompt : response, column);
    if (stored === value) continue;
    if (folded === attributes) folded = { ...attributes };
    folded[key] = stored;
  }
  return folded;
}

function fold(value: unknown, text: string, column: string): unknown {
  if (isWritten(value, text)) return typeof value === 'string' ? { $ref: column } : { $ref: column, $json: true };
  // The user sent a value that looks like a reference: it is escaped.
  return typeof value === 'object' && value !== null && '$ref' in value ? { $ref: 'value', $value: value } : value;
}

/** Returns true when a non-empty text is the value or its JSON. */
function isWritten(value: unknown, text: string): boolean {
  if (text === '') return false;
  return typeof value === 'string' ? value === text : JSON.stringify(value) === text;
}

/**
 * Returns the attributes with every copy of the prompt or response replaced by its stored form
 * (redacted, truncated, made well-formed): no original remains beside the stored text, and the
 * copies can be folded.
 * @param sent texts and attributes as the event had them
 * @param shown texts and attributes as they are stored
 */
export function followTexts(attributes: Fields, sent: Texts & { attributes: Fields }, shown: Texts): Fields {
  if (attributes === sent.attributes && sent.prompt === shown.prompt && sent.response === shown.response)
    return attributes;
  let followed = attributes;
  for (const [key, column] of PLACES) {
    const value = sent.attributes[key];
    const text = shown[column];
    if (!Object.hasOwn(attributes, key) || !isWritten(value, sent[column]) || isWritten(attributes[key], text))
      continue;
    if (followed === attributes) followed = { ...attributes };
    followed[key] = typeof value === 'string' ? text : valueOf(text);
  }
  return followed;
}

/** Returns the value of a JSON text; a truncated one no longer parses and stays a text. */
function valueOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isWritten(value, text) ? value : text;
  } catch {
    return text;
  }
}

/**
 * Restores the texts in place of their references; the key of a text that no longer exists, or was
 * not requested, is omitted.
 */
export function unfoldTexts(attributes: Fields, prompt: string | undefined, response: string | undefined): Fields {
  if (!PLACES.some(([key]) => isRef(attributes[key]))) return attributes;
  const texts: Record<string, string | undefined> = { prompt, response };
  const entries = Object.entries(attributes).flatMap(([key, value]): [string, unknown][] => {
    if (!TEXT_PLACES.has(key) || !isRef(value)) return [[key, value]];
    if ('$value' in value) return [[key, value.$value]];
    const text = texts[value.$ref] ?? '';
    if (text === '') return [];
    return [[key, '$json' in value ? (JSON.parse(text) as unknown) : text]];
  });
  return Object.fromEntries(entries);
}

interface Ref {
  $ref: string;
  $value?: unknown;
}

/**
 * Checks every field: in older rows, attributes named messages were stored as sent and may contain
 * any `$ref`.
 */
function isRef(value: unknown): value is Ref {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return false;
  return value.$ref === 'prompt' || value.$ref === 'response' || (value.$ref === 'value' && '$value' in value);
}
