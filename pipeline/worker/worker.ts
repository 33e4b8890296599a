// The loop of a pipeline worker: takes messages of the owned partitions, prepares them, lands their
// rows, publishes what follows, and writes checkpoints. While one landing is under way, the next
// batch is prepared; memory never holds more than these two, and what waits in the bulk lane
// (landings.ts).
//
// The order of effects is rows, dead letters, platform events, checkpoint. So everything below a
// checkpoint is done, and what a crash repeats is recognized (rows) or carries a stable id (events,
// dead letters).
import type { Logger } from '../../ops/platform/logger.ts';
import { LIMITS } from '../limits.ts';
import type { LandingLanes } from '../landing/landing_lanes.ts';
import type { LogReaders } from './log_readers.ts';
import type { PartitionState } from './partition_state.ts';
import type { Ownership } from './ownership.ts';
import { landingDelay } from '../landing/landing_pace.ts';
import { Landings, type LandingsDeps } from './landings.ts';
import { prepare, type PrepareDeps, type TakenMessage } from './prepare.ts';
import { bytesOf } from './read_messages.ts';

export interface WorkerDeps extends Omit<LandingsDeps, 'ownership' | 'lanes'> {
  /** State of the owned partitions, by partition. Only the worker adds and deletes. */
  states: Map<number, PartitionState>;
  reader: LogReaders;
  prepare: PrepareDeps;
  ownership: Pick<Ownership, 'isOwner' | 'checkpoint'>;
  logger: Logger;
  /** Resolves once everything that landed before the call would survive power loss. */
  sync(): Promise<void>;
}

/** How far the log was taken for a partition when a batch began. */
interface Taken {
  state: PartitionState;
  through: number;
}

