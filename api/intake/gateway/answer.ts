// Reads the answer to a call for its record while it passes to the caller. Takes the head of the
// answer, its bytes as they arrive and how it ended; returns the bytes for the caller, and at the
// end the recorded response, outcome and attributes. Keeps at most ANSWER_BYTES_MAX of an answer
// that is not a stream, RESERVED_BYTES_ORG_MAX of the answers of one organization, and
// RESERVED_BYTES_MAX of all answers, texts of streams included.
import type { GatewayCall } from './call.ts';
import { type Assembly, ChatAssembly, type HasRoom, isUsageChunk, ResponsesAssembly } from './assembly.ts';
import type { Ending } from './exchange.ts';
import { MessagesAssembly } from './messages_assembly.ts';
import { SseStream } from './sse.ts';
import { type Fields, isFields } from './values.ts';

const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const RESERVED_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Less than the total, so that the answers of one organization never displace those of another from
 * the records.
 */
const RESERVED_BYTES_ORG_MAX = 48 * 1024 * 1024;
/** Maximum bytes of a character of a string in memory. */
const CHAR_BYTES = 2;
const ERROR_CHARS_MAX = 2000;
/** Statuses with which an upstream, or a proxy before it, reports a timeout. */
const TIMEOUTS = new Set([408, 504]);

/** Bytes reserved for the answers that are being read, in total and by organization. */
let reservedBytes = 0;
const reservedByOrg = new Map<string, number>();

/** The bytes that one answer has reserved. */
class AnswerReservation {
  readonly #org_id: string;
  #bytes = 0;

  constructor(org_id: string) {
    this.#org_id = org_id;
  }

