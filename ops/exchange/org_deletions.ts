// Deletions of organizations, watched into memory by every process: requests and data of an
// organization that is being deleted are rejected or dropped within milliseconds, whatever their
// source. Guarantees: one job at a time deletes an organization, and only the organization that
// existed when the deletion was requested, never one that was created again under its id.
import type { ReportProblem } from '../platform/report_problem.ts';
import { type OrgDeletion, orgDeletionKey } from '../../schemas/records/org_deletion.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { watch } from '../platform/nats/watch.ts';
import type { WatchedBucket } from '../platform/nats/watched_bucket.ts';

export class OrgDeletions {
  readonly #bucket: WatchedBucket<OrgDeletion>;
  /** Organizations whose deletion is in progress. */
  readonly #running = new Set<string>();

  private constructor(bucket: WatchedBucket<OrgDeletion>) {
    this.#bucket = bucket;
    for (const record of bucket.values()) this.#note(record);
    bucket.onChange((_key, held) => {
      if (held !== null) this.#note(held.value);
    });
  }

  /** Opens the deletions. Resolves once every present record is loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<OrgDeletions> {
    return new OrgDeletions(await watch(log, 'org_deletions', onProblem));
  }

  /** Returns the newest deletion of an organization id; null where there was none. */
  get(org_id: string): OrgDeletion | null {
    return this.#bucket.get(orgDeletionKey(org_id)) ?? null;
  }

  /**
   * Returns true while the organization is being deleted: nothing of it may be served or stored. It
   * is asked for each event, so it costs one look into a set.
   */
  isRunning(org_id: string): boolean {
    return this.#running.size > 0 && this.#running.has(org_id);
  }

  /**
   * Returns a text that changes whenever a deletion of the organization begins or ends. Work that
   * outlasts a change must store nothing of the organization.
   */
  generationOf(org_id: string): string {
    const record = this.get(org_id);
    return record === null ? '' : `${record.job_id} ${record.state}`;
  }

  /** Returns every deletion in progress. */
  running(): OrgDeletion[] {
    return [...this.#running].flatMap((org_id) => this.get(org_id) ?? []);
  }

  /**
   * Begins a deletion, unless another one is in progress and `mayReplace` refuses to replace it.
   * @returns the deletion that applies now, and whether it is the given one
   */
  async begin(
    record: OrgDeletion,
    mayReplace: (running: OrgDeletion) => boolean,
  ): Promise<{ record: OrgDeletion; begun: boolean }> {
    let begun = false;
    const stands = await this.#bucket.change(orgDeletionKey(record.org_id), (held) => {
      begun = held?.state !== 'running' || mayReplace(held);
      return begun ? record : null;
    });
    return { record: stands ?? record, begun };
  }

  /**
   * Ends a deletion and frees the organization's id. @returns false when another job carries out
   * the deletion by now
   */
  async complete(org_id: string, job_id: string, completed_at: string): Promise<boolean> {
    const stands = await this.#bucket.change(orgDeletionKey(org_id), (held) =>
      held?.state === 'running' && held.job_id === job_id ? { ...held, state: 'complete', completed_at } : null,
    );
    return stands?.state === 'complete' && stands.job_id === job_id;
  }

  /**
   * Calls back whenever the deletion of an organization begins, ends or passes to another job.
   * @returns a function that ends the subscription
   */
  onChange(listener: (record: OrgDeletion) => void): () => void {
    return this.#bucket.onChange((_key, held) => {
      if (held !== null) listener(held.value);
    });
  }

  close(): void {
    this.#bucket.close();
  }

  #note({ org_id, state }: OrgDeletion): void {
    if (state === 'running') this.#running.add(org_id);
    else this.#running.delete(org_id);
  }
}
