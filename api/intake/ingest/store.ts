// Publishes admitted events to the ingest log, for requests of clients and for what the API process
// itself records. No other code path leads into the log.
import type { IngestFormat } from '../../../schemas/formats/formats.ts';
import type { Admission } from '../../admission/admission.ts';
import type { AdmissionRequest } from '../../admission/admission_request.ts';
import { readEvents } from './events.ts';
import type { OutgoingEvent, Publisher } from './publisher.ts';

/**
 * Publishes the events of a request that passes the last checks. Resolves once the log has stored
 * all of them.
 * @param spentMs how much of COMMIT_MS_MAX the request has used up already
 * @throws ApiError rate_limited, payment_required, upstream_unavailable; unauthenticated when the
 * organization has been deleted meanwhile
 */
export async function storeEvents(
  publisher: Pick<Publisher, 'publish'>,
  request: Pick<AdmissionRequest, 'committing' | 'confirm' | 'release' | 'stamp'>,
  events: readonly OutgoingEvent[],
  spentMs: number,
): Promise<void> {
  const began = performance.now();
  request.stamp(events);
  const waits = request.committing(() => events);
  if (waits !== null) await waits;
  try {
    request.confirm(await publisher.publish(events, spentMs + performance.now() - began));
  } catch (error) {
    request.release('committing');
    throw error;
  }
}

/** A body, with the format whose ingest path would accept it. */
export interface FormattedBody {
  format: IngestFormat;
  body: unknown;
}

/**
 * Records several events that belong together, for slices that spend something before they have the
 * events.
 */
export interface BodyRecorder {
  /**
   * Rejects events that the budget would not admit, before anything is spent on them. Stores and
   * reserves nothing.
   * @throws ApiError as ingest does
   */
  check: (org_id: string, bodies: readonly FormattedBody[]) => Promise<void>;
  /**
   * Stores all events together.
   * @throws ApiError as ingest does
   */
  store: (org_id: string, bodies: readonly FormattedBody[]) => Promise<void>;
}

export interface BodyRecorderDeps {
  admission: Pick<Admission, 'begin'>;
  publisher: Publisher;
  partitions: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export function createBodyRecorder({ admission, publisher, partitions, now }: BodyRecorderDeps): BodyRecorder {
  const read = (org_id: string, bodies: readonly FormattedBody[]) => {
    const source = { org_id, received_at: now(), partitions };
    return bodies.flatMap(({ format, body }) => readEvents(body, { format, ...source }).events);
  };
  return {
    check: async (org_id, bodies) => {
      const request = admission.begin('record_preflight');
      try {
        request.identified(org_id);
        await request.committing(() => read(org_id, bodies));
      } finally {
        request.release();
      }
    },
    store: (org_id, bodies) => {
      const request = admission.begin('record');
      request.identified(org_id);
      return storeEvents(publisher, request, read(org_id, bodies), 0).finally(() => {
        request.release();
      });
    },
  };
}
