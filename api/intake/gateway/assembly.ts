// Assembles the answer of a streamed call from its events, as it would have been without streaming,
// for the record. Takes the data of each event; returns a response object, or null while nothing
// has arrived. Texts are bounded by TEXT_CHARS_MAX together, choices and tool calls by their
// number; the record marks an answer that exceeds a bound.
import { type Fields, isFields } from './values.ts';

/** Maximum characters of all texts of one answer. */
export const TEXT_CHARS_MAX = 1024 * 1024;
const CHOICES_MAX = 128;
const TOOL_CALLS_MAX = 256;

export interface Assembly {
  add: (data: Fields) => void;
  /** Returns the answer so far. */
  response: () => Record<string, unknown> | null;
  /** True if part of the answer was left out. */
  readonly cut: boolean;
  /** True once text, a tool call or another part of an answer has arrived. */
  readonly hasContent: boolean;
  /** True once the upstream has sent the usage. */
  readonly hasUsage: boolean;
  /** The error that the upstream reported in the middle of the stream; null for none. */
  readonly error: Fields | null;
}

/** Returns true, and counts the characters, if there is room for them. */
export type HasRoom = (chars: number) => boolean;

/** Texts that grow piece by piece, within their own bound and the bounds of all answers. */
export class Texts {
  readonly #hasRoom: HasRoom;
  #left = TEXT_CHARS_MAX;
  cut = false;

  constructor(hasRoom: HasRoom) {
    this.#hasRoom = hasRoom;
  }

  append(to: Record<string, unknown>, key: string, piece: unknown): boolean {
    if (typeof piece !== 'string' || piece === '') return false;
    const own = piece.length <= this.#left ? piece : piece.slice(0, this.#left);
    const fits = own === '' || this.#hasRoom(own.length) ? own : '';
    if (fits.length < piece.length) this.cut = true;
    this.#left -= fits.length;
    const before = to[key];
    to[key] = typeof before === 'string' ? before + fits : fits;
    return true;
  }
}

interface ToolCall {
  call: Record<string, unknown>;
  function: Record<string, unknown>;
}
interface Choice {
  message: Record<string, unknown>;
  tools: Map<number, ToolCall>;
  finish_reason: unknown;
}

const HEAD = ['id', 'object', 'created', 'model', 'service_tier', 'system_fingerprint'];
const TEXTS = ['content', 'refusal', 'reasoning_content', 'reasoning'];

/**
 * Returns true for a chunk that holds the usage and nothing else. A caller that did not ask for
 * usage does not get it.
 */
export const isUsageChunk = (data: unknown): boolean =>
  isFields(data) && Array.isArray(data['choices']) && data['choices'].length === 0 && isFields(data['usage']);

/** Assembles chat.completion.chunk events. */
export class ChatAssembly implements Assembly {
  readonly #head: Record<string, unknown> = {};
  readonly #choices = new Map<number, Choice>();
  readonly #texts: Texts;
  #usage: Fields | null = null;
  #begun = false;
  #cut = false;
  hasContent = false;
  error: Fields | null = null;

  constructor(hasRoom: HasRoom = () => true) {
    this.#texts = new Texts(hasRoom);
  }

  get cut(): boolean {
    return this.#cut || this.#texts.cut;
  }

  get hasUsage(): boolean {
    return this.#usage !== null;
  }

