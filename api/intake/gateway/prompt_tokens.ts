// Estimates the tokens of a prompt before its call, in microseconds: a tokenizer takes more time than
// everything else that a limit adds to a call, and 75 MB. Takes a call; returns a number of tokens,
// within about a quarter of what the o200k tokenizer counts for prose, code and JSON. The reservation
// corrects it by what earlier calls of the model have used (reserve.ts). At most SAMPLED_CHARS
// characters of each text are read.
import type { GatewayCall } from './call.ts';
import { isFields } from './values.ts';

/** Tokens that the chat format adds to each message. */
const TOKENS_PER_MESSAGE = 4;
/** Depth of nesting to which texts are searched for. */
const DEPTH_MAX = 6;
/** A longer text is read in this many samples, which are spread evenly over it. */
const SAMPLED_CHARS = 32_768;
const SAMPLES = 32;

/** Letters of a word that make one token. */
const WORD_LETTERS = 9;
/** Digits that make one token. */
const NUMBER_DIGITS = 3;
/** Tokens of a character outside ASCII: of an alphabet, of Chinese, Japanese or Korean, of a pair of surrogates. */
const ALPHABET_TOKENS = 0.3;
const IDEOGRAPH_TOKENS = 0.75;
const SURROGATE_TOKENS = 0.8;
/** First code of the scripts of Chinese, Japanese and Korean. */
const IDEOGRAPHS_FROM = 0x2e80;

/** Returns the tokens of a prompt, with the definitions of its tools. Images and files count as none. */
export function promptTokens({ operation, request }: GatewayCall): number {
  const texts: string[] = [];
  const messages = operation === 'chat' || operation === 'messages' ? request['messages'] : request['input'];
  collect(messages, texts, DEPTH_MAX);
  if (operation === 'messages') collect(request['system'], texts, DEPTH_MAX);
  collect(request['instructions'], texts, 1);
  const frames = Array.isArray(messages) ? TOKENS_PER_MESSAGE * messages.length : 0;
  // Models also read the definitions of tools.
  const tools = Array.isArray(request['tools']) ? JSON.stringify(request['tools']) : '';
  return texts.reduce((sum, text) => sum + textTokens(text), frames + textTokens(tools));
}

/** Collects the texts of a message: those under text and content. Images and files are skipped. */
function collect(value: unknown, texts: string[], depth: number): void {
  if (typeof value === 'string') texts.push(value);
  else if (depth > 0 && Array.isArray(value)) for (const item of value as unknown[]) collect(item, texts, depth - 1);
  else if (depth > 0 && isFields(value)) {
    for (const key of ['content', 'text', 'thinking', 'arguments', 'output']) collect(value[key], texts, depth - 1);
    // A tool call of an earlier answer.
    if (isFields(value['input'])) texts.push(JSON.stringify(value['input']));
  }
}

/** Returns an estimate of the tokens of a text. */
export function textTokens(text: string): number {
  if (text.length <= SAMPLED_CHARS) return Math.ceil(tokensIn(text, 0, text.length));
  const sample = SAMPLED_CHARS / SAMPLES;
  const stride = (text.length - sample) / (SAMPLES - 1);
  let tokens = 0;
  for (let i = 0; i < SAMPLES; i++) {
    const start = Math.floor(i * stride);
    tokens += tokensIn(text, start, start + sample);
  }
  return Math.ceil((tokens * text.length) / SAMPLED_CHARS);
}

/** The kinds of characters whose runs make tokens; NONE for those that are counted one by one. */
const NONE = 0;
const LETTER = 1;
const DIGIT = 2;
const SPACE = 3;
const BREAK = 4;
const SIGN = 5;

/** Kinds of the characters of ASCII. */
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => {
  const char = String.fromCharCode(code);
  if (/[A-Za-z]/.test(char)) return LETTER;
  if (/[0-9]/.test(char)) return DIGIT;
  if (/[ \t]/.test(char)) return SPACE;
  return /[\r\n]/.test(char) ? BREAK : SIGN;
});

/** Returns the tokens between two positions. A space belongs to the word after it. */
function tokensIn(text: string, from: number, to: number): number {
  let tokens = 0;
  let run: number = NONE;
  let length = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    const kind = KINDS[code] ?? NONE;
    if (kind === run) length++;
    else {
      tokens += runTokens(run, length);
      run = kind;
      length = 1;
    }
    if (kind === NONE) tokens += otherTokens(code);
  }
  return tokens + runTokens(run, length);
}

function runTokens(kind: number, length: number): number {
  if (kind === NONE) return 0;
  if (kind === LETTER) return Math.ceil(length / WORD_LETTERS);
  if (kind === DIGIT) return Math.ceil(length / NUMBER_DIGITS);
  if (kind === SPACE) return length > 1 ? 1 : 0;
  return kind === BREAK ? 1 : Math.ceil(length / 2);
}

function otherTokens(code: number): number {
  if (code >= 0xd800 && code <= 0xdfff) return SURROGATE_TOKENS;
  return code >= IDEOGRAPHS_FROM ? IDEOGRAPH_TOKENS : ALPHABET_TOKENS;
}
