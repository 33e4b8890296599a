// Reads server-sent events while they pass to the caller. Takes bytes as they arrive; returns the
// same bytes and reports the data of each event. Only an event that is to be hidden is removed, as
// a whole. Lines end in LF or CRLF; how the bytes were split makes no difference. An event beyond
// EVENT_BYTES_MAX passes unread.

/**
 * Maximum bytes of an event that is buffered to be read. The last events of the Responses API hold
 * a whole answer.
 */
export const EVENT_BYTES_MAX = 8 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

export interface SseReader {
  /**
   * Called with the parsed data of every event, except [DONE] and invalid JSON. Returns true to
   * hide the event from the caller.
   */
  onData: (data: unknown) => boolean;
  /**
   * True if events can be hidden: then each is sent once it is complete. Otherwise bytes are sent
   * as they arrive.
   */
  hides: boolean;
}

export class SseStream {
  readonly #reader: SseReader;
  /** Pieces of the incomplete event. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** True while the current line holds nothing but CR. */
  #lineEmpty = true;
  /** True if part of the current event has been sent because it is too large to be read. */
  #tooLarge = false;

  constructor(reader: SseReader) {
    this.#reader = reader;
  }

  /**
   * Takes bytes.
   * @returns the bytes to send now; may be empty
   */
  push(chunk: Buffer): Buffer {
    const { hides } = this.#reader;
    const out: Buffer[] = [];
    let from = 0;
    for (let line = 0; line < chunk.length;) {
      const end = chunk.indexOf(LF, line);
      const stop = end < 0 ? chunk.length : end;
      if (this.#lineEmpty && !isEmpty(chunk, line, stop)) this.#lineEmpty = false;
      if (end < 0) break;
      line = end + 1;
      if (!this.#lineEmpty) {
        this.#lineEmpty = true;
        continue;
      }
      const event = this.#complete(chunk.subarray(from, line));
      if (hides && event !== null) out.push(event);
      from = line;
    }
    const held = this.#hold(from === 0 ? chunk : chunk.subarray(from));
    if (!hides) return chunk;
    if (held !== null) out.push(held);
    return out.length === 1 && out[0] !== undefined ? out[0] : Buffer.concat(out);
  }

  /**
   * Ends the stream.
   * @returns the bytes still buffered: without its blank line an event is incomplete, but its bytes
   * belong to the caller
   */
  end(): Buffer {
    const rest = this.#reader.hides ? Buffer.concat(this.#pieces) : NOTHING;
    this.#forget();
    return rest;
  }

  /**
   * Takes the last piece of an event.
   * @returns its bytes that have not been sent; null where they are hidden
   */
  #complete(last: Buffer): Buffer | null {
    const event = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    const skip = this.#tooLarge || event.length > EVENT_BYTES_MAX;
    this.#forget();
    if (skip) return event;
    const data = dataOf(event);
    return data !== undefined && this.#reader.onData(data) ? null : event;
  }

  /**
   * Takes a piece of an incomplete event.
   * @returns the bytes to send before the event is complete
   */
  #hold(piece: Buffer): Buffer | null {
    if (piece.length === 0) return null;
    this.#bytes += piece.length;
    if (!this.#tooLarge && this.#bytes <= EVENT_BYTES_MAX) {
      this.#pieces.push(piece);
      return null;
    }
    const all = Buffer.concat([...this.#pieces, piece]);
    this.#pieces = [];
    this.#tooLarge = true;
    return all;
  }

  #forget(): void {
    this.#pieces = [];
    this.#bytes = 0;
    this.#tooLarge = false;
  }
}

function isEmpty(chunk: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (chunk[at] !== CR) return false;
  return true;
}

/** Returns the JSON of an event's data lines; undefined where there is none. */
function dataOf(event: Buffer): unknown {
  let text = '';
  let first = true;
  for (const line of event.toString('utf8').split('\n')) {
    if (!line.startsWith('data:')) continue;
    const value = line.slice(line.charAt(5) === ' ' ? 6 : 5);
    text += first ? value : `\n${value}`;
    first = false;
  }
  if (first) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
