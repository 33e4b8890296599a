// Enqueues evals: one message for each chunk to work on. The API that accepts an eval uses it, and
// so do the workers that continue it. Guarantees: the same chunk sent twice within the stream's
// deduplication window is one message. A worker finds a lost chunk, because the eval's record lists
// the open ones.
import { judgingTaskCodec } from '../../schemas/codec.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { judgingSubject } from '../../schemas/streams.ts';

const PUBLISH_TIMEOUT_MS = 3000;

/**
 * Returns the lane of an eval. Judging by rules takes milliseconds and model calls take minutes, so
 * each lane has its own consumers.
 */
export const laneOf = ({ calls_model }: Pick<EvalRecord, 'calls_model'>): 'eval' | 'dataset' =>
  calls_model ? 'dataset' : 'eval';

/**
 * Enqueues chunks of an eval: all open ones by default. @throws Error when JetStream does not
 * confirm one in time
 */
export async function queueChunks(log: Log, record: EvalRecord, chunks = record.progress.open): Promise<void> {
  const { org_id, eval_id, judge_id, judge_version, dataset } = record;
  await Promise.all(
    chunks.map(({ chunk, sent_ms }) => {
      const task_id = `${eval_id}.${chunk}.${sent_ms}`;
      const task = {
        task_id,
        kind: dataset === null ? ('eval' as const) : ('dataset' as const),
        org_id,
        judge_id,
        judge_version,
        agent_id: '',
        eval_id,
        chunk,
        trace_ids: [],
        created_at: sent_ms,
      };
      return publishRecord(log, judgingSubject(laneOf(record)), judgingTaskCodec, task, {
        msgID: task_id,
        timeoutMs: PUBLISH_TIMEOUT_MS,
      });
    }),
  );
}
