// Dead letters for tests: an event of an organization, stored as the pipeline stores one that it cannot process.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { DeadLetters, itemLetter } from '../../pipeline/queues/dead_letters.ts';

/** An event that lands when it is replayed, as after the upgrade that mended what kept it from landing. */
export interface DeadEvent {
  org_id: string;
  trace_id: string;
  name?: string;
  detail?: string;
}

/** Stores the letter of an event that can land now. */
export async function deadEvent(log: Log, { org_id, trace_id, name = 'step', detail }: DeadEvent): Promise<void> {
  const died_at = Date.now();
  await new DeadLetters(log).put(
    {
      stage: 'decode',
      reason: 'decode_failed',
      detail: detail ?? 'The event could not be decoded.',
      partition: 0,
      log_seq: 1,
      log_index: 0,
      died_at,
      org_id,
      format: 'custom',
      event_hex: randomBytes(8).toString('hex'),
      trace_id,
      received_at: died_at,
      body: Buffer.from(JSON.stringify({ name, trace_id, outcome: 'success', duration_ms: 5 })),
    },
    randomUUID(),
  );
}

/** Stores the letter of a mail, which is no event and cannot be replayed. */
export async function deadMail(log: Log): Promise<void> {
  const letter = itemLetter({
    stage: 'mail',
    reason: 'refused',
    detail: '550 no such mailbox',
    log_seq: 1,
    died_at: Date.now(),
    body: Buffer.from('{}'),
  });
  await new DeadLetters(log).put(letter, randomUUID());
}
