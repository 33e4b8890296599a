// A step's input and output often stand in its attributes and, as they are what can be read and searched, in its prompt and
// response too. Stored once: in the stored attributes a reference takes their place, however short they are, and readers put the
// text back. What happens to the text (retention, redaction, erasure, an export without it) so happens to the attribute.

/** Attributes that may hold the text of the prompt or of the response. */
const PLACES = [
  ['prompt', 'prompt'],
  ['input', 'prompt'],
  ['messages', 'prompt'],
  ['response', 'response'],
  ['output', 'response'],
] as const;

/** The text that an attribute of this name may be a reference to, by the name of the attribute. */
export const TEXT_PLACES: ReadonlyMap<string, 'prompt' | 'response'> = new Map(PLACES);

type Fields = Record<string, unknown>;

interface Texts {
  prompt: string;
  response: string;
}

/** The attributes as they are stored: `{"$ref": "prompt"}` in place of the text; `"$json": true` where it was no text but its JSON is. */
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
  // What looks like a reference of ours but was sent by the user.
  return typeof value === 'object' && value !== null && '$ref' in value ? { $ref: 'value', $value: value } : value;
}

/** Whether a text, which is not empty, is the value or its JSON. */
function isWritten(value: unknown, text: string): boolean {
  if (text === '') return false;
  return typeof value === 'string' ? value === text : JSON.stringify(value) === text;
}

/**
 * The attributes with those that repeat the prompt or the response holding what became of it (redacted, cut, made well-formed): nothing of it
 * stays beside the text that is stored, and they can be folded.
 * @param sent as the event had them
 * @param shown as they are stored
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

/** The value that a text is the JSON of; what was cut is none any more, and stays a text. */
function valueOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isWritten(value, text) ? value : text;
  } catch {
    return text;
  }
}

/** Puts the texts back in place of their references; a text that is no longer there, or not asked for, leaves its key out. */
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

/** Of ours: older rows hold attributes named messages as they were sent, in which a `$ref` may be anything. */
function isRef(value: unknown): value is Ref {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return false;
  return value.$ref === 'prompt' || value.$ref === 'response' || (value.$ref === 'value' && '$value' in value);
}
