// Streamed responses that are written while they are read from the store, so that none is kept as a
// whole. Each holds a connection to the store as long as its caller reads. A process writes a few
// at a time, and fewer for one organization, so that other reads always find a connection; others
// wait for up to WAIT_MS_MAX. A caller that reads nothing for STALL_MS is disconnected.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { wellFormedJson } from '../../pipeline/domain/text/well_formed.ts';
import { OrgTurns } from './org_turns.ts';

/**
 * Maximum number at a time in a process, well below its connections to the store (CONNECTIONS_MAX
 * of sql/client/client.ts), and for one organization.
 */
export const WRITTEN_MAX = 6;
export const WRITTEN_ORG_MAX = 3;
/** Responses of one organization that are written or wait. */
const OPEN_ORG_MAX = 100;
const WAIT_MS_MAX = 20_000;
/**
 * Longer than the pauses of a working network; until then the response keeps its slot and its
 * connection to the store.
 */
const STALL_MS = 30_000;

/** Sentence for the description of a route that responds this way. */
export const WRITTEN_AS_READ = `The response is written while it is read: a process writes ${WRITTEN_ORG_MAX} at a time for an organization, others wait up to ${WAIT_MS_MAX / 1000} seconds and then get 429, and so does at once a request beyond ${OPEN_ORG_MAX} of an organization; a caller that reads nothing for ${STALL_MS / 1000} seconds is disconnected.`;

export class WrittenAnswers {
  readonly #turns = new OrgTurns('exports', {
    totalMax: WRITTEN_MAX,
    orgMax: WRITTEN_ORG_MAX,
    orgOpenMax: OPEN_ORG_MAX,
    waitMsMax: WAIT_MS_MAX,
  });

  /**
   * Writes a response once there is room.
   * @throws ApiError rate_limited when there is none for WAIT_MS_MAX, or when OPEN_ORG_MAX of the
   * organization are written or wait; the signal's reason when the caller disconnected while it waited
   */
  run(org_id: string, signal: AbortSignal, answer: () => Promise<void>): Promise<void> {
    return this.#turns.run(org_id, signal, answer);
  }
}

/**
 * Writes JSON as part of a response, replacing unpaired surrogates. Resolves when the response
 * accepts more.
 * @throws when the caller has disconnected, or reads nothing for stallMs
 */
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
