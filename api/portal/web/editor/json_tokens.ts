// JSON as tokens, for the colours of an editor and for the place of a syntax error. Takes a text of any
// form and returns in linear time; JSON.parse alone decides whether a text is JSON. Pure.

export type JsonKind = 'property' | 'string' | 'value' | 'mark';

export interface JsonToken {
  kind: JsonKind;
  text: string;
  from: number;
  to: number;
}

/** A string that is not closed ends with its line, so that no part of a text is read twice. */
const TOKEN = /"(?:[^"\\\n]|\\.)*"?|-?\d[\w.+-]*|[A-Za-z_]\w*|\S/g;
const COLON_NEXT = /\s*:/y;

/** Yields the tokens of a text, in order. */
export function* jsonTokens(text: string): Generator<JsonToken> {
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const to = index + token.length;
    yield { kind: kindOf(text, token, to), text: token, from: index, to };
  }
}

function kindOf(text: string, token: string, to: number): JsonKind {
  if (!token.startsWith('"')) return /^[\w-]/.test(token) ? 'value' : 'mark';
  COLON_NEXT.lastIndex = to;
  return COLON_NEXT.test(text) ? 'property' : 'string';
}

/** What may come next: after `[` a value or the end of the list, and so on. */
type Wanted = 'value' | 'value or end' | 'key' | 'key or end' | 'colon' | 'comma or end';

/** Returns the first token that may not stand where it does, or the end of a text that ends too early. */
export function jsonErrorPlace(text: string): { from: number; to: number } {
  const open: string[] = [];
  let wanted: Wanted = 'value';
  for (const token of jsonTokens(text)) {
    const next = after(token.text, wanted, open);
    if (next === null) return { from: token.from, to: token.to };
    wanted = next;
  }
  const end = text.trimEnd().length;
  return { from: end, to: end };
}

/** Returns what may follow a token; null if the token may not stand here. Opens and closes lists and objects. */
function after(token: string, wanted: Wanted, open: string[]): Wanted | null {
  if (token === '}' || token === ']') {
    const last = open.pop();
    return wanted.endsWith('end') && last === token ? 'comma or end' : null;
  }
  if (wanted === 'colon') return token === ':' ? 'value' : null;
  if (wanted === 'comma or end') {
    if (token !== ',' || open.length === 0) return null;
    return open.at(-1) === '}' ? 'key' : 'value';
  }
  if (wanted.startsWith('key')) return token.startsWith('"') && isJson(token) ? 'colon' : null;
  if (token === '{' || token === '[') {
    open.push(token === '{' ? '}' : ']');
    return token === '{' ? 'key or end' : 'value or end';
  }
  return isJson(token) ? 'comma or end' : null;
}

function isJson(token: string): boolean {
  try {
    JSON.parse(token);
    return true;
  } catch {
    return false;
  }
}
