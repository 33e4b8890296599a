// The prompt's text within the org's max_prompt_tokens.
// A conversation stays valid JSON: messages are kept from the first on, the one that crosses the limit is cut, the rest goes.
import { charsForTokens, estimateTokens } from '../text/tokens.ts';
import { isFields, type Draft } from './draft.ts';

/** A UTF-16 code unit is at most three bytes, a byte at most one token: a text this much shorter needs no counting. */
const TOKENS_PER_CHAR_MAX = 3;
/** How often what was cut is counted again; it is some tokens too long then at the most. */
const ROUNDS_MAX = 4;
/** Of one UTF-16 code unit in JSON: \\u0000. */
const JSON_CHARS_MAX = 6;

export interface PromptText {
  text: string;
  /** Without the limit. */
  whole: string;
  truncated: boolean;
}

/** The whole prompt of a draft. */
export function promptText({ messages, prompt_text }: Pick<Draft, 'messages' | 'prompt_text'>): string {
  return messages === null ? prompt_text : JSON.stringify(messages);
}

/** The prompt of a draft; `tokensMax` null for no limit. */
export function promptWithin(draft: Pick<Draft, 'messages' | 'prompt_text'>, tokensMax: number | null): PromptText {
  const { messages } = draft;
  const whole = promptText(draft);
  if (tokensMax === null || whole.length * TOKENS_PER_CHAR_MAX <= tokensMax)
    return { text: whole, whole, truncated: false };
  const tokens = estimateTokens(whole);
  if (tokens <= tokensMax) return { text: whole, whole, truncated: false };
  let chars = charsForTokens(whole, tokens, tokensMax);
  let text = '';
  // Its first part may have more tokens than all of it has on average: what was cut is counted again.
  for (let round = 0; round < ROUNDS_MAX; round++) {
    text = messages === null ? whole.slice(0, chars) : JSON.stringify(messagesWithin(messages, chars));
    const left = estimateTokens(text);
    if (left <= tokensMax) break;
    chars = charsForTokens(whole.slice(0, chars), left, tokensMax);
  }
  return { text, whole, truncated: true };
}

/** Messages whose JSON is about `charsMax` long at most. */
function messagesWithin(messages: readonly unknown[], charsMax: number): unknown[] {
  const kept: unknown[] = [];
  let left = charsMax - 2;
  for (const message of messages) {
    const length = JSON.stringify(message).length + 1;
    if (length <= left) {
      kept.push(message);
      left -= length;
      continue;
    }
    const cut = messageWithin(message, left);
    if (cut !== undefined) kept.push(cut);
    break;
  }
  return kept;
}

/** The first part of a message, `charsMax` as JSON at most; undefined where there is no room for any of its text. */
function messageWithin(message: unknown, charsMax: number): unknown {
  // LangChain also writes [role, text], and a text alone.
  if (typeof message === 'string') return textWithin(message, charsMax);
  if (Array.isArray(message)) {
    const [role, text] = message as unknown[];
    if (typeof text !== 'string') return undefined;
    const part = textWithin(text, charsMax - JSON.stringify([role]).length - 1);
    return part === undefined ? undefined : [role, part];
  }
  if (!isFields(message)) return undefined;
  const { content } = message;
  const room = charsMax - (JSON.stringify({ ...message, content: '' }).length - 2);
  const within =
    typeof content === 'string'
      ? textWithin(content, room)
      : Array.isArray(content)
        ? partsWithin(content, room)
        : undefined;
  return within === undefined ? undefined : { ...message, content: within };
}

/** Parts of a content as long as they fit, then the first part of the text of the one that does not. */
function partsWithin(parts: readonly unknown[], charsMax: number): unknown[] | undefined {
  const kept: unknown[] = [];
  let left = charsMax - 2;
  for (const part of parts) {
    const length = JSON.stringify(part).length + 1;
    if (length <= left) {
      kept.push(part);
      left -= length;
      continue;
    }
    if (isFields(part) && typeof part['text'] === 'string') {
      const text = textWithin(part['text'], left - (JSON.stringify({ ...part, text: '' }).length - 2));
      if (text !== undefined) kept.push({ ...part, text });
    } else if (typeof part === 'string') {
      const text = textWithin(part, left);
      if (text !== undefined) kept.push(text);
    }
    break;
  }
  return kept.length === 0 ? undefined : kept;
}

/** The first part of a text that is `charsMax` as a JSON string at most; undefined where that is nothing. */
function textWithin(text: string, charsMax: number): string | undefined {
  let chars = charsMax - 2;
  if (chars <= 0) return undefined;
  let part = text.slice(0, chars);
  // Escapes are longer in JSON.
  for (
    let excess = JSON.stringify(part).length - charsMax;
    excess > 0 && chars > 0;
    excess = JSON.stringify(part).length - charsMax
  ) {
    chars -= Math.max(1, Math.ceil(excess / JSON_CHARS_MAX));
    part = text.slice(0, chars);
  }
  return part === '' ? undefined : part.toWellFormed();
}
