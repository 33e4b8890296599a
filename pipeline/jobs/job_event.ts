// How a job tells of something: a platform event, stored in EVENTS before the job goes on.
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { serviceEventsCodec } from '../../schemas/codec.ts';

const PUBLISH_TIMEOUT_MS = 3000;

export interface JobEvent {
  /** The same whenever it goes out: a repeat is known by it. */
  event_id: string;
  /** Name in the catalog of events. */
  event: string;
  org_id: string;
  payload: Readonly<Record<string, unknown>>;
}

/** @throws Error when JetStream does not confirm it in time, in which case it may or may not be stored */
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
