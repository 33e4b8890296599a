// The lag of a worker as one number: an upper bound on the age of the oldest event that has not
// landed, of the stream of the log that is furthest behind.
import type { ReadStream } from './log_readers.ts';

/** The state of a worker at one moment. Times are milliseconds since the epoch. */
export interface Moment {
  now: number;
  /** True if events of the log have not landed. */
  behind: boolean;
  /** received_at of the newest event that has landed; 0 before the first. */
  landed_at: number;
}

/**
 * Computes the lag. The oldest event that has not landed is younger than the newest that has, and
 * younger than the last moment at which everything had landed.
 */
export class Lag {
  #caughtUpAt = 0;

  /** Returns the lag in seconds: 0 if nothing waits, and before the first event has landed. */
  seconds({ now, behind, landed_at }: Moment): number {
    if (landed_at === 0) return 0;
    // After an hour without events, the newest landed event is an hour old, but the next event will
    // not be.
    if (!behind) this.#caughtUpAt = now;
    return behind ? Math.max(0, now - Math.max(landed_at, this.#caughtUpAt)) / 1000 : 0;
  }
}

/** The lags of the streams that a worker reads. */
export class StreamLags {
  #lags = new Map<string, Lag>();

  /**
   * Returns the largest lag in seconds.
   * @param owned how far each partition of the worker is
   * @param now milliseconds since the epoch
   */
  seconds(
    streams: readonly ReadStream[],
    owned: ReadonlyMap<number, { prepared_through: number; landed_through: number; landed_at: number }>,
    now: number,
  ): number {
    const lags = new Map(streams.map(({ name }) => [name, this.#lags.get(name) ?? new Lag()]));
    this.#lags = lags;
    const seconds = streams.map(({ name, partitions, isBehind }) => {
      const states = partitions.flatMap((partition) => owned.get(partition) ?? []);
      const behind = isBehind || states.some((state) => state.landed_through < state.prepared_through);
      const landed_at = Math.max(0, ...states.map((state) => state.landed_at));
      return lags.get(name)?.seconds({ now, behind, landed_at }) ?? 0;
    });
    return Math.max(0, ...seconds);
  }
}
