// Reads where the ingest log ends for each partition: no message that NATS had stored before lies
// after that. Takes the log; returns the position of the newest message that may hold events of a
// partition.
import { DeliverPolicy } from '@nats-io/jetstream';
import { ingestSubject } from '../../../schemas/streams.ts';
import type { LogStream } from '../../../schemas/log_layout.ts';
import { streamState } from '../../../ops/platform/nats/log_streams.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';

/** Maximum time of one read, besides the requests that open and close it, in milliseconds. */
const READ_MS = 1000;

/**
 * Returns the position by partition; 0 for a partition of which the log holds nothing.
 * @throws Error when NATS does not answer in time
 */
export async function readLogEnd(
  { js, jsm, streams }: Pick<Log, 'js' | 'jsm' | 'streams'>,
  partitions: number,
): Promise<Map<number, number>> {
  const ends = new Map(Array.from({ length: partitions }, (_, partition) => [partition, 0]));
  await Promise.all(
    streams.layout.streams.map(async (stream) => {
      // A closed stream is deleted once all of it has landed.
      if (!stream.isOpen && (await streamState(jsm, stream.name)) === null) return;
      const own = stream.partitionsOf(partitions);
      const newest = await newestSeqs(js, stream, own);
      const ofAll = newest.get(stream.mixed) ?? 0;
      for (const partition of own) {
        const seq = Math.max(ofAll, newest.get(ingestSubject(partition)) ?? 0);
        if (seq > 0) ends.set(partition, Math.max(stream.position(seq), ends.get(partition) ?? 0));
      }
    }),
  );
  return ends;
}

/** Returns the sequence of the newest message by subject. */
async function newestSeqs(
  js: Log['js'],
  { name, mixed }: LogStream,
  partitions: readonly number[],
): Promise<Map<string, number>> {
  const consumer = await js.consumers.get(name, {
    filter_subjects: [mixed, ...partitions.map(ingestSubject)],
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
    return newest;
  } finally {
    await consumer.delete().catch(() => false);
  }
}
