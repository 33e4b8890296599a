// The way of evals into their queue: a message for each chunk that is to be worked on. Used by the API that takes an eval, and by
// workers that go on with it. Guarantees: the same chunk sent twice within the stream's window is one message; what is lost all the
// same is found by a worker, as the eval's record says which chunks are open.
import { judgingTaskCodec } from '../../schemas/codec.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { judgingSubject } from '../../schemas/streams.ts';

const PUBLISH_TIMEOUT_MS = 3000;

/** What reads rules takes milliseconds, what calls models takes minutes: each has its own readers. */
export const laneOf = ({ calls_model }: Pick<EvalRecord, 'calls_model'>): 'eval' | 'dataset' =>
  calls_model ? 'dataset' : 'eval';

/** Puts chunks of an eval into the queue: all open ones unless given. @throws Error when JetStream does not confirm one in time */
export async function queueChunks(log: Log, record: EvalRecord, chunks = record.progress.open): Promise<void> {
  const { org_id, eval_id, judge_id, judge_version, dataset } = record;
  await Promise.all(
    chunks.map(({ chunk, sent_ms }) => {
      const task_id = `${eval_id}.${String(chunk)}.${String(sent_ms)}`;
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
