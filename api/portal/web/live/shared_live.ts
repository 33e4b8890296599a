// The live streams of all tabs of a browser over as few connections as possible: the tab that holds a lock
// leads and passes the events on to the others. A hidden tab wants nothing, so a browser that nobody looks
// at keeps no connection.
import { randomId } from '../client/random_id.ts';
import { follow, type LiveEvent, type LiveStream } from './connection.ts';
import { connectionsOf } from './connections.ts';
import { setLiveLost } from './live_lost.ts';
import { RENEW_MS, Wants } from './wants.ts';

const NAME = 'millrace.live';

type Message =
  | { kind: 'want'; tab: string; streams: string[] }
  | { kind: 'lead' }
  | { kind: 'event'; stream: string; event: LiveEvent };
type Listener = (event: LiveEvent) => void;

class SharedLive {
  readonly #tab = randomId();
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #wants = new Wants();
  readonly #connections = new Map<string, AbortController>();
  /** Streams of each connection. */
  readonly #carried = new Map<string, readonly string[]>();
  readonly #channel = new BroadcastChannel(NAME);
  #lock: AbortController | null = null;
  #leads = false;
  #timer = 0;

  constructor() {
    this.#channel.onmessage = ({ data }: MessageEvent<Message>) => {
      this.#receive(data);
    };
    document.addEventListener('visibilitychange', () => {
      this.#update();
    });
    addEventListener('pagehide', () => {
      this.#say({ kind: 'want', tab: this.#tab, streams: [] });
    });
  }

  /** Calls the listener for each event of the stream; returns the function that ends that. */
  listen(stream: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(stream) ?? new Set();
    this.#listeners.set(stream, listeners.add(listener));
    this.#update();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(stream);
      this.#update();
    };
  }

  #own(): string[] {
    return document.visibilityState === 'visible' ? [...this.#listeners.keys()] : [];
  }

  /** Announces what this tab wants, and asks for the lead or gives it up. */
  #update(): void {
    const streams = this.#own();
    this.#say({ kind: 'want', tab: this.#tab, streams });
    this.#wants.set(this.#tab, streams, Date.now());
    clearInterval(this.#timer);
    if (streams.length > 0) {
      this.#timer = window.setInterval(() => {
        this.#renew();
      }, RENEW_MS);
      this.#askForLead();
    } else {
      this.#lock?.abort();
      this.#lock = null;
      setLiveLost(false);
    }
    this.#connect();
  }

  #renew(): void {
    const streams = this.#own();
    this.#say({ kind: 'want', tab: this.#tab, streams });
    this.#wants.set(this.#tab, streams, Date.now());
    this.#connect();
  }

  #askForLead(): void {
    if (this.#lock !== null) return;
    const lock = new AbortController();
    this.#lock = lock;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const giveUp = (): void => {
      this.#leads = false;
      for (const connection of [...this.#connections.keys()]) this.#disconnect(connection);
      resolve(undefined);
    };
    const lead = (): Promise<undefined> => {
      if (lock.signal.aborted) return Promise.resolve(undefined);
      this.#leads = true;
      lock.signal.addEventListener('abort', giveUp, { once: true });
      this.#say({ kind: 'lead' });
      this.#connect();
      return promise;
    };
    const { locks } = navigator as { locks?: LockManager };
    // Without a secure context there are no locks: each tab then leads for itself.
    if (locks === undefined) void lead();
    else locks.request(NAME, { signal: lock.signal }, lead).catch(() => undefined);
  }

  /** Opens and closes connections by what the tabs want. */
  #connect(): void {
    if (!this.#leads) return;
    const wanted = connectionsOf(this.#wants.streams(Date.now()));
    for (const connection of [...this.#connections.keys()]) if (!wanted.has(connection)) this.#disconnect(connection);
    for (const [connection, streams] of wanted) {
      // The streams of a connection may change without its topics.
      this.#carried.set(connection, streams);
      if (this.#connections.has(connection)) continue;
      const end = new AbortController();
      this.#connections.set(connection, end);
      const onEvent = (event: LiveEvent): void => {
        for (const stream of this.#carried.get(connection) ?? []) {
          this.#deliver(stream, event);
          this.#say({ kind: 'event', stream, event });
        }
      };
      void follow(JSON.parse(connection) as LiveStream, onEvent, end.signal);
    }
  }

  #disconnect(connection: string): void {
    this.#connections.get(connection)?.abort();
    this.#connections.delete(connection);
    this.#carried.delete(connection);
  }

  #deliver(stream: string, event: LiveEvent): void {
    if (event.name === 'lost') setLiveLost(true);
    else if (event.name === 'resync') setLiveLost(false);
    if (document.visibilityState !== 'visible') return;
    for (const listener of this.#listeners.get(stream) ?? []) listener(event);
  }

  #say(message: Message): void {
    this.#channel.postMessage(message);
  }

  #receive(message: Message): void {
    if (message.kind === 'event') {
      if (!this.#leads) this.#deliver(message.stream, message.event);
    } else if (message.kind === 'lead') this.#renew();
    else {
      this.#wants.set(message.tab, message.streams, Date.now());
      this.#connect();
    }
  }
}

let shared: SharedLive | null = null;

/** Follows a stream of the live route in this tab; returns the function that ends that. */
export function listenLive(stream: LiveStream, listener: Listener): () => void {
  shared ??= new SharedLive();
  return shared.listen(JSON.stringify(stream), listener);
}
