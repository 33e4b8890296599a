// Webhook endpoints in JetStream KV, watched into memory: reads never leave the process. Writes
// compare the revision.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { Turns } from '../../../ops/platform/turns.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { webhookKey, type WebhookRecord } from '../../../schemas/records/webhook.ts';

const UPDATE_TRIES_MAX = 8;

export class WebhookStore {
  readonly #bucket: WatchedBucket<WebhookRecord>;
  readonly #byOrg: OrgIndex<WebhookRecord>;
  /**
   * Serializes changes of one endpoint by this process, which would otherwise conflict with each
   * other.
   */
  readonly #turns = new Turns();

  private constructor(bucket: WatchedBucket<WebhookRecord>) {
    this.#bucket = bucket;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<WebhookStore> {
    return new WebhookStore(await watch(log, 'webhooks', onProblem));
  }

  get(org_id: string, webhook_id: string): WebhookRecord | null {
    return this.#bucket.get(webhookKey(org_id, webhook_id)) ?? null;
  }

  count(org_id: string): number {
    return this.#byOrg.of(org_id).size;
  }

  /** Returns an organization's endpoints, newest first. */
  list(org_id: string): WebhookRecord[] {
    return [...this.#byOrg.of(org_id).values()].sort((a, b) =>
      a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.webhook_id < b.webhook_id ? -1 : 1,
    );
  }

  async create(record: WebhookRecord): Promise<void> {
    await this.#bucket.create(webhookKey(record.org_id, record.webhook_id), record);
  }

  /** Applies a change to the newest record; null when there is none. */
  async change(
    org_id: string,
    webhook_id: string,
    apply: (record: WebhookRecord) => WebhookRecord,
  ): Promise<WebhookRecord | null> {
    const key = webhookKey(org_id, webhook_id);
    const changed = await this.#turns.take(key, () =>
      this.#bucket.change(key, (record) => (record === undefined ? null : apply(record))),
    );
    return changed ?? null;
  }

  /** Deletes an endpoint; false when there is none. */
  async remove(org_id: string, webhook_id: string): Promise<boolean> {
    const key = webhookKey(org_id, webhook_id);
    for (let tries = 1; ; tries++) {
      const held = this.#bucket.held(key);
      if (held === undefined) return false;
      try {
        await this.#bucket.delete(key, held.revision);
        return true;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || tries >= UPDATE_TRIES_MAX) throw error;
        await new Promise((resolve) => setTimeout(resolve, 5 * tries));
      }
    }
  }

  close(): void {
    this.#bucket.close();
  }
}
