// How far workers have landed the ingest log, told as plain NATS messages after each landing: kept by nobody, lost without harm.
// Who counts what waits in the log listens; what decides anything for good is the checkpoint.
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';

const SUBJECT = 'workers.landed';

const landedShape = z.object({ through: z.array(z.tuple([z.number().int(), z.number().int()])) });
/** By partition, the JetStream sequence up to which all has landed. */
export type LandedThrough = z.infer<typeof landedShape>['through'];

/** While the connection is down it is lost; the next one says more. */
export function sendLanded(nc: NatsConnection, through: LandedThrough): void {
  if (!nc.isClosed()) nc.publish(SUBJECT, JSON.stringify({ through }));
}

/** @returns what ends it */
export function hearLanded(nc: NatsConnection, onLanded: (through: LandedThrough) => void): () => void {
  const subscription = nc.subscribe(SUBJECT, {
    callback: (error, message) => {
      if (error !== null) return;
      const told = parsed(message.string());
      if (told !== null) onLanded(told);
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}

function parsed(text: string): LandedThrough | null {
  try {
    return landedShape.parse(JSON.parse(text)).through;
  } catch {
    return null;
  }
}
