// Keeps messages of work queues that can never be delivered: a letter each in DEAD_LETTERS, where the operator's command
// shows them.
import { publishRecord } from '../../ops/nats/publish_record.ts';
import type { Log } from '../../ops/nats/open_log.ts';
import { deadLetterSubject } from '../../ops/streams.ts';
import { deadLetterCodec } from '../../schemas/codec.ts';
import type { DeadItem } from './work_queue.ts';

const PUBLISH_TIMEOUT_MS = 3000;
const DETAIL_CHARS_MAX = 4000;

/** What a work queue buries with. @param now milliseconds since the epoch */
export function createBurial(log: Log, now: () => number): (item: DeadItem) => Promise<void> {
  return async ({ queue, reason, detail, seq, data }) => {
    const letter = {
      stage: queue,
      reason,
      detail: detail.slice(0, DETAIL_CHARS_MAX),
      // It stood in no partition of the ingest log; log_index -1 stands for a whole message.
      partition: 0,
      log_seq: seq,
      log_index: -1,
      died_at: now(),
      org_id: '',
      format: '',
      event_hex: '',
      trace_id: '',
      received_at: 0,
      body: Buffer.from(data),
    };
    const options = { msgID: `dead:${queue}:${String(seq)}`, timeoutMs: PUBLISH_TIMEOUT_MS };
    await publishRecord(log, deadLetterSubject(queue), deadLetterCodec, letter, options);
  };
}
