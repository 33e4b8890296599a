// Fans platform events out to webhook endpoints. It takes batches of EVENTS and stores one message
// in WEBHOOKS for each event and each subscribed endpoint of its organization. Guarantees: a batch
// is acknowledged when all its deliveries are stored, so a crash repeats it, and the stream drops
// what is stored twice within its deduplication window. A delivery without room becomes a dead
// letter, so no receiver delays the others. While no organization has an endpoint, a batch costs
// one look into memory. At most STORING_MAX deliveries are being stored at a time.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_STREAM, MESSAGE_BYTES_MAX, WEBHOOK_MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
import { freshDelivery, letterOf, publishDelivery, type WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import { type ServiceEvent, serviceEventsCodec, type WebhookDelivery } from '../../schemas/codec.ts';
import type { DeadDeliveryReason } from '../../schemas/records/webhook.ts';
import { backoffMs } from '../queues/backoff.ts';
import type { DeadMessage } from '../queues/dead_letters.ts';
import { type Delivery, QueueConsumer } from '../queues/queue_consumer.ts';
import type { WebhookBacklog } from './webhook_backlog.ts';
import type { WebhookTargets } from './webhook_targets.ts';

/** Name in dead letters, and of the durable consumer. */
const QUEUE = 'events';
const DURABLE = 'webhook_fanout';
const ACK_WAIT_MS = 30_000;
/** Maximum number of batches held by this worker, and by all workers together. */
const BATCHES_MAX = 4;
const BATCHES_PENDING_MAX = 64;
/** Waits while a dead letter cannot be stored. */
const RETRY = { firstMs: 10_000, maxMs: 10_000 };
/** Maximum number of deliveries that are being stored at a time. */
const STORING_MAX = 256;
/** Maximum bytes of a payload; the rest of a message is ids and names. */
const PAYLOAD_BYTES_MAX = WEBHOOK_MESSAGE_BYTES_MAX - 4096;
/** Tag of a first attempt, see publishDelivery. */
const FIRST_TAG = '0';

export interface WebhookFanoutOptions {
  log: Log;
  logger: Logger;
  targets: Pick<WebhookTargets, 'any' | 'subscribersOf'>;
  backlog: Pick<WebhookBacklog, 'admit'>;
  deadLetters: Pick<WebhookDeadLetters, 'put'>;
  deadLetter: (message: DeadMessage) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Receives how many deliveries of a batch were stored, and how many found no room. */
  observe: (deliveries: number, overflown: number) => void;
}

export class WebhookFanout {
  readonly #options: WebhookFanoutOptions;
  readonly #consumer: QueueConsumer<{ events: ServiceEvent[] }>;

  constructor(options: WebhookFanoutOptions) {
    this.#options = options;
    const { log, logger, targets, deadLetter, now } = options;
    this.#consumer = new QueueConsumer({
      log,
      logger,
      queue: QUEUE,
      durable: DURABLE,
      stream: EVENTS_STREAM,
      codec: serviceEventsCodec,
      deliver: (batch) => this.#spread(batch),
      isWanted: () => targets.any,
      deadLetter,
      messagesMax: BATCHES_MAX,
      bytesMax: BATCHES_MAX * MESSAGE_BYTES_MAX,
      ackPendingMax: BATCHES_PENDING_MAX,
      ackWaitMs: ACK_WAIT_MS,
      retry: RETRY,
      confirmAcks: false,
      now,
    });
  }

  start(): void {
    this.#consumer.start();
  }

  async stop(): Promise<void> {
    await this.#consumer.stop();
  }

  async #spread(batch: Delivery<{ events: ServiceEvent[] }>): Promise<void> {
    const { stored, overflown, complete } = await this.#store(batch.value.events);
    if (stored + overflown > 0) this.#options.observe(stored, overflown);
    if (complete) await this.#consumer.acknowledge(batch);
    else this.#consumer.retry(batch, 0);
  }

  /**
   * Stores the deliveries of a batch, several at a time. `complete` is false when the worker
   * stopped before all were stored.
   */
  async #store(events: readonly ServiceEvent[]): Promise<{ stored: number; overflown: number; complete: boolean }> {
    const { targets, backlog } = this.#options;
    const storing = new Set<Promise<void>>();
    let [stored, overflown, complete] = [0, 0, true];
    for (const event of events) {
      const subscribers = targets.subscribersOf(event.org_id, event.event);
      if (subscribers.length === 0) continue;
      const fits = Buffer.byteLength(event.payload) <= PAYLOAD_BYTES_MAX;
      for (const target_id of subscribers) {
        const refused = !fits ? 'too_large' : backlog.admit(event.org_id, target_id) ? null : 'backlog';
        if (refused === null) stored += 1;
        else overflown += 1;
        const delivery = deliveryOf(event, target_id);
        const store = () =>
          refused === null ? publishDelivery(this.#options.log, delivery, FIRST_TAG) : this.#giveUp(delivery, refused);
        const task = this.#untilDone(store).then((done) => {
          complete &&= done;
          storing.delete(task);
        });
        storing.add(task);
        if (storing.size >= STORING_MAX) await Promise.race(storing);
      }
    }
    await Promise.all(storing);
    return { stored, overflown, complete };
  }

  async #giveUp(delivery: WebhookDelivery, reason: Exclude<DeadDeliveryReason, 'expired'>): Promise<void> {
    const error =
      reason === 'backlog'
        ? 'too many deliveries wait for this receiver'
        : 'the event is larger than a webhook delivery may be';
    const end = { reason, attempts: delivery.attempt, status_code: null, error };
    await this.#options.deadLetters.put(letterOf(delivery, end, this.#options.now()));
  }

  /** Retries until the task succeeds; resolves with false when the worker stopped first. */
  async #untilDone(task: () => Promise<void>): Promise<boolean> {
    for (let tries = 0; ; tries += 1) {
      try {
        await task();
        return true;
      } catch (error) {
        if (tries === 0) this.#options.logger.warn({ err: error }, 'a delivery could not be stored; trying again');
        if (this.#consumer.stopping.aborted || this.#options.log.nc.isClosed()) return false;
        await new Promise((resolve) => setTimeout(resolve, backoffMs(tries)));
      }
    }
  }
}

function deliveryOf(
  { event_id, event, org_id, created_at, payload }: ServiceEvent,
  target_id: string,
): WebhookDelivery {
  return freshDelivery({ event_id, event, org_id, target_kind: 'endpoint', target_id, body: payload, created_at });
}
