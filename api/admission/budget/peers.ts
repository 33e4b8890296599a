// The API processes that are alive, as each hears of them in what they tell each other. In: who was heard, and when. Out: who
// is asked about an org, in order. Holds no clock: "now" is the newest moment up to which this process surely heard
// everything, so that one that was paused does not take the others for dead when it wakes.
import { rankedFor } from '../../../pipeline/domain/budgets/rendezvous.ts';

/** A process that was not heard of for so long is gone: it says that it is there ten times meanwhile. */
export const PEER_EXPIRY_MS = 1000;
/** More are not kept: they are decided for all the same, and asked never. */
const PEERS_MAX = 1000;

interface Peer {
  /** On the monotonic clock. */
  heard_at: number;
  /** Whether it has heard the others long enough to know what they let in. */
  ready: boolean;
  /** It did not answer, and was not heard of since. */
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

  /** It did not answer: it is not asked before it is heard of again. */
  silent(id: string): void {
    const peer = this.#peers.get(id);
    if (peer !== undefined) peer.silent = true;
  }

  gone(id: string): void {
    this.#peers.delete(id);
  }

  /** Forgets who was not heard of in time. @param surely everything up to then was heard */
  forget(heardUntil: number): void {
    for (const [id, { heard_at }] of this.#peers) if (heardUntil - heard_at > PEER_EXPIRY_MS) this.#peers.delete(id);
  }

  /** Others that are alive. */
  get others(): number {
    return this.#peers.size;
  }

  /** Who decides about the org, and who does when the one before does not answer. Those that are not ready come last. */
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
