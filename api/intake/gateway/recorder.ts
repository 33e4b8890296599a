// Publishes the records of calls asynchronously: no caller waits for them. Takes events; publishes
// each, or gives it up, counts it and logs that. Records of GATHER_MS share a message: a message
// for each call would cost the log, the pipeline and the store more than the call. At most
// RECORDS_MAX records and BYTES_MAX bytes wait. While the log is away or full, a record is retried
// with growing waits for GIVE_UP_MS.
import { Bag } from '../../../ops/platform/bag.ts';
import type { RecordedEvent } from './record.ts';

const RECORDS_MAX = 10_000;
const BYTES_MAX = 64 * 1024 * 1024;
/** Milliseconds from a record to its publish; a killed process loses the records of that time. */
const GATHER_MS = 5;
/** Bytes with which gathered records are published at once. */
const GATHER_BYTES_MAX = 1024 * 1024;
const FIRST_WAIT_MS = 100;
const WAIT_MS_MAX = 5000;
const GIVE_UP_MS = 15 * 60_000;
/**
 * On shutdown, failed records are retried without the long waits until none has been published for
 * this long.
 */
const FLUSH_MS_MAX = 2000;

/**
 * The budget's reservation for a record, until it has landed. The owner calls exactly one of
 * confirm and cancel.
 */
export interface RecordReservation {
  confirm: (positions: ReadonlyMap<number, number>) => void;
  cancel: () => void;
}

export interface RecorderDeps {
  /** Publishes events; resolves with their positions. May be called more than once for an event. */
  publish: (events: readonly RecordedEvent[]) => Promise<ReadonlyMap<number, number>>;
  /** low: no new events may be stored now. */
  disk: { readonly low: boolean };
  now: () => number;
  onLost: (reason: 'no_room' | 'given_up', cause: unknown) => void;
}

interface Waiting {
  event: RecordedEvent;
  reservation: RecordReservation | null;
  since: number;
  tries: number;
  /** Place among the open records; -1 once it is published or given up. */
  place: number;
}

export class Recorder {
  readonly #deps: RecorderDeps;
  readonly #open = new Bag<Waiting>();
  /** Records that are published next, together. */
  #gathered: Waiting[] = [];
  #gatheredBytes = 0;
  #gathering: NodeJS.Timeout | undefined;
  /**
   * Records that wait for their next try, each by itself, so that one rejected record does not
   * delay others.
   */
  readonly #timers = new Map<Waiting, NodeJS.Timeout>();
  #bytes = 0;
  #flushing = false;

  constructor(deps: RecorderDeps) {
    this.#deps = deps;
  }

  /** Number of records that are not in the log yet. */
  get waiting(): number {
    return this.#open.size;
  }

  add(event: RecordedEvent, reservation: RecordReservation | null): void {
    if (this.#open.size >= RECORDS_MAX || this.#bytes + event.bytes > BYTES_MAX) {
      reservation?.cancel();
      this.#deps.onLost('no_room', null);
      return;
    }
    const { parsed: _, ...kept } = event;
    const record: Waiting = { event: kept, reservation, since: this.#deps.now(), tries: 0, place: -1 };
    record.place = this.#open.add(record);
    this.#bytes += event.bytes;
    this.#gathered.push(record);
    this.#gatheredBytes += event.bytes;
    if (this.#gatheredBytes >= GATHER_BYTES_MAX) {
      this.#storeGathered();
      return;
    }
    this.#gathering ??= setTimeout(() => {
      this.#storeGathered();
    }, GATHER_MS);
  }

  #storeGathered(): void {
    clearTimeout(this.#gathering);
    this.#gathering = undefined;
    const records = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (records.length > 0) void this.#store(records);
  }

  async #store(records: readonly Waiting[]): Promise<void> {
    for (const record of records) {
      this.#timers.delete(record);
      record.tries++;
    }
    let positions: ReadonlyMap<number, number>;
    try {
      if (this.#deps.disk.low) throw new Error('the disk is nearly full');
      positions = await this.#deps.publish(records.map(({ event }) => event));
    } catch (cause) {
      for (const record of records) this.#failed(record, cause);
      return;
    }
    for (const record of records) {
      // flush() has given the record up and cancelled its reservation.
      if (record.place < 0) continue;
      record.reservation?.confirm(positions);
      this.#end(record);
    }
  }

  #failed(record: Waiting, cause: unknown): void {
    if (record.place < 0) return;
    if (this.#deps.now() - record.since > GIVE_UP_MS) {
      record.reservation?.cancel();
      this.#end(record);
      this.#deps.onLost('given_up', cause);
    } else this.#again(record);
  }

  #again(record: Waiting): void {
    const wait = this.#flushing ? FIRST_WAIT_MS : Math.min(WAIT_MS_MAX, FIRST_WAIT_MS * 2 ** (record.tries - 1));
    this.#timers.set(
      record,
      setTimeout(() => void this.#store([record]), wait),
    );
  }

  #end(record: Waiting): void {
    this.#open.remove(record.place);
    record.place = -1;
    this.#bytes -= record.event.bytes;
  }

  /**
   * Resolves once every record is in the log, or none has been published for FLUSH_MS_MAX: then the
   * rest is given up.
   */
  async flush(): Promise<void> {
    this.#flushing = true;
    // Calls that have just ended add their records at the end of their turn.
    await new Promise(setImmediate);
    this.#storeGathered();
    for (const [record, timer] of this.#timers) {
      clearTimeout(timer);
      void this.#store([record]);
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
      record.reservation?.cancel();
      this.#deps.onLost('given_up', null);
      this.#end(record);
    }
  }
}
