// Turns on the event loop for bodies that are about to be parsed and checked. One process has one loop: sixty large bodies that are
// complete at the same time would hold up everybody's requests until the last of them is checked. Here an org gets a quantum of
// bytes in each turn of the loop; what is beyond waits in the org's line, and lines are served in rotation, one quantum a turn.
import { ApiError } from '../http/errors.ts';

/** What an org may have checked in one turn of the loop: a few milliseconds of work. A larger body has a turn to itself. */
export const QUANTUM_BYTES = 256 * 1024;
/** Who has waited for this long is refused: the answer is due within a second of the body. */
export const TURN_WAIT_MS_MAX = 600;
const RETRY_AFTER_SECONDS = 1;

interface Waiting {
  bytes: number;
  since: number;
  resolve: () => void;
  reject: (error: ApiError) => void;
}

export class FairTurns {
  readonly #now: () => number;
  /** By org, the longest waiting first; the order of the map is that of the rotation. What waits is bounded by the bytes in flight. */
  readonly #lines = new Map<string, Waiting[]>();
  /** Bytes that an org has had checked in this turn. */
  readonly #used = new Map<string, number>();
  #scheduled = false;

  /** @param now milliseconds, monotonic */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Null: at once. Else resolves when it is this body's turn. Rejects with ApiError rate_limited when that takes too long. */
  take(org_id: string, bytes: number): Promise<void> | null {
    const used = this.#used.get(org_id) ?? 0;
    const line = this.#lines.get(org_id);
    this.#schedule();
    const isFirst = this.#used.size === 0 && this.#lines.size === 0;
    if (line === undefined && (isFirst || used + bytes <= QUANTUM_BYTES)) {
      this.#used.set(org_id, used + bytes);
      return null;
    }
    return new Promise((resolve, reject) => {
      const waiting = { bytes, since: this.#now(), resolve, reject };
      if (line === undefined) this.#lines.set(org_id, [waiting]);
      else line.push(waiting);
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#used.clear();
      this.#serve();
      if (this.#lines.size > 0 || this.#used.size > 0) this.#schedule();
    });
  }

  /** One quantum of the line whose turn it is; those who have waited too long cost nothing. */
  #serve(): void {
    for (const [org_id, line] of this.#lines) {
      let served = 0;
      for (let next = line[0]; next !== undefined && (served === 0 || served + next.bytes <= QUANTUM_BYTES); next = line[0]) {
        line.shift();
        if (this.#now() - next.since > TURN_WAIT_MS_MAX) {
          next.reject(tooMuchWaits());
          continue;
        }
        served += next.bytes;
        next.resolve();
      }
      this.#lines.delete(org_id);
      if (line.length > 0) this.#lines.set(org_id, line);
      if (served === 0) continue;
      this.#used.set(org_id, served);
      return;
    }
  }
}

function tooMuchWaits(): ApiError {
  return new ApiError('rate_limited', 'Too many bytes of this org wait to be checked. Send them again shortly.', {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}
