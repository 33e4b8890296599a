// Reads the events that the service has published (stream EVENTS).
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_STREAM } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';

interface Reading {
  events: ServiceEvent[];
  upTo: number;
  /** The last read; the next one starts after it. */
  last: Promise<void>;
}

/** Tests poll, and the stream only grows, so each message is read once. */
const readings = new WeakMap<Log, Reading>();

/**
 * Returns all events published so far, in order, or those of one organization if `org_id` is set.
 */
export async function toldEvents(log: Log, org_id?: string): Promise<ServiceEvent[]> {
  const reading = readings.get(log) ?? { events: [], upTo: 0, last: Promise.resolve() };
  readings.set(log, reading);
  const now = reading.last.catch(() => undefined).then(() => readOn(log, reading));
  reading.last = now;
  await now;
  return reading.events.filter((event) => org_id === undefined || event.org_id === org_id);
}

async function readOn({ jsm }: Log, reading: Reading): Promise<void> {
  const { state } = await jsm.streams.info(EVENTS_STREAM);
  while (reading.upTo < state.last_seq) {
    const message = await jsm.streams.getMessage(EVENTS_STREAM, { seq: reading.upTo + 1 });
    if (message !== null)
      reading.events.push(...serviceEventsCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)).events);
    reading.upTo += 1;
  }
}
