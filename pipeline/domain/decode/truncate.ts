// The prompt's text within the org's max_prompt_tokens.
// A conversation stays valid JSON: messages are kept from the first on, the one that crosses the limit is cut, the rest goes.
import { charsForTokens, estimateTokens } from '../tokens.ts';
import { isFields, type Draft } from './draft.ts';

/** A UTF-16 code unit is at most three bytes, a byte at most one token: a text this much shorter needs no counting. */
const TOKENS_PER_CHAR_MAX = 3;

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
  if (tokensMax === null || whole.length * TOKENS_PER_CHAR_MAX <= tokensMax) return { text: whole, whole, truncated: false };
  const tokens = estimateTokens(whole);
  if (tokens <= tokensMax) return { text: whole, whole, truncated: false };
  const chars = charsForTokens(whole, tokens, tokensMax);
  const text = messages === null ? whole.slice(0, chars) : JSON.stringify(messagesWithin(messages, chars));
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
    const content = isFields(message) ? message['content'] : undefined;
    const contentChars = typeof content === 'string' ? left - (length - JSON.stringify(content).length) : 0;
    if (isFields(message) && typeof content === 'string' && contentChars > 0)
      kept.push({ ...message, content: content.slice(0, contentChars).toWellFormed() });
    break;
  }
  return kept;
}
