// Keeps messages of work queues that can never be delivered: a letter each in DEAD_LETTERS, where the operator's command
// shows them.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DeadLetters, itemLetter } from './dead_letters.ts';
import type { DeadItem } from './work_queue.ts';

/** What a work queue buries with; without room for a letter it throws, and the message stays in its queue. @param now milliseconds since the epoch */
export function createBurial(log: Log, now: () => number): (item: DeadItem) => Promise<void> {
  const letters = new DeadLetters(log);
  return async ({ queue, reason, detail, seq, data }) => {
    const letter = itemLetter({ stage: queue, reason, detail, log_seq: seq, died_at: now(), body: Buffer.from(data) });
    await letters.put(letter, `dead:${queue}:${String(seq)}`);
  };
}
