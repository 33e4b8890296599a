// A queue consumer that works in batches: audit entries, mails, scores, eval chunks and platform
// events. It gathers deliveries and calls `handle` with up to `batchMax` of them, `handlersMax`
// calls at a time. Guarantees: a message leaves the queue only after its handler has resolved; a
// batch that rejects is retried with backoff by whichever worker receives it; a batch with a
// PermanentFailure is split until the message at fault is alone, which is then dead-lettered. The
// bounds are those of the queue consumer.
import { type Delivery, QueueConsumer, type QueueConsumerOptions } from './queue_consumer.ts';

/** Time within which another worker receives the messages of one that died, unless given. */
const ACK_WAIT_MS = 60_000;

/** Thrown by a handler when no later attempt can succeed. */
export class PermanentFailure extends Error {}

export interface RestBounds {
  /**
   * Length of the rest as a multiple of the batch's duration: 9 leaves the work a tenth of the
   * time.
   */
  times: number;
  /** Longest rest, milliseconds. */
  maxMs: number;
  /** Returns the shortest rest after the batch that has just ended, milliseconds; 0 unless given. */
  minMs?: () => number;
}

type Consuming<T> = Omit<
  QueueConsumerOptions<T>,
  'deliver' | 'isWanted' | 'observe' | 'ackWaitMs' | 'confirmAcks' | 'durable' | 'fetchMax'
>;

export interface BatchConsumerOptions<T> extends Consuming<T> {
  /**
   * Does the work of a batch. All of it counts as done when the promise resolves, none of it when
   * it rejects.
   */
  handle: (batch: readonly Delivery<T>[]) => Promise<void>;
  /** Receives the number of messages that an attempt has ended for. */
  observe: (queue: string, result: 'done' | 'retried' | 'dead', count: number) => void;
  /** Maximum number of messages in one call of the handler. */
  batchMax: number;
  /**
   * Time that a batch waits for more messages, milliseconds; 0 takes the messages that have
   * arrived.
   */
  gatherMs: number;
  /**
   * Pause of a handler after a batch, unless the next batch is full; none unless given. It leaves
   * the store to urgent work.
   */
  rest?: RestBounds;
  /**
   * Maximum number of concurrent calls of the handler; with more than one, messages have no order.
   */
  handlersMax: number;
  /** ACK_WAIT_MS unless given; a handler may take longer. */
  ackWaitMs?: number;
}

export class BatchConsumer<T> {
  readonly #options: BatchConsumerOptions<T>;
  readonly #consumer: QueueConsumer<T>;
  /** Deliveries that no handler has taken yet, in order of arrival. */
  readonly #waiting: Delivery<T>[] = [];
  readonly #changed = new Set<() => void>();

  constructor(options: BatchConsumerOptions<T>) {
    this.#options = options;
    const { queue, observe } = options;
    this.#consumer = new QueueConsumer<T>({
      ...options,
      ackWaitMs: options.ackWaitMs ?? ACK_WAIT_MS,
      confirmAcks: true,
      observe: (result, count) => {
        observe(queue, result, count);
      },
      deliver: (delivery) => {
        this.#waiting.push(delivery);
        this.#notify();
        return undefined;
      },
    });
  }

  start(): void {
    this.#consumer.start();
    for (let handler = 0; handler < this.#options.handlersMax; handler += 1) void this.#work();
  }

  /**
   * Gives back the messages that no handler has taken; resolves when the handlers have ended, or
   * after a bounded wait.
   */
  async stop(): Promise<void> {
    const stopped = this.#consumer.stop();
    this.#notify();
    for (const delivery of this.#waiting.splice(0)) this.#consumer.retry(delivery, 0);
    await stopped;
  }

  async #work(): Promise<void> {
    const { batchMax, gatherMs, rest } = this.#options;
    let restedAt = 0;
    while (!this.#isStopping()) {
      if (this.#waiting.length === 0) {
        await this.#change();
        continue;
      }
      await this.#gather(batchMax, Math.max(gatherMs, restedAt - performance.now()));
      const batch = this.#waiting.splice(0, batchMax);
      if (batch.length === 0) continue;
      const began = performance.now();
      await this.#settle(batch);
      const ended = performance.now();
      if (rest !== undefined) restedAt = ended + restMs(rest, ended - began);
    }
  }

  /** Handles a batch, then acknowledges, retries or dead-letters each of its messages. */
  async #settle(batch: readonly Delivery<T>[]): Promise<void> {
    const { handle, observe, queue } = this.#options;
    const [first] = batch;
    try {
      await handle(batch);
    } catch (error) {
      if (!(error instanceof PermanentFailure)) await this.#consumer.fail(batch, error);
      else if (batch.length === 1 && first !== undefined) await this.#consumer.deadLetter(first, 'refused', error);
      else {
        const half = Math.ceil(batch.length / 2);
        await this.#settle(batch.slice(0, half));
        await this.#settle(batch.slice(half));
      }
      return;
    }
    observe(queue, 'done', batch.length);
    await Promise.all(batch.map((delivery) => this.#consumer.acknowledge(delivery)));
  }

  #isStopping(): boolean {
    return this.#consumer.stopping.aborted;
  }

  #notify(): void {
    const wakes = [...this.#changed];
    this.#changed.clear();
    for (const wake of wakes) wake();
  }

  /** Resolves when a message has arrived, or when `stop` begins. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => this.#changed.add(resolve));
  }

  /** Resolves when a batch is full, after `ms`, or when `stop` begins. */
  async #gather(batchMax: number, ms: number): Promise<void> {
    if (ms <= 0) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#changed.delete(look);
        resolve();
      };
      const look = (): void => {
        if (this.#waiting.length >= batchMax || this.#isStopping()) end();
        else this.#changed.add(look);
      };
      const timer = setTimeout(end, ms);
      look();
    });
  }
}

function restMs({ times, maxMs, minMs }: RestBounds, workedMs: number): number {
  return Math.min(maxMs, Math.max(workedMs * times, minMs?.() ?? 0));
}
