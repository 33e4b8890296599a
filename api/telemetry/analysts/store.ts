// Analysts in JetStream KV, watched into memory: a login never leaves the process, and a deletion
// by any process arrives within milliseconds.
import { timingSafeEqual } from 'node:crypto';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { AnalystRecord } from '../../../schemas/records/analyst.ts';

const REMOVE_TRIES_MAX = 8;

export class AnalystStore {
  readonly #bucket: WatchedBucket<AnalystRecord>;

  private constructor(bucket: WatchedBucket<AnalystRecord>) {
    this.#bucket = bucket;
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<AnalystStore> {
    return new AnalystStore(await watch(log, 'analysts', onProblem));
  }

  get(user: string): AnalystRecord | null {
    return this.#bucket.get(user) ?? null;
  }

  /**
   * Returns the analyst with this user name whose password has this hash (SHA-256, hex), or null.
   * The comparison takes constant time.
   */
  login(user: string, hash: string): AnalystRecord | null {
    const record = this.get(user);
    const given = Buffer.from(hash, 'hex');
    const known = record === null ? Buffer.alloc(given.length) : Buffer.from(record.password_hash, 'hex');
    return timingSafeEqual(given, known) ? record : null;
  }

  /** Returns the analysts of an organization, oldest first. */
  list(org_id: string): AnalystRecord[] {
    return [...this.#bucket.values()]
      .filter((record) => record.org_id === org_id)
      .sort((a, b) => (a.created_at < b.created_at ? -1 : a.created_at > b.created_at ? 1 : a.user < b.user ? -1 : 1));
  }

  async create(record: AnalystRecord): Promise<void> {
    await this.#bucket.create(record.user, record);
  }

  /** Deletes an analyst of this organization; resolves with false if there is none. */
  async remove(org_id: string, user: string): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      const held = this.#bucket.held(user);
      if (held?.value.org_id !== org_id) return false;
      try {
        await this.#bucket.delete(user, held.revision);
        return true;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || tries >= REMOVE_TRIES_MAX) throw error;
      }
    }
  }

  /** Calls the listener when any process deletes an analyst. */
  onRemoved(listener: (user: string) => void): void {
    this.#bucket.onChange((user, held) => {
      if (held === null) listener(user);
    });
  }

  close(): void {
    this.#bucket.close();
  }
}
