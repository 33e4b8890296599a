// Reservations against hard limits, which every API process publishes to the subject with its id
// for all others. The same messages serve as heartbeats of the process.
import { z } from 'zod';

const RESERVATIONS_SUBJECT = 'usage.let_in';
/**
 * Subject of the reservations of one process: its own messages are recognized without being parsed.
 */
export const reservationsSubject = (process_id: string): string => `${RESERVATIONS_SUBJECT}.${process_id}`;
/** Returns the id of the process that published to the subject. */
export const reservingProcess = (subject: string): string => subject.slice(RESERVATIONS_SUBJECT.length + 1);

const count = z.number();
const picoUsd = z.string().regex(/^-?\d+$/);

/** One use: agent, partition, hour, tokens, bytes, microseconds of sandboxes, pico-USD. */
export const useRow = z.tuple([z.string(), count, count, count, count, count, picoUsd]);
export type UseRow = z.infer<typeof useRow>;

export const reservationsShape = z.object({
  /** Number of the message. It comes first in the text, where the sender reads it from its echo. */
  n: count.default(0),
  ready: z.boolean().default(false),
  /** True in the last message of a process that shuts down. */
  gone: z.boolean().default(false),
  /** New reservations: number, organization, uses. */
  begun: z.array(z.tuple([count, z.string(), z.array(useRow)])),
  /** Reservations that were published to the log: number, and pairs of partition and position. */
  confirmed: z.array(z.tuple([count, z.array(z.tuple([count, count]))])),
  /** Numbers of reservations that were released. */
  cancelled: z.array(count),
  /**
   * Hard limits that the process has seen reached: organization, start of the period, scope, limit,
   * pico-USD.
   */
  crossed: z.array(z.tuple([z.string(), count, z.string(), count, picoUsd])).default([]),
});
export type Reservations = z.infer<typeof reservationsShape>;
