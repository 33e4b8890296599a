// From platform events to deliveries. In: batches of EVENTS. Out: for each event one message in WEBHOOKS a subscribed endpoint
// of its org. Guarantees: a batch is acknowledged when all its deliveries are stored, so it is done again after a crash, and
// what is stored twice within the stream's window is one; what finds no room goes to the dead letters, so that no receiver
// holds up the rest. Events of orgs without endpoints cost a look into memory.
import type { JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_STREAM, WEBHOOK_MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
import { freshDelivery, letterOf, publishDelivery, type WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import {
  FINGERPRINT_HEADER,
  type ServiceEvent,
  serviceEventsCodec,
  UnknownSchemaError,
  type WebhookDelivery,
} from '../../schemas/codec.ts';
import type { DeadDeliveryReason } from '../../schemas/records/webhook.ts';
import { backoffMs } from '../queues/backoff.ts';
import { DurableReader } from '../queues/durable_reader.ts';
import type { WebhookBacklog } from './webhook_backlog.ts';
import type { WebhookTargets } from './webhook_targets.ts';
import type { DeadItem } from '../queues/work_queue.ts';

const DURABLE = 'webhook_fanout';
const ACK_WAIT_MS = 30_000;
const HEARTBEAT_MS = ACK_WAIT_MS / 3;
/** Batches that wait here, and that all workers together have in hand. */
const BATCHES_MAX = 4;
const BATCHES_UNANSWERED_MAX = 64;
/** Deliveries that are being stored at a time. */
const STORING_MAX = 256;
/** Of a payload; the rest of a message is ids and names. */
const PAYLOAD_BYTES_MAX = WEBHOOK_MESSAGE_BYTES_MAX - 4096;
/** After this, what cannot be read and could not be buried comes again. */
const UNBURIED_MS = 10_000;
/** Tag of a first try, see publishDelivery. */
const FIRST_TAG = '0';

export interface WebhookFanoutOptions {
  log: Log;
  logger: Logger;
  targets: Pick<WebhookTargets, 'any' | 'subscribersOf'>;
  backlog: Pick<WebhookBacklog, 'admit'>;
  deadLetters: Pick<WebhookDeadLetters, 'put'>;
  bury: (item: DeadItem) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Told of what a batch has led to. */
  observe: (deliveries: number, overflown: number) => void;
}

export class WebhookFanout {
  readonly #options: WebhookFanoutOptions;
  readonly #reader: DurableReader;
  #stopped = false;

  constructor(options: WebhookFanoutOptions) {
    this.#options = options;
    const { log, logger } = options;
    this.#reader = new DurableReader({
      log,
      logger,
      stream: EVENTS_STREAM,
      durable: DURABLE,
      ackWaitMs: ACK_WAIT_MS,
      unansweredMax: BATCHES_UNANSWERED_MAX,
      messagesMax: BATCHES_MAX,
      handle: (message) => this.#handle(message),
    });
  }

  start(): void {
    this.#reader.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#reader.stop();
  }

  /** Nothing to wait for where there is nobody to tell. */
  #handle(message: JsMsg): Promise<void> | undefined {
    if (this.#options.targets.any) return this.#spread(message);
    message.ack();
    return undefined;
  }

  async #spread(message: JsMsg): Promise<void> {
    const { logger, observe } = this.#options;
    let events: ServiceEvent[];
    try {
      ({ events } = serviceEventsCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER)));
    } catch (error) {
      const reason = error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message';
      logger.error(
        { err: error, seq: message.seq, reason },
        'platform events that cannot be read; they go to DEAD_LETTERS',
      );
      const detail = error instanceof Error ? error.message : String(error);
      await this.#bury(message, { queue: 'events', reason, detail, seq: message.seq, data: message.data });
      return;
    }
    const heartbeat = setInterval(() => {
      if (!this.#options.log.nc.isClosed()) message.working();
    }, HEARTBEAT_MS);
    try {
      const { stored, overflown, complete } = await this.#store(events);
      if (stored + overflown > 0) observe(stored, overflown);
      if (this.#options.log.nc.isClosed()) return;
      if (complete) message.ack();
      else message.nak();
    } finally {
      clearInterval(heartbeat);
    }
  }

  /** Without room for a letter the message comes again: the others do not wait for that. */
  async #bury(message: JsMsg, item: DeadItem): Promise<void> {
    const { bury, logger, log } = this.#options;
    try {
      await bury(item);
      if (!log.nc.isClosed()) message.term(item.reason);
    } catch (error) {
      logger.warn({ err: error, seq: message.seq }, 'a dead letter could not be stored; trying again');
      if (!log.nc.isClosed()) message.nak(UNBURIED_MS);
    }
  }

  /** Stores the deliveries of a batch, several at a time; not complete when the worker stops meanwhile. */
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
      reason === 'backlog' ? 'too many deliveries wait for this receiver' : 'the event is larger than what is sent';
    const end = { reason, attempts: delivery.attempt, status_code: null, error };
    await this.#options.deadLetters.put(letterOf(delivery, end, this.#options.now()));
  }

  /** Tries until it works; false when the worker stopped first. */
  async #untilDone(task: () => Promise<void>): Promise<boolean> {
    for (let tries = 0; ; tries += 1) {
      try {
        await task();
        return true;
      } catch (error) {
        if (tries === 0) this.#options.logger.warn({ err: error }, 'a delivery could not be stored; trying again');
        if (this.#stopped || this.#options.log.nc.isClosed()) return false;
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
