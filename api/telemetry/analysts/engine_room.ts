// Keeps one organization from taking every slot that the engine has for analysts. The engine's own
// list of queries decides, so that it also counts queries that another process started, that
// outlived a restart of this one, or that go on after their callers got a timeout.
import { setTimeout as delay } from 'node:timers/promises';
import { ENGINE_ORG_MAX } from '../../../sql/analysts/org_views.ts';

/**
 * Maximum wait of a query for its predecessors, milliseconds. A cancelled query usually ends within
 * a second.
 */
const WAIT_MS_MAX = 5000;
const LOOK_EVERY_MS = 250;

export interface EngineRoomDeps {
  /** Resolves with the number of queries of an organization that the engine runs. */
  countInEngine: (org_id: string) => Promise<number>;
  /** Maximum wait of a query for room, milliseconds. WAIT_MS_MAX by default. */
  waitMsMax?: number;
}

/**
 * Waits until the engine runs fewer than ENGINE_ORG_MAX queries of an organization.
 *
 * @returns false if it still runs that many after the longest wait
 * @throws Error when the engine is unavailable, or the signal aborts
 */
export async function hasEngineRoom(deps: EngineRoomDeps, org_id: string, signal: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + (deps.waitMsMax ?? WAIT_MS_MAX);
  for (;;) {
    if ((await deps.countInEngine(org_id)) < ENGINE_ORG_MAX) return true;
    if (performance.now() >= deadline) return false;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
