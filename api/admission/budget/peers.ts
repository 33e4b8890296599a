// The live API processes, as their messages show them. Takes who was heard, and when; returns the
// processes to ask about an organization, in order. Reads no clock: "now" is the newest moment up
// to which this process has heard everything, so that a process that was paused does not consider
// the others dead when it resumes.
import { rankedFor } from '../../../pipeline/domain/budgets/rendezvous.ts';

/**
 * A process that has not been heard for this long is considered dead; it sends ten heartbeats in
 * this time.
 */
export const PEER_EXPIRY_MS = 1000;
/** Maximum number of other processes. Further ones are never asked. */
const PEERS_MAX = 1000;

interface Peer {
  /** Milliseconds of the monotonic clock. */
  heard_at: number;
  /** True once the process has heard the others long enough to know what they have admitted. */
  ready: boolean;
  /** True if the process did not answer and has not been heard since. */
  silent: boolean;
}

export class Peers {
  readonly #own: string;
  readonly #peers = new Map<string, Peer>();

  constructor(own: string) {
    this.#own = own;
  }

  heard(id: string, ready: boolean, heard_at: number): void {
    const peer = this.#peers.get(id);
    if (peer === undefined) {
      if (this.#peers.size < PEERS_MAX) this.#peers.set(id, { heard_at, ready, silent: false });
    } else {
      peer.heard_at = heard_at;
      peer.ready = ready;
      peer.silent = false;
    }
  }

  /** Marks a process that did not answer: it is not asked until it is heard again. */
  silent(id: string): void {
    const peer = this.#peers.get(id);
    if (peer !== undefined) peer.silent = true;
  }

  gone(id: string): void {
    this.#peers.delete(id);
  }

  /**
   * Forgets processes that have not been heard for PEER_EXPIRY_MS.
   * @param heardUntil time up to which everything has been heard
   * @returns their ids
   */
  forget(heardUntil: number): string[] {
    const silent = [...this.#peers].filter(([, { heard_at }]) => heardUntil - heard_at > PEER_EXPIRY_MS);
    for (const [id] of silent) this.#peers.delete(id);
    return silent.map(([id]) => id);
  }

  /** Number of other live processes. */
  get others(): number {
    return this.#peers.size;
  }

  /**
   * Returns the ids of the processes to ask about an organization, in order: the next one is asked
   * when the one before does not answer. Processes that are not ready come last.
   */
  decidersOf(org_id: string, ownReady: boolean): string[] {
    const asked = [...this.#peers].filter(([, { silent }]) => !silent);
    const readiness = new Map([
      ...asked.map(([id, { ready }]) => [id, ready] as const),
      [this.#own, ownReady] as const,
    ]);
    const ranked = rankedFor(org_id, [...readiness.keys()]);
    return [...ranked.filter((id) => readiness.get(id) === true), ...ranked.filter((id) => readiness.get(id) !== true)];
  }
}
