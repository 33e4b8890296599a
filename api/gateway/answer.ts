// The answer of one call as the record will have it, read beside its way to the caller. In: its head, its bytes as they come, how it
// ended. Out: the bytes for the caller, and at the end response, outcome and what is said of it in attributes.
// Bounds: of an answer that is no stream ANSWER_BYTES_MAX are kept, and of all answers together KEPT_BYTES_MAX.
import type { GatewayCall } from './call.ts';
import { type Assembly, ChatAssembly, isUsageChunk, ResponsesAssembly } from './assembly.ts';
import type { Ending } from './exchange.ts';
import { SseStream } from './sse.ts';
import { type Fields, isFields } from './values.ts';

const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const KEPT_BYTES_MAX = 128 * 1024 * 1024;
const ERROR_CHARS_MAX = 2000;
/** Timeouts by their status, as an upstream or a proxy before it says them. */
const TIMEOUTS = new Set([408, 504]);

/** Of all answers that are being read. */
let keptBytes = 0;

export interface AnswerHead {
  status: number;
  /** Whether its events are read on the way: server-sent, not compressed. */
  isStream: boolean;
  /** Whether the body can be read at all. */
  isPlain: boolean;
}

/** What is recorded of an answer. */
export interface ReadAnswer {
  response: unknown;
  outcome: 'success' | 'error' | 'timeout';
  attributes: Record<string, unknown>;
}

const ENDINGS: Readonly<Record<Exclude<Ending, 'complete'>, string>> = {
  lost: 'The upstream broke off the connection.',
  timeout: 'The upstream was silent for too long.',
  gone: 'The caller went away, or the service was stopped.',
};

export class AnswerReader {
  readonly #call: GatewayCall;
  readonly #head: AnswerHead;
  readonly #now: () => number;
  readonly #assembly: Assembly;
  readonly #sse: SseStream | null;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #cut = false;
  #firstTokenAt: number | null = null;

  /** @param now milliseconds, monotonic */
  constructor(call: GatewayCall, head: AnswerHead, now: () => number) {
    this.#call = call;
    this.#head = head;
    this.#now = now;
    this.#assembly = call.operation === 'responses' ? new ResponsesAssembly() : new ChatAssembly();
    const hides = call.asksUsage;
    const onData = (data: unknown) => {
      if (!isFields(data)) return false;
      this.#assembly.add(data);
      if (this.#firstTokenAt === null && this.#assembly.hasContent) this.#firstTokenAt = this.#now();
      return hides && isUsageChunk(data);
    };
    this.#sse = head.isStream ? new SseStream({ hides, onData }) : null;
  }

  /** When the first piece of content came, by the clock given; null before. */
  get firstTokenAt(): number | null {
    return this.#firstTokenAt;
  }

  take(chunk: Buffer): Buffer {
    if (this.#sse !== null) return this.#sse.push(chunk);
    if (!this.#head.isPlain || this.#cut) return chunk;
    if (this.#bytes + chunk.length > ANSWER_BYTES_MAX || keptBytes + chunk.length > KEPT_BYTES_MAX) {
      this.#cut = true;
      this.#drop();
    } else {
      this.#bytes += chunk.length;
      keptBytes += chunk.length;
      this.#chunks.push(chunk);
    }
    return chunk;
  }

  rest(): Buffer {
    return this.#sse === null ? Buffer.alloc(0) : this.#sse.end();
  }

  #drop(): void {
    keptBytes -= this.#bytes;
    this.#bytes = 0;
    this.#chunks = [];
  }

  /** What is recorded. Call it once, when the answer has ended. */
  read(ending: Ending): ReadAnswer {
    const { status } = this.#head;
    const attributes: Record<string, unknown> = { http_status: status };
    const response = this.#sse === null ? this.#whole(attributes) : this.#streamed(attributes);
    const error = isFields(response) && isFields(response['error']) ? response['error'] : null;
    const good = ending === 'complete' && status < 400 && error === null;
    if (ending !== 'complete') {
      attributes['error_message'] = ENDINGS[ending];
      if (ending === 'gone') attributes['aborted'] = true;
    } else if (typeof error?.['message'] === 'string') attributes['error_message'] = error['message'].slice(0, ERROR_CHARS_MAX);
    const outcome = good ? 'success' : ending === 'timeout' || (ending === 'complete' && TIMEOUTS.has(status)) ? 'timeout' : 'error';
    return { response: response ?? this.#unread(ending), outcome, attributes };
  }

  #streamed(attributes: Record<string, unknown>): Fields | null {
    if (this.#assembly.cut) attributes['answer_truncated'] = true;
    return this.#assembly.response();
  }

  #whole(attributes: Record<string, unknown>): Fields | null {
    const text = Buffer.concat(this.#chunks);
    this.#drop();
    if (this.#cut) attributes['answer_truncated'] = true;
    if (text.length === 0) return null;
    try {
      const json: unknown = JSON.parse(text.toString('utf8'));
      if (isFields(json)) return this.#call.operation === 'embeddings' ? withoutVectors(json) : json;
    } catch {
      // What came instead is told below.
    }
    attributes['response_text'] = text.toString('utf8').slice(0, ERROR_CHARS_MAX);
    return null;
  }

  /** Where there is no answer to record but the model was at work: nothing, whose prompt is counted. */
  #unread(ending: Ending): Fields | null {
    if (this.#head.status >= 400 || (ending !== 'complete' && ending !== 'gone')) return null;
    return this.#call.operation === 'chat' ? { choices: [] } : {};
  }
}

/** An answer with the number of its vectors in their place. */
function withoutVectors(json: Fields): Fields {
  const { data, ...rest } = json;
  return Array.isArray(data) ? { ...rest, embeddings: data.length } : json;
}
