// Parser of a text/event-stream body. It takes the text in any pieces and returns the messages that
// are complete; the rest waits for the next piece.

/** Characters of an unfinished message that are kept; a longer one ends the stream with an error. */
const UNFINISHED_CHARS_MAX = 4_000_000;

export interface SseMessage {
  event: string;
  data: string;
}

export class SseParser {
  #rest = '';

  /**
   * Returns the messages that this piece completes. Comments, which are heartbeats, give none.
   * @throws Error if a message exceeds UNFINISHED_CHARS_MAX
   */
  push(piece: string): SseMessage[] {
    const lines = (this.#rest + piece).replaceAll('\r\n', '\n');
    const end = lines.lastIndexOf('\n\n');
    if (end === -1) {
      this.#keep(lines);
      return [];
    }
    this.#keep(lines.slice(end + 2));
    return lines
      .slice(0, end)
      .split('\n\n')
      .map(messageOf)
      .filter((message) => message !== null);
  }

  #keep(rest: string): void {
    if (rest.length > UNFINISHED_CHARS_MAX) throw new Error('A message of the live stream is too long.');
    this.#rest = rest;
  }
}

function messageOf(block: string): SseMessage | null {
  let event = 'message';
  const data: string[] = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event:')) event = line.slice('event:'.length).trimStart();
    if (line.startsWith('data:')) data.push(line.slice('data:'.length).replace(/^ /, ''));
  }
  return data.length === 0 ? null : { event, data: data.join('\n') };
}
