// Workers that divide partitions among them, each with a view of its own of the records and of who lives.
// A turn is what a worker does at one look: it releases what is not its share, and claims what is and has
// no live owner in its view. Writes are compare-and-set, as in the bucket `partitions`.
import { divide, type Facts } from '../../pipeline/worker/shares.ts';

interface Record {
  owner: string | null;
  revision: number;
}

interface ModelWorker {
  id: string;
  /** The records as the worker has seen them. */
  view: Record[];
  /** Live workers whose heartbeats the worker does not hear. */
  hidden: ReadonlySet<string>;
}

export class WorkersModel {
  readonly #records: Record[];
  readonly #workers: readonly ModelWorker[];
  readonly #streams: readonly number[];
  /** Number of partitions that their owners released. */
  released = 0;
  /** Number of partitions that were claimed although their owner lives. */
  takenOver = 0;

  constructor({ workers, owners, streams }: Facts) {
    this.#records = owners.map((owner) => ({ owner, revision: 1 }));
    this.#streams = streams;
    this.#workers = workers.map((id) => ({ id, view: structuredClone(this.#records), hidden: new Set<string>() }));
  }

  get owners(): (string | null)[] {
    return this.#records.map(({ owner }) => owner);
  }

  /** Keeps heartbeats of some workers from one. */
  hide(index: number, others: readonly number[]): void {
    const worker = this.#workers[index];
    if (worker === undefined) return;
    const ids = others.map((other) => this.#workers[other]?.id ?? worker.id);
    worker.hidden = new Set(ids.filter((id) => id !== worker.id));
  }

  showAll(): void {
    for (const worker of this.#workers) worker.hidden = new Set();
  }

  /**
   * Lets a worker look once.
   *
   * @param sees true if it sees the records as they are; else as it saw them last
   * @param writes maximum number of records that it writes
   */
  turn(index: number, { sees, writes }: { sees: boolean; writes: number }): void {
    const worker = this.#workers[index % this.#workers.length];
    if (worker === undefined) return;
    if (sees) worker.view = structuredClone(this.#records);
    const live = this.#workers.map(({ id }) => id).filter((id) => !worker.hidden.has(id));
    const owners = worker.view.map(({ owner }) => (owner !== null && live.includes(owner) ? owner : null));
    const shares = divide({ workers: live, owners, streams: this.#streams });
    const due = [...owners.keys()].filter(
      (partition) => (owners[partition] === worker.id) !== (shares[partition] === worker.id),
    );
    for (const partition of due.slice(0, writes)) {
      if (owners[partition] === worker.id) this.released += this.#write(worker, partition, null) ? 1 : 0;
      else if (owners[partition] === null) this.#claim(worker, partition);
    }
  }

  /** Lets every worker look as often as it takes until all have their shares. */
  settle(): void {
    this.rounds(3);
  }

  /** Lets every worker look, with the records as they are, this number of times. */
  rounds(count: number): void {
    for (let round = 0; round < count; round += 1)
      for (const index of this.#workers.keys()) this.turn(index, { sees: true, writes: Infinity });
  }

  #claim(worker: ModelWorker, partition: number): void {
    const { owner } = this.#records[partition] ?? { owner: null };
    if (this.#write(worker, partition, worker.id) && owner !== null) this.takenOver += 1;
  }

  /** Returns false if the record has changed since the worker saw it. The worker sees it as it is then. */
  #write(worker: ModelWorker, partition: number, owner: string | null): boolean {
    const [now, seen] = [this.#records[partition], worker.view[partition]];
    const isCurrent = now !== undefined && now.revision === seen?.revision;
    if (isCurrent) this.#records[partition] = { owner, revision: now.revision + 1 };
    worker.view[partition] = { ...(this.#records[partition] ?? { owner: null, revision: 0 }) };
    return isCurrent;
  }
}
