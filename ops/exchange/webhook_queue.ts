// Webhook deliveries that wait in the queue, and those that were dead-lettered, as JetStream stores
// them. The pipeline sends them; the API enqueues tests and replays. Everything of one receiver has
// a subject of its own.
import type { KV } from '@nats-io/kv';
import { type WebhookDelivery, webhookDeliveryCodec } from '../../schemas/codec.ts';
import { type DeadDelivery, deadDelivery, tokenOf } from '../../schemas/records/webhook.ts';
import { publishRecord } from '../platform/nats/publish_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { WEBHOOKS_STREAM, webhookSubject } from '../../schemas/streams.ts';

const PUBLISH_TIMEOUT_MS = 3000;
const BUCKET = 'webhook_dead_letters';
/** Maximum dead letters of one organization; the oldest are evicted beyond it. */
export const DEAD_LETTERS_ORG_MAX = 10_000;
/**
 * The dead letters of an organization are trimmed when the revision of a write is a multiple of
 * this, so no process needs a count.
 */
const TRIM_EVERY = 97;

type Receiver = Pick<WebhookDelivery, 'org_id' | 'target_id'>;

/**
 * Enqueues a delivery. Resolves once it is stored.
 * @param tag distinguishes attempts of the same event to the same receiver; the same tag within two
 * minutes is stored once
 * @throws Error when the server did not confirm it in time
 */
export async function publishDelivery(log: Log, delivery: WebhookDelivery, tag: string): Promise<void> {
  const { org_id, target_id, event_id } = delivery;
  const msgID = `${event_id}:${tokenOf(org_id)}:${target_id}:${tag}`;
  await publishRecord(log, webhookSubject(tokenOf(org_id), target_id), webhookDeliveryCodec, delivery, {
    msgID,
    timeoutMs: PUBLISH_TIMEOUT_MS,
  });
}

/** Deletes every waiting delivery of a receiver. */
export async function dropDeliveries(log: Log, { org_id, target_id }: Receiver): Promise<void> {
  await log.jsm.streams.purge(WEBHOOKS_STREAM, { filter: webhookSubject(tokenOf(org_id), target_id) });
}

/** Returns the number of waiting deliveries of an organization by receiver, without receivers that have none. */
export async function waitingDeliveries(log: Log, org_id: string): Promise<Map<string, number>> {
  const filter = webhookSubject(tokenOf(org_id), '*');
  const { state } = await log.jsm.streams.info(WEBHOOKS_STREAM, { subjects_filter: filter });
  return new Map(Object.entries(state.subjects ?? {}).map(([subject, count]) => [subject.split('.')[2] ?? '', count]));
}

/** Returns the first attempt of a delivery. */
export function freshDelivery(
  fields: Omit<WebhookDelivery, 'attempt' | 'first_attempt_at' | 'not_before'>,
): WebhookDelivery {
  return { ...fields, attempt: 0, first_attempt_at: 0, not_before: 0 };
}

/** Returns the dead letter of a delivery. @param now milliseconds since the epoch */
export function letterOf(
  { event_id, event, org_id, target_kind, target_id, body, created_at }: WebhookDelivery,
  end: Pick<DeadDelivery, 'reason' | 'attempts' | 'status_code' | 'error'>,
  now: number,
): DeadDelivery {
  return {
    event_id,
    event,
    org_id,
    target_kind,
    target_id,
    body,
    created_at,
    ...end,
    died_at: new Date(now).toISOString(),
  };
}

export interface StoredLetter {
  letter: DeadDelivery;
  key: string;
  revision: number;
}

export class WebhookDeadLetters {
  readonly #log: Log;
  readonly #kv: KV;

  private constructor(log: Log, kv: KV) {
    this.#log = log;
    this.#kv = kv;
  }

  static async open(log: Log): Promise<WebhookDeadLetters> {
    return new WebhookDeadLetters(log, await log.bucket(BUCKET));
  }

  /**
   * Stores a dead letter, which replaces one of the same event and receiver. Resolves once it is
   * stored.
   */
  async put(letter: DeadDelivery): Promise<void> {
    const org = tokenOf(letter.org_id);
    const revision = await this.#kv.put(`${org}.${letter.target_id}.${letter.event_id}`, JSON.stringify(letter));
    if (revision % TRIM_EVERY === 0)
      await this.#log.jsm.streams.purge(`KV_${BUCKET}`, {
        filter: `$KV.${BUCKET}.${org}.>`,
        keep: DEAD_LETTERS_ORG_MAX,
      });
  }

  /** Returns the keys of an organization's dead letters, newest first. */
  async keys(org_id: string): Promise<string[]> {
    return this.#keys(`${tokenOf(org_id)}.*.*`);
  }

  /** Returns the keys of the dead letters of one receiver, newest first. */
  async keysOf({ org_id, target_id }: Receiver): Promise<string[]> {
    return this.#keys(`${tokenOf(org_id)}.${target_id}.*`);
  }

  /** Returns the dead letters of these keys that still exist. */
  async read(keys: readonly string[]): Promise<StoredLetter[]> {
    const entries = await Promise.all(keys.map((key) => this.#kv.get(key)));
    return entries.flatMap((entry) =>
      entry?.operation === 'PUT'
        ? [{ letter: deadDelivery.parse(entry.json()), key: entry.key, revision: entry.revision }]
        : [],
    );
  }

  /** Returns the dead letters of one event of an organization: one per receiver. */
  async ofEvent(org_id: string, event_id: string): Promise<StoredLetter[]> {
    return this.read(await this.#keys(`${tokenOf(org_id)}.*.${event_id}`));
  }

  /** Deletes a dead letter unless a newer one has replaced it. */
  async remove({ key, revision }: StoredLetter): Promise<void> {
    await this.#kv.delete(key, { previousSeq: revision }).catch(() => undefined);
  }

  /** Deletes every dead letter of a receiver. */
  async drop({ org_id, target_id }: Receiver): Promise<void> {
    await this.#log.jsm.streams.purge(`KV_${BUCKET}`, { filter: `$KV.${BUCKET}.${tokenOf(org_id)}.${target_id}.>` });
  }

  async #keys(filter: string): Promise<string[]> {
    const keys: string[] = [];
    for await (const key of await this.#kv.keys(filter)) keys.push(key);
    return keys.reverse();
  }
}
