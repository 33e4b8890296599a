// Truncates a prompt to the organization's max_prompt_tokens. A conversation stays valid JSON:
// messages are kept from the first one on, the one that crosses the limit is cut, the rest is
// dropped.
import { charsForTokens, estimateTokens } from '../text/tokens.ts';
import { isFields, type Draft } from './draft.ts';

/**
 * A UTF-16 code unit is at most three bytes, and a byte at most one token: a text this much shorter
 * needs no counting.
 */
const TOKENS_PER_CHAR_MAX = 3;
/** Maximum recounts of a truncated text. After the last one it may be a few tokens too long. */
const ROUNDS_MAX = 4;
/** Length in JSON of one UTF-16 code unit at most: \\u0000. */
const JSON_CHARS_MAX = 6;

export interface PromptText {
  text: string;
  /** The text before truncation. */
  whole: string;
  truncated: boolean;
}

/** Returns the whole prompt of a draft. */
export function promptText({ messages, prompt_text }: Pick<Draft, 'messages' | 'prompt_text'>): string {
  return messages === null ? prompt_text : JSON.stringify(messages);
}

/** Returns the truncated prompt of a draft. @param tokensMax null for no limit */
export function promptWithin(draft: Pick<Draft, 'messages' | 'prompt_text'>, tokensMax: number | null): PromptText {
  const { messages } = draft;
  const whole = promptText(draft);
  if (tokensMax === null || whole.length * TOKENS_PER_CHAR_MAX <= tokensMax)
    return { text: whole, whole, truncated: false };
  const tokens = estimateTokens(whole);
  if (tokens <= tokensMax) return { text: whole, whole, truncated: false };
  let chars = charsForTokens(whole, tokens, tokensMax);
  let text = '';
  // The kept part may have more tokens per character than the average, so the result is counted
  // again.
  for (let round = 0; round < ROUNDS_MAX; round++) {
    text = messages === null ? whole.slice(0, chars) : JSON.stringify(messagesWithin(messages, chars));
    const left = estimateTokens(text);
    if (left <= tokensMax) break;
    chars = charsForTokens(whole.slice(0, chars), left, tokensMax);
  }
  return { text, whole, truncated: true };
}

/** Returns the first messages whose JSON is at most about `charsMax` long. */
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

/**
 * Returns the first part of a message, at most `charsMax` as JSON; undefined when no text of it
 * fits.
 */
function messageWithin(message: unknown, charsMax: number): unknown {
  // LangChain also writes [role, text], or the text alone.
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

/** Returns the parts that fit, then the beginning of the text of the next one. */
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

/**
 * Returns the beginning of a text that is at most `charsMax` long as a JSON string; undefined when
 * that is empty.
 */
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
