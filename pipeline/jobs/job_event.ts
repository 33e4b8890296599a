// Platform events of jobs. An event is stored in EVENTS before the job goes on.
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { serviceEventsCodec } from '../../schemas/codec.ts';

const PUBLISH_TIMEOUT_MS = 3000;

export interface JobEvent {
  /** Id that a repeat of the event shares, so that repeats are recognized. */
  event_id: string;
  /** Name in the catalog of platform events. */
  event: string;
  org_id: string;
  payload: Readonly<Record<string, unknown>>;
}

/**
 * Publishes a platform event. Resolves when it is stored.
 * @throws Error when JetStream does not acknowledge it in time; it may be stored all the same
 */
export async function publishJobEvent(log: Log, { event_id, event, org_id, payload }: JobEvent): Promise<void> {
  const record = { event_id, event, org_id, created_at: Date.now(), payload: JSON.stringify(payload) };
  await publishRecord(
    log,
    EVENTS_SUBJECT,
    serviceEventsCodec,
    { events: [record] },
    { msgID: event_id, timeoutMs: PUBLISH_TIMEOUT_MS },
  );
}
