// Creates and changes webhook endpoints, sends test events, and lists and replays dead letters. A
// secret is returned once, when it is given or generated; it is stored sealed.
import { randomBytes } from 'node:crypto';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import {
  dropDeliveries,
  freshDelivery,
  publishDelivery,
  type StoredLetter,
  type WebhookDeadLetters,
} from '../../../ops/exchange/webhook_queue.ts';
import { webhookUrlProblem } from '../../../pipeline/domain/webhooks/url.ts';
import { TEST_EVENT } from '../../../schemas/events/catalog.ts';
import {
  LIVE_SECRETS_MAX,
  type WebhookRecord,
  webhookSealContext,
  type WebhookSecret,
} from '../../../schemas/records/webhook.ts';
import { ApiError } from '../../http/errors.ts';
import type { CreateBody, LetterItem, PatchBody, WebhookItem } from './schema.ts';
import type { WebhookStore } from './store.ts';

/** Maximum endpoints of one organization. */
export const ENDPOINTS_ORG_MAX = 2000;
/** Maximum dead letters that one request replays. */
const REPLAYED_MAX = 200;
/** Time for which the previous secrets of an endpoint still sign, milliseconds. */
export const ROTATION_MS = 24 * 3_600_000;
const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export interface WebhooksDeps {
  store: WebhookStore;
  deadLetters: WebhookDeadLetters;
  sealer: Sealer;
  log: Log;
  development: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const newSecret = (): string => SECRET_PREFIX + randomBytes(SECRET_BYTES).toString('base64url');
const newId = (prefix: string): string => prefix + randomBytes(8).toString('hex');

export function itemOf({ webhook_id, url, events, description, enabled, created_at }: WebhookRecord): WebhookItem {
  return { webhook_id, url, events: [...events], description, enabled, created_at };
}

/** @throws ApiError webhook_not_found */
export function getWebhook({ store }: WebhooksDeps, org_id: string, webhook_id: string): WebhookRecord {
  const record = store.get(org_id, webhook_id);
  if (record === null) throw notFound(webhook_id);
  return record;
}

/**
 * @throws ApiError invalid_request for an address that webhooks may not have, conflict when the
 * organization has the maximum number of endpoints
 */
export async function createWebhook(
  deps: WebhooksDeps,
  org_id: string,
  body: CreateBody,
): Promise<{ record: WebhookRecord; secret: string }> {
  const problem = webhookUrlProblem(body.url, deps);
  if (problem !== null) throw new ApiError('invalid_request', `url: ${problem}`);
  if (deps.store.count(org_id) >= ENDPOINTS_ORG_MAX)
    throw new ApiError(
      'conflict',
      `The organization has ${ENDPOINTS_ORG_MAX} webhook endpoints, the most that it can have. Delete one first.`,
    );
  const secret = body.secret ?? newSecret();
  const webhook_id = newId('wh_');
  const created_at = new Date(deps.now()).toISOString();
  const { url, events, description, enabled } = body;
  const secrets = [sealedSecret(deps, { org_id, webhook_id }, secret)];
  const record = { webhook_id, org_id, url, events, description, enabled, created_at, secrets };
  await deps.store.create(record);
  return { record, secret };
}

/** @returns the endpoint before and after @throws ApiError webhook_not_found */
export async function changeWebhook(
  deps: WebhooksDeps,
  org_id: string,
  webhook_id: string,
  patch: PatchBody,
): Promise<{ before: WebhookRecord; after: WebhookRecord }> {
  const given = Object.fromEntries(
    Object.entries(patch).filter(([, value]) => value !== undefined),
  ) as Partial<WebhookRecord>;
  // The last call belongs to the write that succeeded.
  const last: { before: WebhookRecord | null } = { before: null };
  const after = await deps.store.change(org_id, webhook_id, (record) => {
    last.before = record;
    return { ...record, ...given };
  });
  if (after === null || last.before === null) throw notFound(webhook_id);
  return { before: last.before, after };
}

/**
 * Deletes an endpoint, its pending deliveries and its dead letters. @throws ApiError
 * webhook_not_found
 */
export async function deleteWebhook(deps: WebhooksDeps, org_id: string, webhook_id: string): Promise<void> {
  if (!(await deps.store.remove(org_id, webhook_id))) throw notFound(webhook_id);
  // A failure here does no harm: senders drop deliveries of a deleted endpoint.
  const receiver = { org_id, target_id: webhook_id };
  await Promise.allSettled([dropDeliveries(deps.log, receiver), deps.deadLetters.drop(receiver)]);
}

/**
 * Gives an endpoint a new secret. The previous secrets sign beside it for ROTATION_MS, so that a
 * receiver can switch without rejecting deliveries.
 *
 * @throws ApiError webhook_not_found
 */
export async function rotateSecret(
  deps: WebhooksDeps,
  org_id: string,
  webhook_id: string,
  given: string | undefined,
): Promise<{ secret: string; created_at: string; previous_expires_at: string }> {
  const secret = given ?? newSecret();
  const now = deps.now();
  const newest = sealedSecret(deps, { org_id, webhook_id }, secret);
  const previous_expires_at = new Date(now + ROTATION_MS).toISOString();
  const changed = await deps.store.change(org_id, webhook_id, (record) => {
    const before = record.secrets
      .filter(({ expires_at }) => expires_at === null || Date.parse(expires_at) > now)
      .map((one) => ({ ...one, expires_at: one.expires_at ?? previous_expires_at }));
    return { ...record, secrets: [newest, ...before].slice(0, LIVE_SECRETS_MAX) };
  });
  if (changed === null) throw notFound(webhook_id);
  return { secret, created_at: newest.created_at, previous_expires_at };
}

/**
 * Sends a test event to one endpoint through the queue of all deliveries.
 *
 * @returns the id of the event
 * @throws ApiError webhook_not_found, conflict when the endpoint is disabled
 */
export async function sendTest(deps: WebhooksDeps, org_id: string, webhook_id: string): Promise<string> {
  const record = getWebhook(deps, org_id, webhook_id);
  if (!record.enabled) throw disabled(webhook_id);
  const now = deps.now();
  const event_id = newId('evt_');
  const body = JSON.stringify({ event: TEST_EVENT, org_id, webhook_id, sent_at: new Date(now).toISOString() });
  await publishDelivery(
    deps.log,
    freshDelivery({
      event_id,
      event: TEST_EVENT,
      org_id,
      target_kind: 'endpoint',
      target_id: webhook_id,
      body,
      created_at: now,
    }),
    '0',
  );
  return event_id;
}

/**
 * Returns one page of dead letters, newest first, and their number. @throws ApiError
 * upstream_unavailable
 */
export async function listLetters(
  deps: WebhooksDeps,
  org_id: string,
  { webhook_id, limit, offset }: { webhook_id?: string | undefined; limit: number; offset: number },
): Promise<{ items: LetterItem[]; total: number }> {
  try {
    const all = await deps.deadLetters.keys(org_id);
    const keys = webhook_id === undefined ? all : all.filter((key) => key.split('.')[1] === webhook_id);
    const letters = await deps.deadLetters.read(keys.slice(offset, offset + limit));
    return { items: letters.map(letterItemOf), total: keys.length };
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The dead letters cannot be read. Try again.', { cause });
  }
}

/**
 * Sends the dead letters of an event again: the same bytes under the same event id, with the
 * retries of any other delivery.
 *
 * @returns the endpoints that receive the event
 * @throws ApiError not_found when the event has no dead letter, conflict when none of its endpoints
 * is enabled or the event is too large
 */
export async function replayLetters(
  deps: WebhooksDeps,
  org_id: string,
  event_id: string,
  webhook_id: string | undefined,
): Promise<string[]> {
  const found = (await deps.deadLetters.ofEvent(org_id, event_id)).filter(
    ({ letter }) => webhook_id === undefined || letter.target_id === webhook_id,
  );
  if (found.length === 0) throw new ApiError('not_found', `There is no dead letter of the event ${event_id}.`);
  if (found.every(({ letter }) => letter.reason === 'too_large'))
    throw new ApiError('conflict', `The event ${event_id} exceeds the maximum size of a delivery.`);
  const ready = found.filter(
    ({ letter }) => letter.target_kind === 'alert' || deps.store.get(org_id, letter.target_id)?.enabled === true,
  );
  const [first] = found;
  if (ready.length === 0 && first !== undefined) throw disabled(first.letter.target_id);
  for (const one of ready) await replay(deps, one);
  return ready.map(({ letter }) => letter.target_id);
}

/**
 * Sends the dead letters of one endpoint again, the oldest first. Those that exceed the maximum size of
 * a delivery stay.
 *
 * @returns how many were sent, and how many are left for a further request
 * @throws ApiError webhook_not_found, conflict while the endpoint is disabled, upstream_unavailable
 */
export async function replayEndpoint(
  deps: WebhooksDeps,
  org_id: string,
  webhook_id: string,
): Promise<{ replayed: number; remaining: number }> {
  if (!getWebhook(deps, org_id, webhook_id).enabled) throw disabled(webhook_id);
  try {
    const keys = (await deps.deadLetters.keysOf({ org_id, target_id: webhook_id })).toReversed();
    let [replayed, read] = [0, 0];
    while (replayed < REPLAYED_MAX && read < keys.length) {
      const letters = await deps.deadLetters.read(keys.slice(read, read + REPLAYED_MAX - replayed));
      read += REPLAYED_MAX - replayed;
      const sendable = letters.filter(({ letter }) => letter.reason !== 'too_large');
      for (const one of sendable) await replay(deps, one);
      replayed += sendable.length;
    }
    return { replayed, remaining: Math.max(0, keys.length - read) };
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'Not every dead letter could be replayed. Repeat the request.', {
      cause,
    });
  }
}

