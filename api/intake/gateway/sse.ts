// Server-sent events beside their way to the caller: bytes in as they come, the same bytes out, and the data of each event told on
// the way. Only an event that is to be hidden is taken out, whole. Lines end in LF or CRLF; how the bytes were split changes nothing.
// Bounds: an event beyond EVENT_BYTES_MAX is passed on as it comes and not read.

/** An event that is held to be read. The last ones of the Responses API hold a whole answer. */
export const EVENT_BYTES_MAX = 8 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const NOTHING = Buffer.alloc(0);

export interface SseReader {
  /** Told of the data of every event, parsed; [DONE] and what is no JSON is not told. true: the caller does not get this event. */
  onData: (data: unknown) => boolean;
  /** Whether events can be hidden: then each goes out when it is complete. Otherwise bytes go out as they come. */
  hides: boolean;
}

export class SseStream {
  readonly #reader: SseReader;
  /** Pieces of the event that is not complete. */
  #pieces: Buffer[] = [];
  #bytes = 0;
  /** Whether the line that is under way holds anything but CR. */
  #lineEmpty = true;
  /** Of the event under way, some has gone out, as it is too large to be read. */
  #tooLarge = false;

  constructor(reader: SseReader) {
    this.#reader = reader;
  }

  /** Takes bytes. @returns what goes out now; may be empty */
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

  /** The stream has ended. @returns what was still held: an event without its blank line is none, but its bytes are the caller's */
  end(): Buffer {
    const rest = this.#reader.hides ? Buffer.concat(this.#pieces) : NOTHING;
    this.#forget();
    return rest;
  }

  /** The last piece of an event. @returns its bytes that have not gone out; null where they are hidden */
  #complete(last: Buffer): Buffer | null {
    const event = this.#pieces.length === 0 ? last : Buffer.concat([...this.#pieces, last]);
    const skip = this.#tooLarge || event.length > EVENT_BYTES_MAX;
    this.#forget();
    if (skip) return event;
    const data = dataOf(event);
    return data !== undefined && this.#reader.onData(data) ? null : event;
  }

  /** Bytes of an event that goes on. @returns what goes out before it is complete */
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

/** The JSON of an event's data lines; undefined where there is none. */
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
