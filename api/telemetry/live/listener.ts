// One connection of the live stream: writes server-sent events, and bounds what the client has not
// read yet. Nothing is kept for a client that is gone: it lists again when it returns.
import type { ServerResponse } from 'node:http';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';
import type { LiveEvents, Topic } from './schema.ts';

/** Bytes of earlier messages that may wait for a client when the next one comes; beyond it, the client is cut off. */
const UNREAD_BYTES_MAX = 1024 * 1024;
/** Pause before a client connects again, milliseconds. After a drain, clients spread over the wider range. */
const RETRY_MS = 2000;
const DRAIN_RETRY_MS = { min: 500, max: 4000 };

const HEADERS = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store, no-transform',
  // nginx and its relatives would collect the messages otherwise.
  'X-Accel-Buffering': 'no',
};

export interface ListenerSpec<Filter> {
  org_id: string;
  topics: ReadonlySet<Topic>;
  /** Ids of the traces that are followed one by one. */
  trace_ids: ReadonlySet<string>;
  /** Filter of the topic traces; null for none. */
  filter: Filter | null;
  /** Returns true while the caller still has the permissions of the topics. */
  isAllowed: () => boolean;
}

export class Listener<Filter> {
  readonly spec: ListenerSpec<Filter>;
  /** performance.now() of the beginning. */
  readonly begun = performance.now();
  readonly #res: ServerResponse;
  /** Message that was sent last of each trace that is followed, as text. */
  readonly #shown = new Map<string, string>();
  readonly #onSlow: () => void;

  constructor(res: ServerResponse, spec: ListenerSpec<Filter>, onSlow: () => void) {
    this.#res = res;
    this.spec = spec;
    this.#onSlow = onSlow;
    res.writeHead(200, HEADERS);
    this.#write(`retry: ${RETRY_MS}\n\n`);
  }

  /** Says that changes are followed from here on. */
  ready(): void {
    const { topics, trace_ids } = this.spec;
    this.send('ready', { topics: [...topics, ...[...trace_ids].map((id) => `trace:${id}`)] });
  }

  send<Name extends keyof LiveEvents>(event: Name, data: LiveEvents[Name]): void {
    this.#write(textOf(event, JSON.stringify(data)));
  }

  /** Sends messages, each with its data as JSON. */
  sendAll(messages: Iterable<{ event: keyof LiveEvents; json: string }>): void {
    // As one write: what counts as unread is what earlier batches left.
    this.#write([...messages].map(({ event, json }) => textOf(event, json)).join(''));
  }

  /** Sends a trace that this connection follows, unless it was sent like this before. */
  sendTrace(trace: LiveEvents['trace']['trace']): void {
    const text = JSON.stringify(trace);
    if (this.#shown.get(trace.trace_id) === text) return;
    this.#shown.set(trace.trace_id, text);
    this.send('trace', { trace });
  }

  /** Writes a comment, which keeps proxies from closing an idle connection. */
  beat(): void {
    this.#write(': heartbeat\n\n');
  }

  /** Says why the stream ends, and ends it. */
  end(reason: LiveEvents['bye']['reason']): void {
    if (reason === 'drain') {
      const { min, max } = DRAIN_RETRY_MS;
      this.#write(`retry: ${Math.round(min + Math.random() * (max - min))}\n`);
    }
    this.send('bye', { reason });
    this.#res.end();
  }

  #write(text: string): void {
    if (this.#res.destroyed || this.#res.writableEnded || text === '') return;
    if (this.#res.writableLength <= UNREAD_BYTES_MAX) {
      this.#res.write(text);
      return;
    }
    this.#onSlow();
    this.#res.destroy();
  }
}

const textOf = (event: keyof LiveEvents, json: string): string => `event: ${event}\ndata: ${wellFormedJson(json)}\n\n`;
