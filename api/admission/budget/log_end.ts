// Reads where the ingest log ends for each partition: no message that NATS had stored before lies
// after that. Takes the log; returns the JetStream sequence of the newest message that may hold
// events of a partition.
import { DeliverPolicy } from '@nats-io/jetstream';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { INGEST_STREAM, ingestSubject, MIXED_SUBJECT } from '../../../schemas/streams.ts';

/** Maximum time of one read, besides the requests that open and close it, in milliseconds. */
const READ_MS = 1000;

/**
 * Returns the sequence by partition; 0 for a partition of which the log holds nothing.
 * @throws Error when NATS does not answer in time
 */
export async function readLogEnd({ js }: Pick<Log, 'js'>, partitions: number): Promise<Map<number, number>> {
  const consumer = await js.consumers.get(INGEST_STREAM, {
    filter_subjects: [MIXED_SUBJECT, ...Array.from({ length: partitions }, (_, partition) => ingestSubject(partition))],
    deliver_policy: DeliverPolicy.LastPerSubject,
    headers_only: true,
  });
  try {
    const newest = new Map<string, number>();
    const { num_pending } = await consumer.info();
    if (num_pending > 0)
      for await (const { subject, seq } of await consumer.fetch({ max_messages: num_pending, expires: READ_MS }))
        newest.set(subject, seq);
    if (newest.size < num_pending) throw new Error(`the log has ${num_pending} subjects, ${newest.size} were read`);
    const ofAll = newest.get(MIXED_SUBJECT) ?? 0;
    return new Map(
      Array.from({ length: partitions }, (_, partition) => [
        partition,
        Math.max(ofAll, newest.get(ingestSubject(partition)) ?? 0),
      ]),
    );
  } finally {
    await consumer.delete().catch(() => false);
  }
}