export class Worker {
  readonly #deps: WorkerDeps;
  readonly #states: Map<number, PartitionState>;
  #wake: (() => void) | null = null;
  #jobs: (() => Promise<void>)[] = [];
  readonly #landings: Landings;
  readonly #lanes: LandingLanes | null;
  /** Bytes of the messages of the batch before. */
  #lastBytes = 0;
  /** Until when the worker waits for the messages of partitions that it has begun to read. */
  #gatherUntil = 0;
  #lastCheckpointAt = 0;
  #checkpointing: Promise<void> | null = null;
  #stopped = false;
  #running: Promise<void> | null = null;
  #fail: (error: unknown) => void = () => undefined;

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#states = deps.states;
    this.#lanes = deps.prepare.lanes;
    this.#landings = new Landings({ ...deps, lanes: this.#lanes });
    deps.reader.onMessage(() => {
      this.wake();
    });
  }

  /**
   * Starts the loop.
   *
   * @param onFailure called once if the loop ends with an error
   */
  start(onFailure: (error: unknown) => void): void {
    this.#fail = onFailure;
    this.#running = this.#run().catch(onFailure);
  }

  /** Wakes the loop because a message or a job has arrived. */
  wake(): void {
    this.#wake?.();
  }

  /** Processes further partitions. Those of one call are read together, so that nothing is read twice. */
  add(states: readonly PartitionState[]): void {
    if (states.length === 0) return;
    for (const state of states) this.#states.set(state.partition, state);
    this.#gatherUntil = performance.now() + LIMITS.gather_ms;
    this.#readAgain();
  }

  /**
   * Stops reading partitions, and resolves when everything that was read and decided has landed and
   * is checkpointed. The next owner reads the rest.
   */
  async release(partitions: readonly number[]): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#jobs.push(async () => {
        try {
          await this.#writeCheckpoints(partitions);
          for (const partition of partitions) this.#states.delete(partition);
          this.#readAgain();
          resolve();
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
      this.wake();
    });
  }

  /**
   * Drops traces of a partition from memory, and resolves when no row made of them before is on its
   * way to the store.
   *
   * @returns false if this worker does not own the partition
   */
  async forgetTraces(partition: number, org_id: string, traceIds: readonly string[]): Promise<boolean> {
    if (!this.#states.has(partition)) return false;
    return new Promise((resolve) => {
      this.#jobs.push(() => {
        const state = this.#states.get(partition);
        state?.book.forget(org_id, traceIds);
        state?.calls.forget(org_id, traceIds);
        resolve(state !== undefined && this.#deps.ownership.isOwner(partition));
        return Promise.resolve();
      });
      this.wake();
    });
  }

  /**
   * Makes the dedupe window forget the events of erased traces, so that the same event sent again
   * lands unless the store has its row. Call it after the rows are erased. Resolves when it applies
   * to all that is read from then on.
   *
   * @returns false if this worker does not own the partition
   */
  async forgetEvents(partition: number, org_id: string, traceIds: readonly string[]): Promise<boolean> {
    if (!this.#states.has(partition)) return false;
    return new Promise((resolve) => {
      // Jobs run between two batches, when everything prepared has landed, so the store knows every
      // row.
      this.#jobs.push(() => {
        const state = this.#states.get(partition);
        state?.forgotten.addTraces(org_id, traceIds, Math.max(state.heard_at, this.#deps.prepare.now()));
        resolve(state !== undefined && this.#deps.ownership.isOwner(partition));
        return Promise.resolve();
      });
      this.wake();
    });
  }

  /**
   * Drops what a partition holds of an organization that is being deleted, and makes the dedupe
   * window forget its events. From then on no row of the organization is on its way to the store,
   * because its events are dropped as they are read.
   *
   * @returns false if this worker does not own the partition
   */
  async forgetOrg(partition: number, org_id: string): Promise<boolean> {
    if (!this.#states.has(partition)) return false;
    return new Promise((resolve) => {
      this.#jobs.push(() => {
        const state = this.#states.get(partition);
        state?.book.forgetOrg(org_id);
        state?.calls.forgetOrg(org_id);
        state?.tail.forgetOrg(org_id);
        state?.forgotten.addOrg(org_id, Math.max(state.heard_at, this.#deps.prepare.now()));
        resolve(state !== undefined && this.#deps.ownership.isOwner(partition));
        return Promise.resolve();
      });
      this.wake();
    });
  }

  /**
   * Drops complete traces from memory between two batches, because rows of some were deleted from
   * the store.
   */
  forgetComplete(): void {
    this.#jobs.push(() => {
      for (const { book } of this.#states.values()) book.forgetComplete();
      return Promise.resolve();
    });
    this.wake();
  }

  /** Drops a partition that another worker has taken over. */
  lose(partition: number): void {
    if (this.#states.delete(partition)) this.#readAgain();
  }

  /** Reads every partition from what it has taken on, after the partitions or the streams have changed. */
  #readAgain(): void {
    this.#deps.reader.read([...this.#states.values()]);
    this.wake();
  }

  /** Tells the worker that the streams of the log have changed. */
  streamsChanged(): void {
    if (this.#deps.reader.isOutdated([...this.#states.values()])) this.#readAgain();
  }

  /** Ends the loop after the landing under way. Release the partitions before. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      await this.#waitForWork();
      await this.#runJobs();
      const messages = this.#take();
      const taken = [...this.#states.values()].map((state): Taken => ({ state, through: state.taken_through }));
      const due = taken.some(({ state }) => this.#tickDue(state));
      if (messages.length > 0 || due) await this.#handle(messages);
      // Skipped messages count too: then everything that the log holds of these partitions has
      // landed.
      this.#landings.afterwards(() => {
        for (const { state, through } of taken) state.read_through = through;
      });
      this.#landings.settled.catch(this.#fail);
      this.#writeCheckpointsWhenDue();
    }
    await this.#landings.settled;
  }

  async #handle(messages: readonly TakenMessage[]): Promise<void> {
    try {
      const prepared = await prepare(this.#deps.prepare, new Map(this.#states), messages, () => this.#landings.settled);
      this.#lastBytes = bytesOf(messages);
      await this.#landings.add(prepared, this.#lastBytes);
    } catch (error) {
      // Nothing of the batch was written. The next owner reads its partitions again from their
      // checkpoints.
      this.#deps.logger.error({ err: error }, 'a batch could not be prepared; its partitions are read again');
      throw error;
    }
  }

  #tickDue(state: PartitionState): boolean {
    const at = state.book.nextTickAt();
    return at !== null && at <= this.#deps.prepare.now() && !this.#deps.reader.isBehind(state.partition);
  }

  /**
   * Returns whole messages by position, up to the maximum bytes of a batch. Messages that are new
   * for no partition are skipped.
   */
  #take(): TakenMessage[] {
    const messages: TakenMessage[] = [];
    let bytes = 0;
    while (bytes < this.#batchBytes) {
      const message = this.#deps.reader.take();
      if (message === undefined) break;
      const states = message.readers.flatMap((partition) => {
        const state = this.#states.get(partition);
        return state !== undefined && state.taken_through < message.position ? [state] : [];
      });
      for (const state of states) state.taken_through = message.position;
      const partitions = new Set(states.map((state) => state.partition));
      if (message.partition === null ? partitions.size === 0 : !partitions.has(message.partition)) continue;
      bytes += message.data.length;
      messages.push({ ...message, partitions });
    }
    if (this.#deps.reader.size > 1) messages.sort((a, b) => a.position - b.position);
    if (this.#deps.reader.isChanging) this.streamsChanged();
    return messages;
  }

  async #waitForWork(): Promise<void> {
    for (let wait = this.#landingDelay(); wait > 0 && !this.#isAsked(); wait = this.#landingDelay())
      await this.#sleep(wait);
    const ready = this.#deps.reader.buffered > 0 || [...this.#states.values()].some((state) => this.#tickDue(state));
    if (ready || this.#isAsked()) return;
    // A message or the news that there is none wakes the loop for partitions that are behind.
    const next = [...this.#states.values()].map((state) =>
      this.#deps.reader.isBehind(state.partition) ? Infinity : (state.book.nextTickAt() ?? Infinity),
    );
    const untilTick = Math.min(...next, Infinity) - this.#deps.prepare.now();
    await this.#sleep(Math.min(LIMITS.checkpoint_interval_ms, Math.max(1, untilTick)));
  }

  async #sleep(ms: number): Promise<void> {
    const until = performance.now() + ms;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(done, ms);
      function done(): void {
        clearTimeout(timer);
        resolve();
      }
      this.#wake = () => {
        // A message ends the pause between two landings only if it makes a whole batch; a job or a
        // stop ends it at once.
        if (this.#isAsked() || performance.now() + this.#landingDelay() < until) done();
      };
    });
    this.#wake = null;
  }

  #landingDelay(): number {
    const { bufferedBytes, buffered, lag } = this.#deps.reader;
    const delay = landingDelay({
      since_ms: performance.now() - this.#landings.beganAt,
      took_ms: this.#landings.tookMs,
      buffered_bytes: bufferedBytes,
      batch_bytes: this.#batchBytes,
    });
    const gathers = buffered < lag && bufferedBytes < LIMITS.batch_bytes_max;
    return gathers ? Math.max(delay, this.#gatherUntil - performance.now()) : delay;
  }

  /** Maximum bytes of messages in a batch. */
  get #batchBytes(): number {
    return this.#lanes?.batchBytesMax(this.#lastBytes) ?? LIMITS.batch_bytes_max;
  }

  /** Returns whether a job or a stop waits for the loop. */
  #isAsked(): boolean {
    return this.#jobs.length > 0 || this.#stopped;
  }

  async #runJobs(): Promise<void> {
    if (this.#jobs.length === 0) return;
    await this.#landings.settled;
    await this.#checkpointing;
    const jobs = this.#jobs;
    this.#jobs = [];
    for (const job of jobs) await job();
  }

  /** Starts writing checkpoints if they are due. Landings do not wait for it. */
  #writeCheckpointsWhenDue(): void {
    if (this.#checkpointing !== null || performance.now() - this.#lastCheckpointAt < LIMITS.checkpoint_interval_ms)
      return;
    this.#lastCheckpointAt = performance.now();
    this.#checkpointing = this.#writeCheckpoints([...this.#states.keys()])
      .catch((error: unknown) => {
        this.#deps.logger.warn({ err: error }, 'checkpoints could not be written; trying again');
      })
      .finally(() => {
        this.#checkpointing = null;
      });
  }

  /**
   * Writes the checkpoints that have moved. They must cover only what is durable in the store,
   * because the janitor may purge the log up to them.
   */
  async #writeCheckpoints(partitions: readonly number[]): Promise<void> {
    const moved = partitions.flatMap((partition) => {
      const state = this.#states.get(partition);
      if (state === undefined) return [];
      const { settled_through, completed_through } = state;
      const mark = `${settled_through}:${completed_through}`;
      return mark === state.checkpointed ? [] : [{ state, settled_through, completed_through, mark }];
    });
    if (moved.length === 0) return;
    await this.#deps.sync();
    await Promise.all(
      moved.map(async ({ state, settled_through, completed_through, mark }) => {
        if (await this.#deps.ownership.checkpoint(state, settled_through, completed_through)) state.checkpointed = mark;
      }),
    );
  }
}
