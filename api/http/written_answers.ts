// Answers that are written while they are read from the store, so that none is held as a whole: each has a connection to the store for as
// long as its caller takes to read it. Guarantees: a few of them at a time, of one org fewer still, so that other reads always find a
// connection; what is beyond waits for a moment; a caller that reads nothing for STALL_MS is let go.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { wellFormedJson } from '../../pipeline/domain/text/well_formed.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import { ApiError } from './errors.ts';

/** At a time in a process, well below its connections to the store (CONNECTIONS_MAX of sql/client/client.ts), and of one org. */
export const WRITTEN_MAX = 6;
export const WRITTEN_ORG_MAX = 3;
const WAIT_MS_MAX = 20_000;
/** Longer than a network that still works pauses; until then its place and its connection to the store are kept from others. */
const STALL_MS = 30_000;

/** For the documentation of a route that answers so. */
export const WRITTEN_AS_READ = `Written while it is read: a process writes ${String(WRITTEN_ORG_MAX)} for an org at a time, others wait up to ${String(WAIT_MS_MAX / 1000)} seconds and are then 429; a caller that reads nothing for ${String(STALL_MS / 1000)} seconds is let go.`;

export class WrittenAnswers {
  readonly #slots = new FairSlots({ totalMax: WRITTEN_MAX, orgMax: WRITTEN_ORG_MAX });

  /**
   * Runs what writes an answer, once there is room.
   * @throws ApiError rate_limited when there is none for WAIT_MS_MAX; the signal's reason when the caller went away while it waited
   */
  async run(org_id: string, signal: AbortSignal, answer: () => Promise<void>): Promise<void> {
    const waited = AbortSignal.timeout(WAIT_MS_MAX);
    const turn = { begun: false };
    try {
      await this.#slots.run(org_id, AbortSignal.any([signal, waited]), () => {
        turn.begun = true;
        return answer();
      });
    } catch (error) {
      if (turn.begun || signal.aborted || !waited.aborted) throw error;
      throw new ApiError('rate_limited', 'Too many files of this organization are being written. Try again shortly.', {
        headers: { 'Retry-After': '1' },
      });
    }
  }
}

/** Writes a part of an answer in JSON, without unpaired surrogates; resolves when the response takes more. @throws when the caller has gone, or reads nothing for stallMs */
export async function writePart(
  res: ServerResponse,
  json: string,
  signal: AbortSignal,
  stallMs = STALL_MS,
): Promise<void> {
  signal.throwIfAborted();
  if (!res.write(wellFormedJson(json)))
    await once(res, 'drain', { signal: AbortSignal.any([signal, AbortSignal.timeout(stallMs)]) });
}
