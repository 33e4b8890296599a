// Keeps one organization from taking every place that the engine has for analysts. The engine's own list of queries decides, so queries count
// that another process began, that outlived a restart of this one, or that go on although their callers were told of a timeout.
import { setTimeout as delay } from 'node:timers/promises';
import { ENGINE_ORG_MAX } from '../../../sql/analysts/org_views.ts';

/** A query that was cancelled usually ends within a second; a query waits this long for its predecessors. */
const WAIT_MS_MAX = 5000;
const LOOK_EVERY_MS = 250;

export interface EngineRoomDeps {
  /** Returns how many queries of an organization the engine runs. */
  countInEngine: (org_id: string) => Promise<number>;
  /** Milliseconds that a query waits for room; unset: 5000. */
  waitMsMax?: number;
}

/**
 * Waits until the engine runs fewer than ENGINE_ORG_MAX queries of an organization.
 * @returns false when it runs as many after the longest wait
 * @throws Error when the engine is away, or the signal aborts
 */
export async function hasEngineRoom(deps: EngineRoomDeps, org_id: string, signal: AbortSignal): Promise<boolean> {
  const deadline = performance.now() + (deps.waitMsMax ?? WAIT_MS_MAX);
  for (;;) {
    if ((await deps.countInEngine(org_id)) < ENGINE_ORG_MAX) return true;
    if (performance.now() >= deadline) return false;
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}
