// A client of server-sent events: keeps what arrived, and waits for what has not.
import { eventually } from './wait.ts';

export interface StreamEvent {
  event: string;
  data: Record<string, unknown>;
}

export class EventStream {
  readonly status: number;
  readonly headers: Headers;
  /** Events that have arrived, oldest first. */
  readonly events: StreamEvent[] = [];
  /** Comments and the times of `retry` that have arrived. */
  readonly comments: string[] = [];
  readonly retries: number[] = [];
  /** True once the stream has ended, by either side. */
  ended = false;
  readonly #abort: AbortController;

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#abort = abort;
    void this.#read(response);
  }

  static async open(url: string, headers: Record<string, string | undefined> = {}): Promise<EventStream> {
    const abort = new AbortController();
    const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return new EventStream(await fetch(url, { headers: given, signal: abort.signal }), abort);
  }

  /** Data of the events with this name. */
  of(event: string): Record<string, unknown>[] {
    return this.events.filter((one) => one.event === event).map(({ data }) => data);
  }

  /** Resolves with the first event of this name that `is` accepts. */
  async next(
    event: string,
    is: (data: Record<string, unknown>) => boolean = () => true,
    withinMs = 20_000,
  ): Promise<Record<string, unknown>> {
    await eventually(() => Promise.resolve(this.of(event).some(is)), { what: `an event ${event}`, withinMs });
    return this.of(event).find(is) ?? {};
  }

  close(): void {
    this.#abort.abort();
  }

  async #read(response: Response): Promise<void> {
    let text = '';
    const decoder = new TextDecoder();
    try {
      for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true });
        const blocks = text.split('\n\n');
        text = blocks.pop() ?? '';
        for (const block of blocks) this.#take(block);
      }
    } catch {
      // The stream was cut off.
    }
    this.ended = true;
  }

  #take(block: string): void {
    let event = 'message';
    const data: string[] = [];
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments.push(line.slice(1).trim());
      else if (line.startsWith('retry: ')) this.retries.push(Number(line.slice(7)));
      else if (line.startsWith('event: ')) event = line.slice(7);
      else if (line.startsWith('data: ')) data.push(line.slice(6));
    }
    if (data.length > 0) this.events.push({ event, data: JSON.parse(data.join('\n')) as Record<string, unknown> });
  }
}
