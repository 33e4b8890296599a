// Sends webhook deliveries. It takes messages of WEBHOOKS, which all workers share, and makes
// signed POSTs, one log row for each attempt, and dead letters of the deliveries that it gives up.
// Guarantees: a delivery leaves the queue only when its receiver accepted or finally refused it,
// when its receiver was deleted or disabled, or when it is stored as a dead letter. A failed
// attempt is enqueued as the next one before it is acknowledged, so attempts are counted across
// workers and crashes. A delivery that is repeated after a crash has the same event id. The gate
// bounds the attempts under way and the deliveries that wait for one; the queue consumer bounds the
// rest.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WEBHOOK_MESSAGE_BYTES_MAX, WEBHOOKS_STREAM } from '../../schemas/streams.ts';
import { letterOf, publishDelivery, type WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import { type WebhookDelivery, webhookDeliveryCodec } from '../../schemas/codec.ts';
import {
  type DeliveryOutcome,
  nextTryAt,
  retryAfterMs,
  type RetryTimings,
  verdictOf,
} from '../domain/webhooks/retry.ts';
import { signatureOf } from '../domain/webhooks/signature.ts';
import type { DeadMessage } from '../queues/dead_letters.ts';
import { type Delivery, QueueConsumer } from '../queues/queue_consumer.ts';
import { GATE } from './webhook_bounds.ts';
import type { AttemptResult, WebhookClient } from './webhook_client.ts';
import { type Freed, Gate } from './webhook_gate.ts';
import type { WebhookLog } from './webhook_log.ts';
import type { Target, WebhookTargets } from './webhook_targets.ts';

/** Name in dead letters, and of the durable consumer. */
const QUEUE = 'webhooks';
const DURABLE = 'webhook_sender';
/** Messages requested at a time. */
const FETCH_MAX = 1000;
/**
 * Deliveries that only have to be put off and wait for the next batch of negative acknowledgements,
 * a quarter of a second.
 */
const PUT_OFF_MAX = 10_000;
const MESSAGES_MAX = GATE.waiting_max + GATE.in_flight_max + PUT_OFF_MAX;
const HELD_BYTES_MAX = GATE.waiting_bytes_max + (GATE.in_flight_max + FETCH_MAX) * WEBHOOK_MESSAGE_BYTES_MAX;
/** Waits while dead letters cannot be stored. */
const DEAD_LETTER_RETRY = { firstMs: 1000, maxMs: 30_000 };
const SWEEP_MS = 1000;
/** Interval at which pauses are examined while there are any. */
const RESUME_MS = 20;
/** Time that attempts under way get to end on shutdown; then they are broken off and given back. */
const DRAIN_MS = 3000;
/** Longest pause that a receiver can ask for with 429. */
const PAUSE_MS_MAX = 60_000;
/**
 * Age up to which a delivery without a receiver is kept: it may arrive before the record of its
 * receiver.
 */
const UNHEARD_MS_MAX = 2000;
const USER_AGENT = 'Millrace-Webhooks/1';

export interface WebhookTimings extends RetryTimings {
  /** Timeout of one attempt, milliseconds. */
  timeoutMs: number;
  /** Time after which the queue redelivers the deliveries of a worker that died. */
  ackWaitMs: number;
}

export interface WebhookSenderOptions {
  log: Log;
  logger: Logger;
  targets: Pick<WebhookTargets, 'targetOf'>;
  client: Pick<WebhookClient, 'post'>;
  deadLetters: Pick<WebhookDeadLetters, 'put'>;
  tries: Pick<WebhookLog, 'add'>;
  deadLetter: (message: DeadMessage) => Promise<void>;
  timings: WebhookTimings;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Receives the end of each attempt; `seconds` is null where none was made. */
  observe: (outcome: DeliveryOutcome | 'dropped', seconds: number | null) => void;
}

type Queued = Delivery<WebhookDelivery>;

export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #consumer: QueueConsumer<WebhookDelivery>;
  readonly #gate = new Gate<Queued>();
  #resuming: NodeJS.Timeout | null = null;
  #sweeping: NodeJS.Timeout | null = null;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    const { log, logger, deadLetter, timings, now } = options;
    this.#consumer = new QueueConsumer({
      log,
      logger,
      queue: QUEUE,
      durable: DURABLE,
      stream: WEBHOOKS_STREAM,
      codec: webhookDeliveryCodec,
      deliver: (queued) => {
        this.#take(queued);
        return undefined;
      },
      deadLetter,
      messagesMax: MESSAGES_MAX,
      bytesMax: HELD_BYTES_MAX,
      fetchMax: FETCH_MAX,
      // Deliveries that are put off count as pending: with a bound, those of dead receivers would
      // keep out all others.
      ackPendingMax: -1,
      ackWaitMs: timings.ackWaitMs,
      retry: DEAD_LETTER_RETRY,
      // A delivery whose acknowledgement is lost is repeated with the same event id, which costs
      // less than a round trip for each.
      confirmAcks: false,
      drainMs: DRAIN_MS,
      now,
    });
  }

  get inFlight(): number {
    return this.#gate.inFlight;
  }

  get waiting(): number {
    return this.#gate.waiting;
  }

  start(): void {
    this.#consumer.start();
    this.#sweeping ??= setInterval(() => {
      this.#follow(this.#gate.sweep(performance.now()));
    }, SWEEP_MS);
  }

  /**
   * Ends the attempts under way within a bounded time, and gives the deliveries that wait back to
   * the queue.
   */
  async stop(): Promise<void> {
    const stopped = this.#consumer.stop();
    if (this.#sweeping !== null) clearInterval(this.#sweeping);
    if (this.#resuming !== null) clearTimeout(this.#resuming);
    for (const queued of this.#gate.drain()) this.#consumer.retry(queued, 0);
    await stopped;
  }

  #take(queued: Queued): void {
    const { value: delivery, bytes } = queued;
    const wait = delivery.not_before - this.#options.now();
    if (wait > 0) {
      this.#consumer.retry(queued, wait);
      return;
    }
    const offer = this.#gate.offer(laneOf(delivery), delivery.org_id, queued, bytes, performance.now());
    if (offer.kind === 'go') this.#run(queued, this.#send(queued));
    else if (offer.kind === 'later') this.#putOff(queued, offer.ms);
    else this.#resumeSoon();
  }

  /**
   * Runs the task of a delivery beside all others. A task fails only when the queue or the dead
   * letters cannot be reached: the delivery is then retried after ackWaitMs.
   */
  #run(queued: Queued, task: Promise<void>): void {
    task.catch((error: unknown) => {
      this.#options.logger.warn({ err: error }, 'a delivery could not be settled; it is retried');
      this.#consumer.retry(queued, this.#options.timings.ackWaitMs);
    });
  }

  #follow({ go, later }: Freed<Queued>): void {
    for (const queued of go) {
      if (this.#consumer.cutOff.aborted) this.#consumer.retry(queued, 0);
      else this.#run(queued, this.#send(queued));
    }
    for (const { item, ms } of later) this.#putOff(item, ms);
    this.#resumeSoon();
  }

  #resumeSoon(): void {
    if (this.#resuming !== null || !this.#gate.pausing) return;
    this.#resuming = setTimeout(() => {
      this.#resuming = null;
      this.#follow(this.#gate.resume(performance.now()));
    }, RESUME_MS);
  }

  /** Makes one attempt, whose place at the gate is taken already. */
  async #send(queued: Queued): Promise<void> {
    const { value: delivery } = queued;
    const at = this.#options.now();
    let result: AttemptResult | null;
    try {
      result = await this.#post(delivery, at);
    } catch (error) {
      // The signing secret cannot be opened. The receiver is not at fault, but nothing can be sent.
      const message = error instanceof Error ? error.message : String(error);
      result = { status: null, error: message, retry_after: undefined, duration_ms: 0 };
    }
    const ok = result === null || verdictOf(result.status) !== 'retry';
    const asked = result?.status === 429 ? (retryAfterMs(429, result.retry_after, this.#options.now()) ?? 0) : 0;
    const end = { ok, duration_ms: result?.duration_ms ?? 0, pause_ms: Math.min(asked, PAUSE_MS_MAX) };
    this.#follow(this.#gate.end(laneOf(delivery), end, performance.now()));
    if (result === null) await this.#drop(queued, at);
    else if (result.status === null && this.#consumer.cutOff.aborted) this.#consumer.retry(queued, 0);
    else await this.#settle(queued, result, at);
  }

  /**
   * Resolves with the result of an attempt, or with null when the receiver is deleted or disabled.
   * @throws SealBroken when the signing secret cannot be opened
   */
  async #post(delivery: WebhookDelivery, at: number): Promise<AttemptResult | null> {
    const { target_kind, org_id, target_id, event_id, attempt } = delivery;
    const target: Target | null = this.#options.targets.targetOf(target_kind, org_id, target_id);
    if (target === null) return null;
    const body = Buffer.from(delivery.body);
    return this.#options.client.post({
      url: target.url,
      body,
      headers: {
        'Content-Type': 'application/json',
        'User-Agent': USER_AGENT,
        'X-Service-Event-Id': event_id,
        'X-Service-Signature': signatureOf(target.secrets, body, at),
        'X-Service-Attempt': String(attempt),
      },
      timeoutMs: this.#options.timings.timeoutMs,
      signal: this.#consumer.cutOff,
    });
  }

  async #settle(queued: Queued, result: AttemptResult, at: number): Promise<void> {
    const { log, timings, now } = this.#options;
    const { value: delivery } = queued;
    const verdict = verdictOf(result.status);
    if (verdict !== 'retry') {
      this.#record(delivery, verdict, result, at);
      await this.#consumer.acknowledge(queued);
      return;
    }
    const first_attempt_at = delivery.first_attempt_at === 0 ? at : delivery.first_attempt_at;
    const { attempt } = delivery;
    const next = nextTryAt(
      { attempt, first_attempt_at, status: result.status, retry_after: result.retry_after },
      now(),
      timings,
    );
    if (next === null) {
      await this.#giveUp(delivery, attempt + 1, result);
    } else {
      const following = { ...delivery, attempt: attempt + 1, first_attempt_at, not_before: next };
      await publishDelivery(log, following, `${first_attempt_at}:${following.attempt}`);
    }
    this.#record(delivery, next === null ? 'dead-lettered' : 'retrying', result, at);
    await this.#consumer.acknowledge(queued);
  }

  /** Retries a delivery later that found no room, or expires it when its time is over. */
  #putOff(queued: Queued, ms: number): void {
    const { value: delivery, queued_at } = queued;
    const { timings, now } = this.#options;
    const since = delivery.first_attempt_at === 0 ? queued_at : delivery.first_attempt_at;
    // A delivery without an attempt expires only because its receiver fails, not because this
    // service was down for long.
    const failing = delivery.attempt > 0 || this.#gate.isFailing(laneOf(delivery));
    if (!failing || now() - since <= timings.giveUpMs) {
      this.#consumer.retry(queued, ms);
      return;
    }
    this.#run(queued, this.#expire(queued));
  }

  /** Dead-letters a delivery that could not be retried in time. */
  async #expire(queued: Queued): Promise<void> {
    const { value: delivery } = queued;
    const at = this.#options.now();
    const result = {
      status: null,
      error: 'its time was over before it could be tried again',
      retry_after: undefined,
      duration_ms: 0,
    };
    await this.#giveUp(delivery, delivery.attempt, result);
    this.#record(delivery, 'dead-lettered', result, at, false);
    await this.#consumer.acknowledge(queued);
  }

  async #giveUp(delivery: WebhookDelivery, attempts: number, { status, error }: AttemptResult): Promise<void> {
    const end = { reason: 'expired', attempts, status_code: status, error } as const;
    await this.#options.deadLetters.put(letterOf(delivery, end, this.#options.now()));
  }

  #record(delivery: WebhookDelivery, outcome: DeliveryOutcome, result: AttemptResult, at: number, tried = true): void {
    const { org_id, target_id, event_id, event, attempt } = delivery;
    const { status, error, duration_ms } = result;
    this.#options.tries.add({
      org_id,
      target_id,
      event_id,
      event,
      attempt,
      outcome,
      status_code: status ?? 0,
      error: error ?? '',
      duration_ms,
      at,
    });
    this.#options.observe(outcome, tried ? duration_ms / 1000 : null);
  }

  /**
   * Drops a delivery whose receiver is deleted or disabled; retries one whose receiver may be too
   * new to be known here.
   */
  async #drop(queued: Queued, at: number): Promise<void> {
    if (at - queued.queued_at < UNHEARD_MS_MAX) {
      this.#consumer.retry(queued, UNHEARD_MS_MAX / 4);
      return;
    }
    await this.#consumer.acknowledge(queued);
    this.#options.observe('dropped', null);
  }
}

/** Returns the key of a receiver: its kind, its organization and its id. */
const laneOf = ({ target_kind, org_id, target_id }: WebhookDelivery): string =>
  `${target_kind}\n${org_id}\n${target_id}`;
