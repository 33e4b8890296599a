// Saved views in JetStream KV, watched into memory: reads never leave the process. Writes compare
// the revision.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { viewKey, type ViewRecord } from '../../../schemas/records/view.ts';
import { ApiError } from '../../http/errors.ts';

export class ViewStore {
  readonly #bucket: WatchedBucket<ViewRecord>;
  readonly #byOrg: OrgIndex<ViewRecord>;

  private constructor(bucket: WatchedBucket<ViewRecord>) {
    this.#bucket = bucket;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<ViewStore> {
    return new ViewStore(await watch(log, 'views', onProblem));
  }

  get(org_id: string, view_id: string): ViewRecord | null {
    return this.#bucket.get(viewKey(org_id, view_id)) ?? null;
  }

  /** Returns an organization's views, those of all makers, in no order. */
  of(org_id: string): ViewRecord[] {
    return [...this.#byOrg.of(org_id).values()];
  }

  async create(record: ViewRecord): Promise<void> {
    await this.#bucket.create(viewKey(record.org_id, record.view_id), record);
  }

  /**
   * Applies a change to the newest record; null when there is none. What `apply` throws ends the
   * change.
   */
  async change(org_id: string, view_id: string, apply: (record: ViewRecord) => ViewRecord): Promise<ViewRecord | null> {
    const changed = await this.#bucket.change(viewKey(org_id, view_id), (record) =>
      record === undefined ? null : apply(record),
    );
    return changed ?? null;
  }

  /**
   * Deletes a view whose newest record `check` accepts. @returns false when there is none
   * @throws what `check` throws; ApiError conflict when another request changed the view meanwhile
   */
  async remove(org_id: string, view_id: string, check: (record: ViewRecord) => void): Promise<boolean> {
    const key = viewKey(org_id, view_id);
    const held = this.#bucket.held(key);
    if (held === undefined) return false;
    check(held.value);
    try {
      await this.#bucket.delete(key, held.revision);
    } catch (cause) {
      if (!(cause instanceof RevisionConflict)) throw cause;
      throw new ApiError('conflict', 'The view is being changed by another request. Try again.', { cause });
    }
    return true;
  }

  close(): void {
    this.#bucket.close();
  }
}
