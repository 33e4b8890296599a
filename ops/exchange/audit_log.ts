// Records mutations for every process that makes them: an intent that is durable before the
// mutation is tried, and an outcome after it, both in the stream AUDIT. A process that dies in
// between leaves the intent, which the audit log shows as a mutation of unknown outcome. So no
// mutation is missing there, and ClickHouse need not be available.
import { setTimeout as sleep } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { ReportProblem } from '../platform/report_problem.ts';
import { auditEntryCodec, type AuditEntry } from '../../schemas/codec.ts';
import type { AuditActor, AuditTarget } from '../../schemas/records/audit.ts';
import { auditableChanges } from './audit_changes.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { AUDIT_SUBJECT } from '../../schemas/streams.ts';

/** A mutation that is about to happen. */
export interface Mutation {
  org_id: string;
  actor: AuditActor;
  /** Noun and verb: member.role_change. */
  action: string;
  /** The id is empty when the mutation creates the target. */
  target: AuditTarget;
  /** Empty when no request caused the mutation. */
  request_id: string;
  ip: string;
}

/** The outcome of a mutation, where it differs from the intent. */
export interface Outcome {
  org_id: string;
  target: AuditTarget;
  /** Changed fields with their new values. */
  changes: Readonly<Record<string, unknown>>;
}

/**
 * A mutation whose intent is durable. At most one of the two methods ends it; if neither does, its
 * outcome is unknown.
 */
export interface IntendedMutation {
  readonly audit_id: string;
  /**
   * Records that the mutation happened. Never rejects, because the mutation cannot be undone: an
   * outcome that cannot be stored is reported as a problem.
   */
  done: (outcome: Outcome) => Promise<void>;
  /** Records that the mutation certainly did not happen. Never rejects. */
  failed: () => Promise<void>;
}

export interface AuditLogDeps {
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Returns true while NATS is connected. */
  connected: () => boolean;
  onProblem: ReportProblem;
}

/** The intent cannot be stored, so the mutation must not be tried. */
export class AuditUnavailable extends Error {}

/** Maximum time that a mutation waits for its intent to be stored. */
const INTENT_MS_MAX = 2000;
const OUTCOME_TRY_MS = 500;
/**
 * Maximum time that the caller waits for the outcome to be stored; afterwards it is stored in the
 * background.
 */
const OUTCOME_WAIT_MS = 1500;
/**
 * Maximum attempts to store an outcome. With the pauses between them they span about a minute; then
 * the outcome stays unknown.
 */
const OUTCOME_TRIES_MAX = 40;
const OUTCOME_PAUSE_FIRST_MS = 50;
const OUTCOME_PAUSE_MAX_MS = 1500;
/** Maximum number of outcomes that are being stored; each further one gets a single attempt. */
const OUTCOMES_OPEN_MAX = 1000;
const FLUSH_MS = 2000;
/** Maximum length of an id, which may come from a path; a longer one is truncated. */
const TEXT_CHARS_MAX = 512;

const cut = (text: string): string => text.slice(0, TEXT_CHARS_MAX);

export class AuditLog {
  readonly #log: Log;
  readonly #deps: AuditLogDeps;
  readonly #open = new Set<Promise<void>>();

  constructor(log: Log, deps: AuditLogDeps) {
    this.#log = log;
    this.#deps = deps;
  }

