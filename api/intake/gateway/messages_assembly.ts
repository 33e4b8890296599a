// Assembles the answer of a streamed call of Anthropic's messages API from its events, as it would
// have been without streaming, for the record. Takes the data of each event; returns a message, or
// null while nothing has arrived. The usage is that of message_start, replaced by the last
// message_delta. Bounded like the other assemblies.
import { type Assembly, type HasRoom, Texts } from './assembly.ts';
import { type Fields, isFields } from './values.ts';

const BLOCKS_MAX = 1024;
const CITATIONS_MAX = 256;

interface Block {
  /** The block so far. */
  block: Record<string, unknown>;
  /** JSON text of the input of a tool, which arrives in pieces. */
  input: Record<string, unknown>;
}

/** Member of a block that a delta of each type continues. */
const CONTINUED: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'signature',
};

export class MessagesAssembly implements Assembly {
  readonly #texts: Texts;
  readonly #blocks = new Map<number, Block>();
  #message: Record<string, unknown> | null = null;
  #usage: Record<string, unknown> = {};
  #cut = false;
  hasUsage = false;
  hasContent = false;
  error: Fields | null = null;

  constructor(hasRoom: HasRoom = () => true) {
    this.#texts = new Texts(hasRoom);
  }

  get cut(): boolean {
    return this.#cut || this.#texts.cut;
  }

  add(data: Fields): void {
    const type = data['type'];
    if (type === 'message_start' && isFields(data['message'])) {
      const { content, usage, ...message } = data['message'];
      this.#message = message;
      if (Array.isArray(content)) for (const [index, block] of content.entries()) this.#start(index, block);
      this.#mergeUsage(usage);
    } else if (type === 'content_block_start') this.#start(data['index'], data['content_block']);
    else if (type === 'content_block_delta') this.#continue(data['index'], data['delta']);
    else if (type === 'message_delta') {
      if (isFields(data['delta'])) this.#message = { ...this.#message, ...data['delta'] };
      this.hasUsage = isFields(data['usage']) || this.hasUsage;
      this.#mergeUsage(data['usage']);
    } else if (type === 'error') this.error = isFields(data['error']) ? data['error'] : data;
  }

  #mergeUsage(usage: unknown): void {
    if (!isFields(usage)) return;
    for (const key in usage) if (usage[key] != null) this.#usage[key] = usage[key];
  }

  #start(index: unknown, given: unknown): void {
    if (typeof index !== 'number' || !isFields(given)) return;
    if (this.#blocks.size >= BLOCKS_MAX) {
      this.#cut = true;
      return;
    }
    const { text, thinking, ...block } = given;
    const entry: Block = { block, input: {} };
    this.#blocks.set(index, entry);
    for (const [key, value] of Object.entries({ text, thinking })) {
      if (typeof value !== 'string') continue;
      entry.block[key] = '';
      if (this.#texts.append(entry.block, key, value)) this.hasContent = true;
    }
    if (given['type'] !== 'text' && given['type'] !== 'thinking') this.hasContent = true;
  }

  #continue(index: unknown, delta: unknown): void {
    const entry = typeof index === 'number' ? this.#blocks.get(index) : undefined;
    if (entry === undefined || !isFields(delta)) return;
    const type = String(delta['type']);
    const key = CONTINUED[type];
    if (key !== undefined) {
      if (this.#texts.append(entry.block, key, delta[key])) this.hasContent = true;
    } else if (type === 'input_json_delta') this.#texts.append(entry.input, 'json', delta['partial_json']);
    else if (type === 'citations_delta') this.#cite(entry.block, delta['citation']);
  }

  #cite(block: Record<string, unknown>, citation: unknown): void {
    const before: unknown = block['citations'];
    const citations = Array.isArray(before) ? (before as unknown[]) : [];
    if (citations.length < CITATIONS_MAX) block['citations'] = [...citations, citation];
    else this.#cut = true;
  }

  response(): Record<string, unknown> | null {
    if (this.#message === null) return this.error === null ? null : { error: this.error };
    const content = [...this.#blocks].sort(([a], [b]) => a - b).map(([, entry]) => blockOf(entry));
    return {
      ...this.#message,
      content,
      usage: this.hasUsage ? this.#usage : startedUsage(this.#usage),
      ...(this.error === null ? {} : { error: this.error }),
    };
  }
}

/**
 * Returns the usage of a stream that broke off before its end. message_start counts the first output
 * token at most, so the output is left out and estimated from what arrived.
 */
function startedUsage({ output_tokens: _, ...usage }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return usage;
}

/** Returns a block with the input of its tool; the text of an input that broke off stays text. */
function blockOf({ block, input }: Block): Record<string, unknown> {
  const { json } = input;
  if (typeof json !== 'string' || json === '') return block;
  try {
    return { ...block, input: JSON.parse(json) as unknown };
  } catch {
    return { ...block, input: json };
  }
}
