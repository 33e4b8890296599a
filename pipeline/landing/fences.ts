// The fences of the store: rows that say which epoch may write to a partition.
//
// Landing statements write only the rows of partitions whose newest fence is their own epoch, so a
// statement that starts after a newer fence was raised writes nothing. Raising a fence waits for
// the statements that run at that moment, or kills them.
import type { ClickHouse } from '../../sql/client/client.ts';

/** Partition number for the fences of the text mover. */
export const MOVER_PARTITION = 65_535;
/**
 * Partition number for the query ids of abandoned statements. The table deletes those after a day.
 */
const GIVEN_UP_PARTITION = 65_534;
const QUERY_TIMEOUT_MS = 60_000;
/** How long a new owner waits for statements of former owners to end before it kills them. */
const FORMER_WAIT_MS = 3000;
const LOOK_MS = 50;

/** A partition and the epoch under which its owner writes. */
export type PartitionEpoch = readonly [partition: number, epoch: number];

/** Returns pairs as a parameter of type Array(Tuple(UInt16, UInt64)). */
export const tuples = (pairs: readonly PartitionEpoch[]): string =>
  `[${pairs.map(([partition, epoch]) => `(${String(partition)},${String(epoch)})`).join(',')}]`;

export class Fences {
  readonly #client: ClickHouse;
  readonly #workerId: string;

  constructor(client: ClickHouse, workerId: string) {
    this.#client = client;
    this.#workerId = workerId;
  }

  /**
   * Fences former owners off. Once it resolves, no statement of theirs can write to these
   * partitions any more: the fence is written first, so that later statements write nothing, and
   * running ones are awaited.
   */
  async raise(owned: readonly PartitionEpoch[]): Promise<void> {
    await this.#command(
      'raise_fence',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT o.1, o.2, {worker:String} FROM (SELECT arrayJoin({owned:Array(Tuple(UInt16, UInt64))}) AS o)',
      { owned: tuples(owned), worker: this.#workerId },
    );
    await this.#outlast('land-');
  }

  async raiseForMover(workerId: string): Promise<number> {
    const [row] = await this.#rows<{ epoch: string }>(
      'mover_epoch',
      'SELECT toString(max(epoch) + 1) AS epoch FROM landing_fences WHERE partition = {partition:UInt16}',
      { partition: MOVER_PARTITION },
    );
    const epoch = Number(row?.epoch ?? 1);
    await this.#command(
      'raise_mover_fence',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, {epoch:UInt64}, {worker:String}',
      {
        partition: MOVER_PARTITION,
        epoch,
        worker: workerId,
      },
    );
    // Two workers that start at once may have read the same epoch. The one that wrote last sees the
    // other; both may step back and try again later.
    const others = await this.#rows<{ worker_id: string }>(
      'mover_rivals',
      'SELECT DISTINCT worker_id FROM landing_fences WHERE partition = {partition:UInt16} AND epoch = {epoch:UInt64} AND worker_id != {worker:String}',
      { partition: MOVER_PARTITION, epoch, worker: workerId },
    );
    if (others.length > 0)
      throw new Error(
        `worker ${others.map(({ worker_id }) => worker_id).join(', ')} raised the fence of the mover at the same time`,
      );
    await this.#outlast('move-');
    return epoch;
  }

  async fencedOff(owned: readonly PartitionEpoch[]): Promise<number[]> {
    const rows = await this.#rows<{ partition: number; newest: string }>(
      'fenced_off',
      'SELECT partition, toString(max(epoch)) AS newest FROM landing_fences WHERE partition IN {partitions:Array(UInt16)} GROUP BY partition',
      { partitions: owned.map(([partition]) => partition) },
    );
    const newest = new Map(rows.map((row) => [row.partition, Number(row.newest)]));
    return owned.filter(([partition, epoch]) => (newest.get(partition) ?? 0) > epoch).map(([partition]) => partition);
  }

  /**
   * Abandons a statement. Once it resolves, the statement writes nothing more, so its rows can be
   * looked up. The statement may still lie in a socket, or wait in a stalled server: one that has
   * not begun writes nothing after its id is written here, and one that has begun is killed.
   */
  async giveUp(queryId: string): Promise<void> {
    await this.#command(
      'give_up_statement',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, 0, {statement:String}',
      { partition: GIVEN_UP_PARTITION, statement: queryId },
    );
    await this.#kill(queryId);
  }

  async #kill(queryId: string): Promise<void> {
    await this.#command('end_statement', 'KILL QUERY WHERE query_id = {id:String} SYNC', { id: queryId });
  }

  /**
   * Returns the newest epoch of any partition's fence. If the log is new to the store, its owners
   * count on from there; otherwise they would be fenced off permanently.
   */
  async newestEpoch(): Promise<number> {
    const [row] = await this.#rows<{ epoch: string }>(
      'newest_epoch',
      'SELECT toString(max(epoch)) AS epoch FROM landing_fences WHERE partition != {mover:UInt16}',
      { mover: MOVER_PARTITION },
    );
    return Number(row?.epoch ?? 0);
  }

  /**
   * Waits for the statements that run now, which began before the fence, and kills those that take
   * too long. Statements of this worker count too: it may have lost a partition in the middle of a
   * landing and own it again.
   */
  async #outlast(prefix: string): Promise<void> {
    const running = async (): Promise<string[]> => {
      const rows = await this.#rows<{ query_id: string }>(
        'running_statements',
        'SELECT query_id FROM system.processes WHERE query_id LIKE {pattern:String} AND current_database = currentDatabase()',
        { pattern: `${prefix}%` },
      );
      return rows.map(({ query_id }) => query_id);
    };
    let left = await running();
    // The time runs from the first answer: a store that was stalled until now has had no time to
    // finish anything.
    const deadline = performance.now() + FORMER_WAIT_MS;
    while (left.length > 0) {
      if (performance.now() > deadline) {
        // They are killed, not abandoned: some belong to owners of other partitions, which retry
        // after the error. A statement that has not begun meets the fence.
        await Promise.all(left.map((queryId) => this.#kill(queryId)));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const now = new Set(await running());
      left = left.filter((queryId) => now.has(queryId));
    }
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown>): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: QUERY_TIMEOUT_MS });
  }

  async #command(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: QUERY_TIMEOUT_MS });
  }
}
