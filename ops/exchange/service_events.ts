// Follows platform events as they are published, for API processes that show them live. This is a
// plain subscription to the subject of the stream EVENTS: nothing is acknowledged or repeated, and
// what happens while the connection is down is not heard.
import type { NatsConnection } from '@nats-io/transport-node';
import { FINGERPRINT_HEADER, type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import type { ReportProblem } from '../platform/report_problem.ts';

/** Calls back with the events of each message. @returns a function that stops it */
export function followServiceEvents(
  nc: NatsConnection,
  take: (events: readonly ServiceEvent[]) => void,
  onProblem: ReportProblem,
): () => void {
  const subscription = nc.subscribe(EVENTS_SUBJECT, {
    callback: (error, msg) => {
      if (error !== null) return;
      try {
        take(serviceEventsCodec.decode(msg.data, msg.headers?.get(FINGERPRINT_HEADER)).events);
      } catch (cause) {
        onProblem('a message with platform events could not be read', cause);
      }
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}
