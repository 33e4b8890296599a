// Events into the log, within the org's budget where it has one: the one way in, for requests of ingest and for what the API records itself.
import type { IngestFormat } from '../../schemas/formats/formats.ts';
import type { BudgetCheck } from './admission.ts';
import { type EventIds, readEvents } from './events.ts';
import type { OutgoingEvent, Publisher } from './publisher.ts';

export interface StoreDeps {
  budgets: BudgetCheck;
  publisher: Publisher;
}

/**
 * Puts events into the log; resolves when it has them.
 * @param spentMs how much of COMMIT_MS_MAX the request has used up already
 * @throws ApiError rate_limited, payment_required, upstream_unavailable
 */
export async function storeEvents(
  { budgets, publisher }: StoreDeps,
  org_id: string,
  events: readonly OutgoingEvent[],
  spentMs: number,
): Promise<void> {
  const hold = budgets.guards(org_id) ? budgets.admit(org_id, events) : null;
  try {
    const positions = await publisher.publish(events, spentMs);
    hold?.confirm(positions);
  } catch (error) {
    hold?.cancel();
    throw error;
  }
}

/** Stores a body as if it had come to the ingest path of its format, and gives the ids of its events. */
export type StoreBody = (org_id: string, format: IngestFormat, body: unknown) => Promise<readonly EventIds[]>;

/** For slices that record what they have done themselves. @throws ApiError as ingest does */
export function createStoreBody(deps: StoreDeps & { partitions: number; now: () => number }): StoreBody {
  return async (org_id, format, body) => {
    const { events, ids } = readEvents(body, { format, org_id, received_at: deps.now(), partitions: deps.partitions });
    await storeEvents(deps, org_id, events, 0);
    return ids;
  };
}
