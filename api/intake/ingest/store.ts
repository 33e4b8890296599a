// Events into the log, within the org's budget where it has one: the one way in, for requests of ingest and for what the API records itself.
import type { IngestFormat } from '../../../schemas/formats/formats.ts';
import type { BudgetCheck } from '../../admission/in_flight.ts';
import { readEvents } from './events.ts';
import { ApiError } from '../../http/errors.ts';
import type { OutgoingEvent, Publisher } from './publisher.ts';

/** How long a sender should wait for a full disk, seconds. */
const DISK_RETRY_AFTER_SECONDS = 10;

export interface StoreDeps {
  /** Whether the disk that holds the log is low: nothing is let in then, as what was acknowledged needs the rest of it. */
  disk: { readonly low: boolean };
  /** Whether the org is being deleted, which a request may have outlasted. */
  isDeleted: (org_id: string) => boolean;
  budgets: BudgetCheck;
  publisher: Publisher;
}

/**
 * Puts events into the log; resolves when it has them.
 * @param spentMs how much of COMMIT_MS_MAX the request has used up already
 * @throws ApiError rate_limited, payment_required, upstream_unavailable, unauthenticated when the org has been deleted meanwhile
 */
export async function storeEvents(
  { budgets, publisher, disk, isDeleted }: StoreDeps,
  org_id: string,
  events: readonly OutgoingEvent[],
  spentMs: number,
): Promise<void> {
  if (disk.low) throw diskLow();
  if (isDeleted(org_id)) throw new ApiError('unauthenticated', 'The organization has been deleted.');
  const began = performance.now();
  const admitted = budgets.guards(org_id) ? budgets.admit(org_id, events) : null;
  const hold = admitted instanceof Promise ? await admitted : admitted;
  try {
    const positions = await publisher.publish(events, spentMs + performance.now() - began);
    hold?.confirm(positions);
  } catch (error) {
    hold?.cancel();
    throw error;
  }
}

function diskLow(): ApiError {
  return new ApiError(
    'rate_limited',
    'The disk of the service is nearly full: nothing new is stored until there is room. Send it again later.',
    {
      headers: { 'Retry-After': String(DISK_RETRY_AFTER_SECONDS) },
    },
  );
}

/** A body, and the format whose ingest path it would have come to. */
export interface FormattedBody {
  format: IngestFormat;
  body: unknown;
}

/** For slices that record several events which belong together, and spend something before they have them. */
export interface BodyRecorder {
  /** Rejects what the budget does not let in, before anything is spent on it; stores and keeps nothing. @throws ApiError as ingest does */
  check: (org_id: string, bodies: readonly FormattedBody[]) => Promise<void>;
  /** Stores all of them together. @throws ApiError as ingest does */
  store: (org_id: string, bodies: readonly FormattedBody[]) => Promise<void>;
}

export function createBodyRecorder(deps: StoreDeps & { partitions: number; now: () => number }): BodyRecorder {
  const read = (org_id: string, bodies: readonly FormattedBody[]) => {
    const source = { org_id, received_at: deps.now(), partitions: deps.partitions };
    return bodies.flatMap(({ format, body }) => readEvents(body, { format, ...source }).events);
  };
  return {
    check: async (org_id, bodies) => {
      if (deps.disk.low) throw diskLow();
      if (!deps.budgets.guards(org_id)) return;
      // Asked as if it came in now, so that near a limit the one process that decides for all is asked too.
      const hold = await deps.budgets.admit(org_id, read(org_id, bodies));
      hold.cancel();
    },
    store: (org_id, bodies) => storeEvents(deps, org_id, read(org_id, bodies), 0),
  };
}
