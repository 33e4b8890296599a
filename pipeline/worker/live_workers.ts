// Tells a worker which workers live: those whose heartbeats arrive, and whose connections the NATS server
// still has.
//
// A worker from which nothing was heard for a lease, on the listener's own monotonic clock, is dead. So
// is one whose process is gone (absent_workers.ts). Silence while this worker could not hear, because
// NATS was unavailable or this process was paused, says nothing about others.
import type { NatsConnection } from '@nats-io/transport-node';
import { HeartbeatListener, isAbsent } from '../../ops/exchange/heartbeats.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { AbsentWorkers } from './absent_workers.ts';

export const BEAT_MS = 500;
/** Three heartbeats are missing. A process that is paused for less than two never loses its partitions. */
export const LEASE_MS = 3 * BEAT_MS;
/** A worker is late from here on: its lease may end soon. */
const LATE_MS = 2 * BEAT_MS;
/** Time between two looks at which workers live. */
const LOOK_MS = 250;
/** The same while a worker is absent, which may have lost its connection only, or late. */
const UNCERTAIN_LOOK_MS = 100;
/** This worker has heard nothing for a while if its own heartbeats are silent for this long. */
const DEAF_MS = 2 * BEAT_MS;
/** A worker that was silent for this long is removed from memory. */
const FORGET_MS = 60_000;

interface LiveWorkersOptions {
  nc: NatsConnection;
  workerId: string;
  /** Silence after which a worker is considered dead, in milliseconds. Defaults to LEASE_MS. */
  leaseMs?: number;
  logger: Logger;
}

export class LiveWorkers {
  readonly #workerId: string;
  readonly #leaseMs: number;
  readonly #logger: Logger;
  readonly #heartbeats: HeartbeatListener;
  readonly #absent: AbsentWorkers;
  /** Workers whose processes are gone, while a record may name them. */
  readonly #gone = new Set<string>();
  #lastLookAt = performance.now();
  /**
   * Start of the liveness window, on the monotonic clock. Until it has lasted for a lease, no owner is
   * considered dead for its silence.
   */
  #listeningSince = 0;

  constructor({ nc, workerId, leaseMs, logger }: LiveWorkersOptions) {
    this.#workerId = workerId;
    this.#leaseMs = leaseMs ?? LEASE_MS;
    this.#logger = logger;
    this.#heartbeats = new HeartbeatListener(nc);
    this.#absent = new AbsentWorkers(workerId, (worker) => isAbsent(nc, worker));
  }

  /** True while a worker has no connection and may come back. */
  get isSuspecting(): boolean {
    return this.#absent.isSuspecting;
  }

  /** Returns the time until the next look, in milliseconds. */
  lookAfterMs(now: number): number {
    const isLate = this.#heartbeats.live(now, LATE_MS).length < this.live(now).length;
    return this.isSuspecting || isLate ? UNCERTAIN_LOOK_MS : LOOK_MS;
  }

  /** Begins the liveness window. */
  start(): void {
    this.#listeningSince = performance.now();
  }

  stop(): void {
    this.#heartbeats.stop();
  }

  /** Looks for workers that are gone, and returns the live ones, as `live` does. */
  async look(now: number): Promise<string[]> {
    this.#excuseSilence(now);
    for (const worker of await this.#absent.look(this.#heartbeats.askable(now, this.#leaseMs), now)) {
      this.#heartbeats.remove(worker);
      this.#gone.add(worker);
      this.#logger.info({ worker }, 'a worker has lost its connection to NATS and counts as dead');
    }
    this.#heartbeats.forget(now, FORGET_MS);
    // A paused worker does not answer, so its lease may have ended while this one asked.
    const live = this.live(performance.now());
    for (const worker of live) this.#gone.delete(worker);
    return live;
  }

  /** Returns the live workers, sorted, or none if not even this worker's own heartbeats arrive. */
  live(now: number): string[] {
    const own = this.#heartbeats.heardAt(this.#workerId) ?? -Infinity;
    return now - own > LEASE_MS ? [] : this.#heartbeats.live(now, this.#leaseMs);
  }

  /** Returns whether a worker lives. While this worker hears nothing, none is known to be dead. */
  isLive(worker: string, now: number): boolean {
    const live = this.live(now);
    return live.length === 0 || live.includes(worker);
  }

  /**
   * Returns whether the owner that a record names is dead.
   *
   * @param live as the last look returned them
   */
  isDead(owner: string, live: readonly string[], now: number): boolean {
    return !live.includes(owner) && (this.#gone.has(owner) || now - this.#listeningSince > this.#leaseMs);
  }

  /** Returns whether all of these workers divide the partitions as this version does. */
  areSticky(workers: readonly string[]): boolean {
    return workers.every((worker) => this.#heartbeats.isSticky(worker));
  }

  /** Forgets the workers that are gone and own nothing any more. */
  keepGone(owners: ReadonlySet<string>): void {
    for (const worker of this.#gone) if (!owners.has(worker)) this.#gone.delete(worker);
  }

  /** Restarts the liveness window after a time in which nothing could be heard. */
  #excuseSilence(now: number): void {
    const own = this.#heartbeats.heardAt(this.#workerId) ?? now;
    const deaf = now - own > DEAF_MS || now - this.#lastLookAt > LEASE_MS;
    this.#lastLookAt = now;
    if (!deaf) return;
    this.#heartbeats.excuseAll(now);
    this.#absent.excuseAll();
    this.#gone.clear();
    this.#listeningSince = now;
  }
}
