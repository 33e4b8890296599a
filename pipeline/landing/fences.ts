// The fences of the store: rows that say which epoch may write to a partition.
//
// Landing statements write only the rows of partitions whose newest fence is their own epoch, so a
// statement that starts after a newer fence was raised writes nothing. Raising a fence waits for
// the statements that run at that moment, or kills them.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ClickHouse } from '../../sql/client/client.ts';
import {
  giveUpStatement,
  killStatement,
  type OwnedPartition,
  raiseFences,
  raiseMoverFence,
  readFencedOff,
  readNewestEpoch,
  readRunningStatements,
} from '../../sql/stores/landing_fences.ts';

/** How long a new owner waits for statements of live workers to end before it kills them. */
const FORMER_WAIT_MS = 3000;
const LOOK_MS = 50;

/** A partition and the epoch under which its owner writes. */
export type PartitionEpoch = OwnedPartition;

/** What a new owner knows of the workers whose statements may hold rows of its partitions. */
export interface Writers {
  /**
   * Returns the only other worker whose running statements may hold rows of a partition: the owner before, if it
   * had raised its own fence. Null if this is not known.
   */
  formerOf(partition: number): string | null;
  isLive(worker: string): boolean;
}

const NOTHING_KNOWN: Writers = { formerOf: () => null, isLive: () => true };

export class Fences {
  readonly #client: ClickHouse;
  readonly #workerId: string;
  readonly #shard: number;
  /** Partitions whose fence this process has raised: a landing of its own may hold rows of theirs. */
  readonly #raised = new Set<number>();

  /** @param shard place of the shard among all */
  constructor(client: ClickHouse, workerId: string, shard = 0) {
    this.#client = client;
    this.#workerId = workerId;
    this.#shard = shard;
  }

  /**
   * Fences former owners off. Once it resolves, no statement of theirs can write to these
   * partitions any more: the fence is written first, so that later statements write nothing, and
   * running ones are awaited, or killed if their worker does not live: it may be paused in the middle of one.
   */
  async raise(owned: readonly PartitionEpoch[], writers: Writers = NOTHING_KNOWN): Promise<void> {
    const again = owned.some(([partition]) => this.#raised.has(partition));
    for (const [partition] of owned) this.#raised.add(partition);
    await raiseFences(this.#client, owned, this.#workerId);
    const formers = owned.map(([partition]) => writers.formerOf(partition));
    await this.#outlast('land-', {
      concerns: (queryId) => {
        const worker = writerOf(queryId);
        return worker === this.#workerId ? again : formers.includes(null) || formers.includes(worker);
      },
      isLive: (queryId) => writers.isLive(writerOf(queryId)),
    });
  }

  /**
   * Raises the fence of the text mover and returns its epoch.
   * @throws Error when another worker raised it at the same time; both may step back and try again later
   */
  async raiseForMover(workerId: string): Promise<number> {
    const { epoch, rivals } = await raiseMoverFence(this.#client, workerId, this.#shard);
    if (rivals.length > 0)
      throw new Error(`worker ${rivals.join(', ')} raised the fence of the mover at the same time`);
    await this.#outlast('move-');
    return epoch;
  }

  /** Returns those of the given partitions that have a newer fence than the given epoch. */
  fencedOff(owned: readonly PartitionEpoch[]): Promise<number[]> {
    return readFencedOff(this.#client, owned);
  }

  /**
   * Abandons a statement. Once it resolves, the statement writes nothing more, so its rows can be
   * looked up. The statement may still lie in a socket, or wait in a stalled server: one that has
   * not begun writes nothing after its id is written here, and one that has begun is killed.
   */
  async giveUp(queryId: string): Promise<void> {
    await giveUpStatement(this.#client, queryId);
    await killStatement(this.#client, queryId);
  }

  /**
   * Returns the newest epoch of any partition's fence. If the log is new to the store, its owners
   * count on from there; otherwise they would be fenced off permanently.
   */
  newestEpoch(): Promise<number> {
    return readNewestEpoch(this.#client);
  }

  /**
   * Waits for the statements that run now, which began before the fence, and kills those that take
   * too long. Statements of this worker count too if it owned one of the partitions before: it may
   * have lost it in the middle of a landing.
   *
   * @param options.concerns returns whether a statement may hold rows of the partitions; by default all may
   * @param options.isLive returns whether the worker of a statement lives; by default all do
   */
  async #outlast(
    prefix: string,
    {
      concerns = () => true,
      isLive = () => true,
    }: { concerns?: (queryId: string) => boolean; isLive?: (queryId: string) => boolean } = {},
  ): Promise<void> {
    const running = async (): Promise<string[]> => (await readRunningStatements(this.#client, prefix)).filter(concerns);
    let left = await running();
    const kills = left.filter((queryId) => !isLive(queryId)).map((id) => killStatement(this.#client, id));
    // A statement that could not be killed is awaited like the others.
    await Promise.allSettled(kills);
    // The time runs from the first answer: a store that was stalled until now has had no time to
    // finish anything.
    const deadline = performance.now() + FORMER_WAIT_MS;
    while (left.length > 0) {
      if (performance.now() > deadline) {
        // They are killed, not abandoned: some belong to owners of other partitions, which retry
        // after the error. A statement that has not begun meets the fence.
        await Promise.all(left.map((queryId) => killStatement(this.#client, queryId)));
        return;
      }
      await sleep(LOOK_MS);
      const now = new Set(await running());
      left = left.filter((queryId) => now.has(queryId));
    }
  }
}

/** Returns the worker of a landing statement, by its id (`land-<worker>-<table>-<number>`). */
const writerOf = (queryId: string): string => queryId.split('-')[1] ?? '';
