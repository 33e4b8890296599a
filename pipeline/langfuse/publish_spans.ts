// Publishes folded spans to the ingest log as events of the format `otlp`, in messages of one
// partition and of at most MESSAGE_BYTES. Resolves once the log has stored all of them.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { type IngestEvent, ingestBatchCodec } from '../../schemas/codec.ts';
import { ingestSubject } from '../../schemas/streams.ts';
import { eventHex, partitionOf } from '../domain/traces/ids.ts';
import { type Folded, loggedText } from '../domain/traces/logged_span.ts';

const PUBLISH_TIMEOUT_MS = 5000;
/** Target size of a message; a larger event travels alone. */
const MESSAGE_BYTES = 1024 * 1024;

/** @throws Error when the log did not confirm a message in time, or is full */
export async function publishSpans(
  { log, partitions }: { log: Log; partitions: number },
  { org_id, scope, spans }: { org_id: string; scope: string; spans: readonly Folded[] },
): Promise<void> {
  let batch: IngestEvent[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const [first] = batch;
    if (first === undefined) return;
    const subject = ingestSubject(partitionOf(org_id, first.trace_id, partitions));
    const msgID = `langfuse-${first.event_hex}-${batch.at(-1)?.event_hex ?? ''}-${batch.length}`;
    await publishRecord(log, subject, ingestBatchCodec, { events: batch }, { msgID, timeoutMs: PUBLISH_TIMEOUT_MS });
    batch = [];
    bytes = 0;
  };
  // The spans of a fold have one trace, and so one partition.
  for (const { span, received_at } of spans) {
    const body = loggedText(span, scope);
    const event = {
      org_id,
      format: 'otlp' as const,
      event_hex: eventHex(body),
      trace_id: span.trace_id,
      received_at,
      body,
    };
    if (bytes + body.length > MESSAGE_BYTES) await flush();
    batch.push(event);
    bytes += body.length;
  }
  await flush();
}
