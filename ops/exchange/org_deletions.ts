// Deletions of organizations, watched into memory by every process: whatever belongs to an organization that is being deleted is refused
// or dropped within milliseconds, wherever it comes from. Guarantees: one job at a time deletes an organization, and only the
// organization that was there when the deletion was asked for, never one that was made again under its id.
import type { ReportProblem } from '../platform/report_problem.ts';
import { type OrgDeletion, orgDeletionKey } from '../../schemas/records/org_deletion.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { watch } from '../platform/nats/watch.ts';
import type { WatchedBucket } from '../platform/nats/watched_bucket.ts';

export class OrgDeletions {
  readonly #bucket: WatchedBucket<OrgDeletion>;
  /** Organizations whose deletion runs. */
  readonly #running = new Set<string>();

  private constructor(bucket: WatchedBucket<OrgDeletion>) {
    this.#bucket = bucket;
    for (const record of bucket.values()) this.#note(record);
    bucket.onChange((_key, held) => {
      if (held !== null) this.#note(held.value);
    });
  }

  /** Resolves when every record there is has been loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<OrgDeletions> {
    return new OrgDeletions(await watch(log, 'org_deletions', onProblem));
  }

  /** The newest deletion of an org of this id; null where there was none. */
  get(org_id: string): OrgDeletion | null {
    return this.#bucket.get(orgDeletionKey(org_id)) ?? null;
  }

  /** Whether the org is being deleted: nothing of it may be served or stored. Asked for each event, so it costs a look into a set. */
  isRunning(org_id: string): boolean {
    return this.#running.size > 0 && this.#running.has(org_id);
  }

  /** Changes whenever a deletion of the org begins or ends. Work that outlasts a change must store nothing of the org. */
  generationOf(org_id: string): string {
    const record = this.get(org_id);
    return record === null ? '' : `${record.job_id} ${record.state}`;
  }

  /** Every deletion that runs. */
  running(): OrgDeletion[] {
    return [...this.#running].flatMap((org_id) => this.get(org_id) ?? []);
  }

  /**
   * Begins a deletion, unless one runs that `mayReplace` refuses to give up.
   * @returns the deletion that stands now, and whether it is the given one
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

  /** Opens the org's id again. @returns false when another job carries the deletion out by now */
  async complete(org_id: string, job_id: string, completed_at: string): Promise<boolean> {
    const stands = await this.#bucket.change(orgDeletionKey(org_id), (held) =>
      held?.state === 'running' && held.job_id === job_id ? { ...held, state: 'complete', completed_at } : null,
    );
    return stands?.state === 'complete' && stands.job_id === job_id;
  }

  /** Calls back with an org whenever its deletion begins, ends or passes to another job. Returns what stops it. */
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
