// The fences of the store: which epoch may write to a partition, and how statements of former owners are brought to an end.
// A fence is a row (partition, epoch). Landing statements write only the rows of partitions whose newest fence is their own epoch,
// so that a statement that starts after a newer fence writes nothing; what runs when a fence is raised is waited for or killed.
import type { ClickHouse } from '../../sql/client/client.ts';

/** The fence of the text mover, beside those of the partitions. */
export const MOVER_PARTITION = 65_535;
/** Beside them too: query ids of statements that were given up. The table forgets those after a day. */
const GIVEN_UP_PARTITION = 65_534;
const QUERY_TIMEOUT_MS = 60_000;
/** How long a new owner waits for statements of former owners to end by themselves before it ends them. */
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
   * Fences former owners off: after this resolves, no statement of theirs can still write to these partitions.
   * The fence is written first, so what starts later writes nothing; what had started is waited for.
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
    // Two that begin at once may have read the same epoch. Whoever wrote last sees the other; both may step back, and begin again later.
    const others = await this.#rows<{ worker_id: string }>(
      'mover_rivals',
      'SELECT DISTINCT worker_id FROM landing_fences WHERE partition = {partition:UInt16} AND epoch = {epoch:UInt64} AND worker_id != {worker:String}',
      { partition: MOVER_PARTITION, epoch, worker: workerId },
    );
    if (others.length > 0)
      throw new Error(
        `worker ${others.map(({ worker_id }) => worker_id).join(', ')} took the fence of the mover at the same time`,
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
   * A statement may still lie in a socket, or before an engine that stood still: one that has not begun writes nothing once its id is
   * written here, and one that has is ended. So what it wrote can be looked up when this resolves, and will not become more.
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

  /** Newest epoch that fences a partition; owners of a log that is new to the store count on from there, or they would be fenced off for good. */
  async newestEpoch(): Promise<number> {
    const [row] = await this.#rows<{ epoch: string }>(
      'newest_epoch',
      'SELECT toString(max(epoch)) AS epoch FROM landing_fences WHERE partition != {mover:UInt16}',
      { mover: MOVER_PARTITION },
    );
    return Number(row?.epoch ?? 0);
  }

  /**
   * Waits for statements that run now, and ends those that take too long: they began before the fence. This worker's own count
   * too, as it may have lost a partition in the middle of a landing and has it again.
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
    // From the first answer on: a store that stood still until now has had no time to end anything.
    const deadline = performance.now() + FORMER_WAIT_MS;
    while (left.length > 0) {
      if (performance.now() > deadline) {
        // Only killed: some are another's that owns its partitions still, and is told of it by an error. What has not begun meets the fence.
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