/**
 * Deletes the letter only after the queue has stored the delivery. Two concurrent replays of a
 * letter store one delivery.
 */
async function replay(deps: WebhooksDeps, stored: StoredLetter): Promise<void> {
  const { event_id, event, org_id, target_kind, target_id, body, created_at } = stored.letter;
  const delivery = freshDelivery({ event_id, event, org_id, target_kind, target_id, body, created_at });
  await publishDelivery(deps.log, delivery, `replay:${stored.revision}`);
  await deps.deadLetters.remove(stored);
}

function letterItemOf({ letter }: StoredLetter): LetterItem {
  const { event_id, target_id, event, reason, attempts, status_code, error, body, created_at, died_at } = letter;
  const payload = JSON.parse(body) as Record<string, unknown>;
  const made = new Date(created_at).toISOString();
  return {
    event_id,
    webhook_id: target_id,
    event,
    reason,
    attempts,
    status_code,
    error,
    payload,
    created_at: made,
    died_at,
  };
}

function sealedSecret(
  { sealer, now }: WebhooksDeps,
  { org_id, webhook_id }: Pick<WebhookRecord, 'org_id' | 'webhook_id'>,
  secret: string,
): WebhookSecret {
  const sealed = sealer.seal(secret, webhookSealContext(org_id, webhook_id));
  return { sealed, created_at: new Date(now()).toISOString(), expires_at: null };
}

const notFound = (webhook_id: string) =>
  new ApiError('webhook_not_found', `There is no webhook endpoint ${webhook_id}.`);
const disabled = (webhook_id: string) =>
  new ApiError('conflict', `The webhook endpoint ${webhook_id} is disabled or deleted. Enable it first.`);