  /**
   * Stores the intent of a mutation. @throws AuditUnavailable when it is not certain to be stored
   */
  async intend(mutation: Mutation): Promise<IntendedMutation> {
    const intent: AuditEntry = {
      audit_id: `aud_${randomUUID().replaceAll('-', '')}`,
      phase: 'intent',
      org_id: cut(mutation.org_id),
      actor_type: mutation.actor.type,
      actor_id: cut(mutation.actor.id),
      action: cut(mutation.action),
      target_type: mutation.target.type,
      target_id: cut(mutation.target.id),
      changes: '{}',
      request_id: cut(mutation.request_id),
      ip: cut(mutation.ip),
      created_at: this.#deps.now(),
    };
    if (!this.#deps.connected()) throw new AuditUnavailable('NATS is away');
    try {
      await this.#publish(intent, INTENT_MS_MAX);
    } catch (cause) {
      // The intent may be stored although the confirmation is missing; this closes it, so that it
      // is not shown as unknown.
      if (!(cause instanceof JetStreamApiError)) void this.#conclude({ ...intent, phase: 'failed' });
      throw new AuditUnavailable('the intent of a mutation was not stored', { cause });
    }
    return {
      audit_id: intent.audit_id,
      done: async ({ org_id, target, changes }) => {
        const done: AuditEntry = {
          ...intent,
          phase: 'done',
          org_id: cut(org_id),
          target_type: target.type,
          target_id: cut(target.id),
          changes: auditableChanges(changes),
        };
        const both = [this.#conclude(done)];
        // The outcome is stored under the organization that the mutation turned out to concern. An
        // intent under no organization, or under another one, is closed.
        if (done.org_id !== intent.org_id) both.push(this.#conclude({ ...intent, phase: 'failed' }));
        await Promise.all(both);
      },
      failed: () => this.#conclude({ ...intent, phase: 'failed' }),
    };
  }

  /** Resolves once every outcome is stored, and after a bounded wait at the latest. */
  async flush(): Promise<void> {
    await Promise.race([Promise.all(this.#open), sleep(FLUSH_MS, undefined, { ref: false })]);
  }

  async #conclude(entry: AuditEntry): Promise<void> {
    const stored = this.#store(entry, this.#open.size < OUTCOMES_OPEN_MAX ? OUTCOME_TRIES_MAX : 1);
    this.#open.add(stored);
    void stored.then(() => this.#open.delete(stored));
    const waited = new AbortController();
    await Promise.race([stored, sleep(OUTCOME_WAIT_MS, undefined, { signal: waited.signal }).catch(() => undefined)]);
    waited.abort();
  }

  async #store(entry: AuditEntry, triesMax: number): Promise<void> {
    for (
      let tries = 1, pauseMs = OUTCOME_PAUSE_FIRST_MS;
      ;
      tries++, pauseMs = Math.min(pauseMs * 2, OUTCOME_PAUSE_MAX_MS)
    ) {
      try {
        if (!this.#deps.connected()) throw new AuditUnavailable('NATS is away');
        await this.#publish(entry, OUTCOME_TRY_MS);
        return;
      } catch (cause) {
        if (tries >= triesMax) {
          this.#deps.onProblem(`the outcome of ${entry.audit_id} could not be stored; it stands as unknown`, cause);
          return;
        }
        await sleep(pauseMs);
      }
    }
  }

  async #publish(entry: AuditEntry, timeoutMs: number): Promise<void> {
    await publishRecord(this.#log, AUDIT_SUBJECT, auditEntryCodec, entry, {
      msgID: `${entry.audit_id}:${entry.phase}`,
      timeoutMs,
    });
  }
}

/** A mutation that the service makes by itself. */
export type SystemMutation = Pick<Mutation, 'org_id' | 'action' | 'target'> & {
  /** Name of the job that makes it. */
  by: string;
};

/**
 * Makes a mutation of the service itself between its intent and its outcome.
 * @param mutate resolves with the changes, or with null when nothing changed, which records
 * nothing. When it throws, the mutation may have happened: its outcome is unknown, and the error is
 * passed on.
 * @throws AuditUnavailable when the intent cannot be stored; nothing was tried
 */
export async function recordSystemMutation(
  audit: AuditLog,
  { by, ...mutation }: SystemMutation,
  mutate: () => Promise<Readonly<Record<string, unknown>> | null>,
): Promise<void> {
  const intended = await audit.intend({ ...mutation, actor: { type: 'system', id: by }, request_id: '', ip: '' });
  const changes = await mutate();
  await (changes === null ? intended.failed() : intended.done({ ...mutation, changes }));
}
