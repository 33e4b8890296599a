// Reads and writes the records of incidents that are not over and published yet, in KV: from the
// watch where they may be a moment old, from the bucket where they must be current. Every write is
// a CAS that returns false when another write came first.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { readEntry, watch } from '../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { IncidentRecord } from '../../schemas/records/incident.ts';
import { orgKey } from '../../schemas/records/org.ts';

export interface StoredIncident {
  record: IncidentRecord;
  revision: number;
}

export class IncidentRecords {
  readonly #bucket: WatchedBucket<IncidentRecord>;
  readonly #log: Log;

  private constructor(bucket: WatchedBucket<IncidentRecord>, log: Log) {
    this.#bucket = bucket;
    this.#log = log;
  }

  /** Resolves when every record has been loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<IncidentRecords> {
    return new IncidentRecords(await watch(log, 'incidents', onProblem), log);
  }

  /** Records as the watch has shown them. */
  all(): IncidentRecord[] {
    return [...this.#bucket.values()];
  }

  /**
   * Records that are not settled, as the watch has shown them: readers do not see their newest
   * state, or it was not published.
   */
  unsettled(): [key: string, stored: StoredIncident][] {
    return [...this.#bucket.entries()].flatMap(([key, { value, revision }]) =>
      value.settled < value.version ? [[key, { record: value, revision }] as [string, StoredIncident]] : [],
    );
  }

  countOf(org_id: string): number {
    const prefix = `${orgKey(org_id)}.`;
    let count = 0;
    for (const [key] of this.#bucket.entries()) if (key.startsWith(prefix)) count++;
    return count;
  }

  /**
   * Calls back when a record arrives that is not settled. Returns a function that stops the calls.
   */
  onUnsettled(listener: () => void): () => void {
    return this.#bucket.onChange((_key, held) => {
      if (held !== null && held.value.settled < held.value.version) listener();
    });
  }

  /** Resolves with the record in the bucket. */
  read(key: string): Promise<StoredIncident | null> {
    return readEntry(this.#log, 'incidents', key);
  }

  /**
   * Creates a record.
   * @returns false when one exists already
   */
  create(key: string, record: IncidentRecord): Promise<boolean> {
    return won(this.#bucket.create(key, record));
  }

  /**
   * Replaces a record.
   * @returns false when another write came first
   */
  write(key: string, record: IncidentRecord, revision: number): Promise<boolean> {
    return won(this.#bucket.update(key, record, revision));
  }

  /**
   * Deletes a record.
   * @returns false when another write came first
   */
  remove(key: string, revision: number): Promise<boolean> {
    return won(this.#bucket.delete(key, revision));
  }

  close(): void {
    this.#bucket.close();
  }
}

async function won(write: Promise<void>): Promise<boolean> {
  try {
    await write;
    return true;
  } catch (error) {
    if (error instanceof RevisionConflict) return false;
    throw error;
  }
}
