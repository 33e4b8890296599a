// Records of calls on their way into the log, behind the callers' backs: nobody waits for them. In: events. Out: the log has each, or
// it was given up and said so. Bounds: RECORDS_MAX and BYTES_MAX of all that wait; a record is tried for GIVE_UP_MS, with growing waits
// in between (the log is away or full). What is given up or finds no room is counted and logged.
import type { RecordedEvent } from './record.ts';

const RECORDS_MAX = 10_000;
const BYTES_MAX = 64 * 1024 * 1024;
const FIRST_WAIT_MS = 100;
const WAIT_MS_MAX = 5000;
const GIVE_UP_MS = 15 * 60_000;
/** At shutdown a record that fails is tried again without the long waits, until nothing has worked for this long. */
const FLUSH_MS_MAX = 2000;

/** What the budget counts of a record until it has landed. Exactly one of the two has to be called. */
export interface RecordHold {
  confirm: (positions: ReadonlyMap<number, number>) => void;
  cancel: () => void;
}

export interface RecorderDeps {
  /** Puts an event into the log; resolves with its place. It may be sent more than once. */
  publish: (events: readonly RecordedEvent[]) => Promise<ReadonlyMap<number, number>>;
  /** Whether nothing new may be stored now. */
  disk: { readonly low: boolean };
  now: () => number;
  onLost: (reason: 'no_room' | 'given_up', cause: unknown) => void;
}

interface Waiting {
  event: RecordedEvent;
  hold: RecordHold | null;
  since: number;
  tries: number;
}

export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #open = new Set<Waiting>();
  /** Those that wait for their next try. */
  readonly #timers = new Map<Waiting, NodeJS.Timeout>();
  #bytes = 0;
  #flushing = false;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Records that are not in the log yet. */
  get waiting(): number {
    return this.#open.size;
  }

  add(event: RecordedEvent, hold: RecordHold | null): void {
    if (this.#open.size >= RECORDS_MAX || this.#bytes + event.bytes > BYTES_MAX) {
      hold?.cancel();
      this.#deps.onLost('no_room', null);
      return;
    }
    const record = { event, hold, since: this.#deps.now(), tries: 0 };
    this.#open.add(record);
    this.#bytes += event.bytes;
    void this.#store(record);
  }

  async #store(record: Waiting): Promise<void> {
    this.#timers.delete(record);
    record.tries++;
    try {
      if (this.#deps.disk.low) throw new Error('the disk is nearly full');
      const positions = await this.#deps.publish([record.event]);
      record.hold?.confirm(positions);
      this.#end(record);
    } catch (cause) {
      const age = this.#deps.now() - record.since;
      if (age > GIVE_UP_MS) {
        record.hold?.cancel();
        this.#end(record);
        this.#deps.onLost('given_up', cause);
      } else this.#again(record);
    }
  }

  #again(record: Waiting): void {
    const wait = this.#flushing ? FIRST_WAIT_MS : Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** (record.tries - 1));
    this.#timers.set(
      record,
      setTimeout(() => void this.#store(record), wait),
    );
  }

  #end(record: Waiting): void {
    this.#open.delete(record);
    this.#bytes -= record.event.bytes;
  }

  /** Resolves when every record is in the log, or nothing has got there for FLUSH_MS_MAX: the rest is given up. */
  async flush(): Promise<void> {
    this.#flushing = true;
    // Calls that have just ended hand their records on at the end of their turn.
    await new Promise(setImmediate);
    for (const [record, timer] of this.#timers) {
      clearTimeout(timer);
      void this.#store(record);
    }
    let left = this.#open.size;
    let moved = this.#deps.now();
    while (this.#open.size > 0 && this.#deps.now() - moved < FLUSH_MS_MAX) {
      await new Promise((resolve) => setTimeout(resolve, FIRST_WAIT_MS / 10));
      if (this.#open.size < left) moved = this.#deps.now();
      left = this.#open.size;
    }
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    for (const record of this.#open) {
      record.hold?.cancel();
      this.#deps.onLost('given_up', null);
    }
    this.#open.clear();
    this.#bytes = 0;
  }
}
