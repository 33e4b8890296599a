// Sends deliveries. In: messages of WEBHOOKS, shared by all workers. Out: signed POSTs, a row a try in the log, and what was
// given up in the dead letters. Guarantees: a delivery leaves the queue only when it was delivered, refused by its receiver's
// last word, dropped with its receiver, or kept in the dead letters; a try that failed is put back as the next one before it
// is acknowledged, so tries are counted across workers and crashes. Sent twice after a crash, it has the same event id.
import type { JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WEBHOOKS_STREAM } from '../../schemas/streams.ts';
import { letterOf, publishDelivery, type WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import {
  FINGERPRINT_HEADER,
  UnknownSchemaError,
  type WebhookDelivery,
  webhookDeliveryCodec,
} from '../../schemas/codec.ts';
import {
  type DeliveryOutcome,
  nextTryAt,
  retryAfterMs,
  type RetryTimings,
  verdictOf,
} from '../domain/webhooks/retry.ts';
import { signatureOf } from '../domain/webhooks/signature.ts';
import { DurableReader } from '../queues/durable_reader.ts';
import { NakBatch } from '../queues/nak_batch.ts';
import type { AttemptResult, WebhookClient } from './webhook_client.ts';
import { type Freed, Gate } from './webhook_gate.ts';
import type { WebhookLog } from './webhook_log.ts';
import type { Target, WebhookTargets } from './webhook_targets.ts';
import type { DeadItem } from '../queues/work_queue.ts';

const DURABLE = 'webhook_sender';
/** Messages that are asked for at a time: more than a burst of those that only have to be put off. */
const MESSAGES_MAX = 1000;
const SWEEP_MS = 1000;
/** So often pauses are looked at, while there are any. */
const RESUME_MS = 20;
/** Tries under way get this long to end at a stop; then they are broken off and given back. */
const STOP_MS = 3000;
/** A receiver that answers 429 is left alone for as long as it asks, up to this. */
const PAUSE_MS_MAX = 60_000;
/** A delivery may be here before word of its receiver is: for this long one without a receiver is not dropped. */
const UNHEARD_MS_MAX = 2000;
const USER_AGENT = 'Millrace-Webhooks/1';

export interface WebhookTimings extends RetryTimings {
  /** Of one try. */
  timeoutMs: number;
  /** After this long the queue gives a delivery to another worker: longer than one waits here, is tried and is put back. */
  ackWaitMs: number;
}

export interface WebhookSenderOptions {
  log: Log;
  logger: Logger;
  targets: Pick<WebhookTargets, 'targetOf'>;
  client: Pick<WebhookClient, 'post'>;
  deadLetters: Pick<WebhookDeadLetters, 'put'>;
  tries: Pick<WebhookLog, 'add'>;
  bury: (item: DeadItem) => Promise<void>;
  timings: WebhookTimings;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Told of the end of each try; seconds is null where none was made. */
  observe: (outcome: DeliveryOutcome | 'dropped', seconds: number | null) => void;
}

interface Held {
  /** The newest delivery of the message. */
  message: JsMsg;
  delivery: WebhookDelivery;
}

export class WebhookSender {
  readonly #options: WebhookSenderOptions;
  readonly #reader: DurableReader;
  readonly #gate = new Gate<Held>();
  /** By stream sequence: a message that comes again while it is in hand is not sent a second time. */
  readonly #inHand = new Map<number, Held>();
  readonly #later: NakBatch;
  readonly #tasks = new Set<Promise<void>>();
  readonly #breakOff = new AbortController();
  #resuming: NodeJS.Timeout | null = null;
  #sweeping: NodeJS.Timeout | null = null;

  constructor(options: WebhookSenderOptions) {
    this.#options = options;
    this.#later = new NakBatch(() => options.log.nc.isClosed(), options.now);
    this.#reader = new DurableReader({
      log: options.log,
      logger: options.logger,
      stream: WEBHOOKS_STREAM,
      durable: DURABLE,
      ackWaitMs: options.timings.ackWaitMs,
      // What is put off counts as unanswered: with a bound here the dead receivers' deliveries would keep the others' out.
      unansweredMax: -1,
      messagesMax: MESSAGES_MAX,
      handle: (message) => {
        this.#take(message);
        return undefined;
      },
    });
  }

  get inFlight(): number {
    return this.#gate.inFlight;
  }

  get waiting(): number {
    return this.#gate.waiting;
  }

  start(): void {
    this.#reader.start();
    this.#sweeping ??= setInterval(() => {
      this.#follow(this.#gate.sweep(performance.now()));
    }, SWEEP_MS);
  }

  /** Ends what is under way, within a bounded time; what waits goes back to the queue. */
  async stop(): Promise<void> {
    await this.#reader.stop();
    if (this.#sweeping !== null) clearInterval(this.#sweeping);
    for (const held of this.#gate.drain()) this.#giveBack(held, 0);
    if (this.#resuming !== null) clearTimeout(this.#resuming);
    const timer = setTimeout(() => {
      this.#breakOff.abort();
    }, STOP_MS);
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    clearTimeout(timer);
    this.#later.flush();
  }

  #take(message: JsMsg): void {
    const known = this.#inHand.get(message.seq);
    if (known !== undefined) {
      known.message = message;
      return;
    }
    let delivery: WebhookDelivery;
    try {
      delivery = webhookDeliveryCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER));
    } catch (error) {
      this.#run(this.#bury(message, error));
      return;
    }
    const held: Held = { message, delivery };
    this.#inHand.set(message.seq, held);
    const wait = delivery.not_before - this.#options.now();
    if (wait > 0) {
      this.#giveBack(held, wait);
      return;
    }
    const offer = this.#gate.offer(laneOf(delivery), delivery.org_id, held, message.data.length, performance.now());
    if (offer.kind === 'go') this.#run(this.#send(held));
    else if (offer.kind === 'later') this.#putOff(held, offer.ms);
    else this.#resumeSoon();
  }

  /** Runs beside the others. A failure is the connection's: the message was not answered and comes again. */
  #run(task: Promise<void>): void {
    const tracked = task
      .catch((error: unknown) => {
        this.#options.logger.warn({ err: error }, 'a delivery could not be settled; it comes again');
      })
      .finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  #follow({ go, later }: Freed<Held>): void {
    for (const held of go) {
      if (this.#breakOff.signal.aborted) this.#giveBack(held, 0);
      else this.#run(this.#send(held));
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

  /** One try; its place at the gate is taken already. */
  async #send(held: Held): Promise<void> {
    const { delivery } = held;
    const at = this.#options.now();
    let result: AttemptResult | null;
    try {
      result = await this.#post(delivery, at);
    } catch (error) {
      // The signing secret does not open: not the receiver's fault, yet nothing that can be sent.
      const message = error instanceof Error ? error.message : String(error);
      result = { status: null, error: message, retry_after: undefined, duration_ms: 0 };
    }
    const ok = result === null || verdictOf(result.status) !== 'retry';
    const asked = result?.status === 429 ? (retryAfterMs(429, result.retry_after, this.#options.now()) ?? 0) : 0;
    const end = { ok, duration_ms: result?.duration_ms ?? 0, pause_ms: Math.min(asked, PAUSE_MS_MAX) };
    this.#follow(this.#gate.end(laneOf(delivery), end, performance.now()));
    try {
      if (result === null) this.#drop(held, at);
      else if (result.status === null && this.#breakOff.signal.aborted) this.#giveBack(held, 0);
      else await this.#settle(held, result, at);
    } catch (error) {
      this.#inHand.delete(held.message.seq);
      throw error;
    }
  }

  /** null when the receiver is gone or disabled. @throws SealBroken */
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
      signal: this.#breakOff.signal,
    });
  }

  async #settle(held: Held, result: AttemptResult, at: number): Promise<void> {
    const { log, timings, now } = this.#options;
    const { delivery } = held;
    const verdict = verdictOf(result.status);
    if (verdict !== 'retry') {
      this.#answer(held);
      this.#record(delivery, verdict, result, at);
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
      await publishDelivery(log, following, `${String(first_attempt_at)}:${String(following.attempt)}`);
    }
    this.#answer(held);
    this.#record(delivery, next === null ? 'dead-lettered' : 'retrying', result, at);
  }

  /** Found no room: to come again later, or given up when its time is over. */
  #putOff(held: Held, ms: number): void {
    const { delivery, message } = held;
    const { timings, now } = this.#options;
    const since = delivery.first_attempt_at === 0 ? message.time.getTime() : delivery.first_attempt_at;
    // One that was never tried is given up only for its receiver's failures, not because this service was down for long.
    const failing = delivery.attempt > 0 || this.#gate.isFailing(laneOf(delivery));
    if (!failing || now() - since <= timings.giveUpMs) {
      this.#giveBack(held, ms);
      return;
    }
    this.#run(this.#expire(held));
  }

  /** Ends a delivery that could not be tried again in its time. */
  async #expire(held: Held): Promise<void> {
    const at = this.#options.now();
    const result = {
      status: null,
      error: 'its time was over before it could be tried again',
      retry_after: undefined,
      duration_ms: 0,
    };
    try {
      await this.#giveUp(held.delivery, held.delivery.attempt, result);
      this.#answer(held);
    } finally {
      this.#inHand.delete(held.message.seq);
    }
    this.#record(held.delivery, 'dead-lettered', result, at, false);
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

  /** Its receiver is gone, disabled, or so new that this worker has not heard of it. */
  #drop(held: Held, at: number): void {
    if (at - held.message.time.getTime() < UNHEARD_MS_MAX) {
      this.#giveBack(held, UNHEARD_MS_MAX / 4);
      return;
    }
    this.#answer(held);
    this.#options.observe('dropped', null);
  }

  async #bury(message: JsMsg, cause: unknown): Promise<void> {
    const reason = cause instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message';
    const detail = cause instanceof Error ? cause.message : String(cause);
    await this.#options.bury({ queue: 'webhooks', reason, detail, seq: message.seq, data: message.data });
    this.#options.logger.error(
      { seq: message.seq, reason, detail },
      'a delivery that cannot be read; it is kept in DEAD_LETTERS',
    );
    message.term(reason);
  }

  /** What is said of a message while the connection is down is lost, and the message comes again; on a closed one it would throw. */
  #answer({ message }: Held): void {
    this.#inHand.delete(message.seq);
    if (!this.#options.log.nc.isClosed()) message.ack();
  }

  /** For whoever is next, after a wait. */
  #giveBack({ message }: Held, ms: number): void {
    this.#later.add(message, ms, () => this.#inHand.delete(message.seq));
  }
}

/** Receivers are told apart by what they are, whose, and their name. */
const laneOf = ({ target_kind, org_id, target_id }: WebhookDelivery): string =>
  `${target_kind}\n${org_id}\n${target_id}`;