  add(data: Fields): void {
    if (isFields(data['error'])) this.error = data['error'];
    const chunks: unknown = data['choices'];
    if (isFields(data['usage'])) this.#usage = data['usage'];
    if (!Array.isArray(chunks)) return;
    this.#begun = true;
    for (const key of HEAD) if (data[key] != null && this.#head[key] === undefined) this.#head[key] = data[key];
    for (const chunk of chunks as unknown[]) if (isFields(chunk)) this.#addChoice(chunk);
  }

  #addChoice(chunk: Fields): void {
    const index = typeof chunk['index'] === 'number' ? chunk['index'] : 0;
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      if (this.#choices.size >= CHOICES_MAX) {
        this.#cut = true;
        return;
      }
      choice = { message: { role: 'assistant', content: null }, tools: new Map(), finish_reason: null };
      this.#choices.set(index, choice);
    }
    if (chunk['finish_reason'] != null) choice.finish_reason = chunk['finish_reason'];
    const delta = chunk['delta'];
    if (!isFields(delta)) return;
    const { message } = choice;
    if (typeof delta['role'] === 'string') message['role'] = delta['role'];
    for (const key of TEXTS) if (this.#texts.append(message, key, delta[key])) this.hasContent = true;
    if (isFields(delta['function_call'])) {
      const call = isFields(message['function_call']) ? { ...message['function_call'] } : {};
      this.#addFunction(call, delta['function_call']);
      message['function_call'] = call;
    }
    if (Array.isArray(delta['tool_calls']))
      for (const [at, tool] of (delta['tool_calls'] as unknown[]).entries())
        if (isFields(tool)) this.#addTool(choice, tool, at);
  }

  #addTool({ tools }: Choice, piece: Fields, at: number): void {
    this.hasContent = true;
    const index = typeof piece['index'] === 'number' ? piece['index'] : at;
    let tool = tools.get(index);
    if (tool === undefined) {
      if (tools.size >= TOOL_CALLS_MAX) {
        this.#cut = true;
        return;
      }
      tool = { call: { type: 'function' }, function: {} };
      tools.set(index, tool);
    }
    for (const key of ['id', 'type'])
      if (typeof piece[key] === 'string' && piece[key] !== '') tool.call[key] = piece[key];
    if (isFields(piece['function'])) this.#addFunction(tool.function, piece['function']);
  }

  #addFunction(to: Record<string, unknown>, piece: Fields): void {
    this.hasContent = true;
    this.#texts.append(to, 'name', piece['name']);
    this.#texts.append(to, 'arguments', piece['arguments']);
  }

  response(): Record<string, unknown> | null {
    if (!this.#begun && this.error === null) return null;
    const choices = [...this.#choices]
      .sort(([a], [b]) => a - b)
      .map(([index, { message, tools, finish_reason }]) => ({
        index,
        message: tools.size === 0 ? message : { ...message, tool_calls: callsOf(tools) },
        finish_reason: typeof finish_reason === 'string' ? finish_reason : null,
      }));
    return {
      ...this.#head,
      ...(this.#head['object'] === undefined ? {} : { object: 'chat.completion' }),
      ...(this.#begun ? { choices } : {}),
      ...(this.#usage === null ? {} : { usage: this.#usage }),
      ...(this.error === null ? {} : { error: this.error }),
    };
  }
}

function callsOf(tools: ReadonlyMap<number, ToolCall>): unknown[] {
  return [...tools].sort(([a], [b]) => a - b).map(([, { call, function: fn }]) => ({ ...call, function: fn }));
}

/**
 * Assembles events of the Responses API: the last one holds the whole answer; until then, the texts
 * that have arrived.
 */
export class ResponsesAssembly implements Assembly {
  #whole: Record<string, unknown> | null = null;
  #ended = false;
  readonly #partial: Record<string, unknown> = {};
  readonly #texts: Texts;
  hasContent = false;
  error: Fields | null = null;

  constructor(hasRoom: HasRoom = () => true) {
    this.#texts = new Texts(hasRoom);
  }

  get cut(): boolean {
    return this.#texts.cut && !this.#ended;
  }

  get hasUsage(): boolean {
    return isFields(this.#whole?.['usage']);
  }

  add(data: Fields): void {
    const type = typeof data['type'] === 'string' ? data['type'] : '';
    if (isFields(data['response'])) {
      this.#whole = data['response'];
      this.#ended = /^response\.(completed|incomplete|failed|cancelled)$/.test(type);
      if (isFields(data['response']['error'])) this.error = data['response']['error'];
    }
    if (type === 'error') this.error = data;
    if (!type.endsWith('.delta')) return;
    this.hasContent = true;
    if (type === 'response.output_text.delta') this.#texts.append(this.#partial, 'output_text', data['delta']);
  }

  response(): Record<string, unknown> | null {
    if (this.#ended || (this.#whole === null && !this.hasContent)) return this.#whole;
    return { ...this.#whole, ...this.#partial };
  }
}
