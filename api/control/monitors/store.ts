// Monitors and their states in JetStream KV, watched into memory: reads never leave the process. The
// API writes definitions with CAS; the worker writes states.
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { monitorKey, type MonitorRecord, type MonitorState } from '../../../schemas/records/monitor.ts';
import { ApiError } from '../../http/errors.ts';

export class MonitorStore {
  readonly #monitors: WatchedBucket<MonitorRecord>;
  readonly #states: WatchedBucket<MonitorState>;
  readonly #byOrg: OrgIndex<MonitorRecord>;

  private constructor(monitors: WatchedBucket<MonitorRecord>, states: WatchedBucket<MonitorState>) {
    this.#monitors = monitors;
    this.#states = states;
    this.#byOrg = new OrgIndex(monitors);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<MonitorStore> {
    const [monitors, states] = await Promise.all([
      watch(log, 'monitors', onProblem),
      watch(log, 'monitor_states', onProblem),
    ]);
    return new MonitorStore(monitors, states);
  }

  get(org_id: string, monitor_id: string): MonitorRecord | null {
    return this.#monitors.get(monitorKey(org_id, monitor_id)) ?? null;
  }

  /** Returns the state of a monitor; null before its first evaluation. */
  stateOf({ org_id, monitor_id }: MonitorRecord): MonitorState | null {
    return this.#states.get(monitorKey(org_id, monitor_id)) ?? null;
  }

  /** Returns an organization's monitors, in no order. */
  of(org_id: string): MonitorRecord[] {
    return [...this.#byOrg.of(org_id).values()];
  }

  async create(record: MonitorRecord): Promise<void> {
    await this.#monitors.create(monitorKey(record.org_id, record.monitor_id), record);
  }

  /** Applies a change to the newest record; null when there is none. What `apply` throws ends the change. */
  async change(
    org_id: string,
    monitor_id: string,
    apply: (record: MonitorRecord) => MonitorRecord,
  ): Promise<MonitorRecord | null> {
    const changed = await this.#monitors.change(monitorKey(org_id, monitor_id), (record) =>
      record === undefined ? null : apply(record),
    );
    return changed ?? null;
  }

  /**
   * Deletes a monitor; its state is deleted by the next evaluation, which resolves its alerts.
   * @returns the monitor, or null when there is none
   * @throws ApiError conflict when another request changed the monitor meanwhile
   */
  async remove(org_id: string, monitor_id: string): Promise<MonitorRecord | null> {
    const key = monitorKey(org_id, monitor_id);
    const held = this.#monitors.held(key);
    if (held === undefined) return null;
    try {
      await this.#monitors.delete(key, held.revision);
    } catch (cause) {
      if (!(cause instanceof RevisionConflict)) throw cause;
      throw new ApiError('conflict', 'The monitor is being changed by another request. Try again.', { cause });
    }
    return held.value;
  }

  close(): void {
    this.#monitors.close();
    this.#states.close();
  }
}