  /** Reserves more bytes. Returns false, and reserves nothing, where there is no room for them. */
  grow(bytes: number): boolean {
    const ofOrg = reservedByOrg.get(this.#org_id) ?? 0;
    if (ofOrg + bytes > RESERVED_BYTES_ORG_MAX || reservedBytes + bytes > RESERVED_BYTES_MAX) return false;
    reservedByOrg.set(this.#org_id, ofOrg + bytes);
    reservedBytes += bytes;
    this.#bytes += bytes;
    return true;
  }

  release(): void {
    const left = (reservedByOrg.get(this.#org_id) ?? 0) - this.#bytes;
    if (left > 0) reservedByOrg.set(this.#org_id, left);
    else reservedByOrg.delete(this.#org_id);
    reservedBytes -= this.#bytes;
    this.#bytes = 0;
  }
}

export interface AnswerHead {
  status: number;
  /** True for uncompressed server-sent events, which are read on the way. */
  isStream: boolean;
  /** True if the body is not compressed, so that it can be read. */
  isPlain: boolean;
  /** True for a page of HTML, which a proxy or a wrong address answers with; a model never does. */
  isHtml: boolean;
}

/** The recorded part of an answer. */
export interface ReadAnswer {
  response: unknown;
  outcome: 'success' | 'error' | 'timeout';
  attributes: Record<string, unknown>;
}

const ENDINGS: Readonly<Record<Exclude<Ending, 'complete'>, string>> = {
  lost: 'The upstream broke off the connection.',
  timeout: 'The upstream was silent for too long.',
  gone: 'The caller disconnected, or the service was stopped.',
};

export class AnswerReader {
  readonly #call: GatewayCall;
  readonly #head: AnswerHead;
  readonly #now: () => number;
  readonly #assembly: Assembly;
  readonly #sse: SseStream | null;
  readonly #reservation: AnswerReservation;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #cut = false;
  #firstTokenAt: number | null = null;

  /**
   * @param now milliseconds of a monotonic clock
   * @param org_id the organization whose share of the bounds the answer takes
   */
  constructor(call: GatewayCall, head: AnswerHead, now: () => number, org_id = '') {
    this.#call = call;
    this.#head = head;
    this.#now = now;
    this.#reservation = new AnswerReservation(org_id);
    this.#assembly = assemblyOf(call, (chars) => this.#reservation.grow(chars * CHAR_BYTES));
    const hides = call.asksUsage;
    const onData = (data: unknown) => {
      if (!isFields(data)) return false;
      this.#assembly.add(data);
      if (this.#firstTokenAt === null && this.#assembly.hasContent) this.#firstTokenAt = this.#now();
      return hides && isUsageChunk(data);
    };
    this.#sse = head.isStream ? new SseStream({ hides, onData }) : null;
  }

  /** Time of the first piece of content, on the given clock; null before it. */
  get firstTokenAt(): number | null {
    return this.#firstTokenAt;
  }

  take(chunk: Buffer): Buffer {
    if (this.#sse !== null) return this.#sse.push(chunk);
    if (!this.#head.isPlain || this.#cut) return chunk;
    if (this.#bytes + chunk.length > ANSWER_BYTES_MAX || !this.#reservation.grow(chunk.length)) {
      this.#cut = true;
      this.#drop();
    } else {
      this.#bytes += chunk.length;
      this.#chunks.push(chunk);
    }
    return chunk;
  }

  rest(): Buffer {
    return this.#sse === null ? Buffer.alloc(0) : this.#sse.end();
  }

  #drop(): void {
    this.#reservation.release();
    this.#bytes = 0;
    this.#chunks = [];
  }

  /** Returns what is recorded. Called once, when the answer has ended. */
  read(ending: Ending): ReadAnswer {
    const { status } = this.#head;
    const attributes: Record<string, unknown> = { http_status: status };
    const response = this.#sse === null ? this.#whole(attributes) : this.#streamed(attributes);
    const problem = ending === 'complete' ? this.#problemOf(response) : ENDINGS[ending];
    if (problem !== null) attributes['error_message'] = problem;
    if (ending === 'gone') attributes['aborted'] = true;
    const isTimeout = ending === 'timeout' || (ending === 'complete' && TIMEOUTS.has(status));
    const outcome = problem === null ? 'success' : isTimeout ? 'timeout' : 'error';
    const isModels = ending === 'gone' || (ending === 'complete' && problem === null);
    return { response: response ?? (isModels ? this.#unread() : null), outcome, attributes };
  }

  /** Returns what is wrong with a complete answer; null for an answer of a model. */
  #problemOf(response: Fields | null): string | null {
    const { status, isHtml, isPlain } = this.#head;
    const error = isFields(response?.['error']) ? response['error'] : null;
    if (typeof error?.['message'] === 'string' && error['message'] !== '')
      return error['message'].slice(0, ERROR_CHARS_MAX);
    if (error !== null) return 'The upstream answered with an error without a message.';
    if (status < 200 || status >= 300) return `The upstream answered with status ${status}.`;
    if (isHtml) return 'The upstream answered with a page of HTML.';
    // An answer that was too long to keep, or is compressed, is not judged.
    if (response === null && isPlain && !this.#cut)
      return 'The upstream answered with something other than a JSON object.';
    return null;
  }

  #streamed(attributes: Record<string, unknown>): Fields | null {
    this.#reservation.release();
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
      // The text is recorded below instead.
    }
    attributes['response_text'] = text.toString('utf8').slice(0, ERROR_CHARS_MAX);
    return null;
  }

  /** Returns an empty answer of a model that was working, so that its prompt is counted. */
  #unread(): Fields | null {
    if (this.#head.status >= 400) return null;
    const { operation } = this.#call;
    return operation === 'chat' ? { choices: [] } : operation === 'messages' ? { content: [] } : {};
  }
}

function assemblyOf({ operation }: GatewayCall, hasRoom: HasRoom): Assembly {
  if (operation === 'responses') return new ResponsesAssembly(hasRoom);
  return operation === 'messages' ? new MessagesAssembly(hasRoom) : new ChatAssembly(hasRoom);
}

/** Returns an answer with the number of its vectors in their place. */
function withoutVectors(json: Fields): Fields {
  const { data, ...rest } = json;
  return Array.isArray(data) ? { ...rest, embeddings: data.length } : json;
}
