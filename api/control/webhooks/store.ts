// Webhook endpoints in JetStream KV, watched into memory: reads never leave the process. Writes
// compare-and-swap on the revision.
import { Turns } from '../../../ops/platform/turns.ts';
import { RevisionConflict, WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { webhookKey, type WebhookRecord, webhookRecord } from '../../../schemas/records/webhook.ts';

const UPDATE_TRIES_MAX = 8;

export class WebhookStore {
  readonly #bucket: WatchedBucket<WebhookRecord>;
  /** Ids of each org's endpoints. */
  readonly #byOrg = new Map<string, Set<string>>();
  /** Changes of one endpoint by this process, which would lose against each other. */
  readonly #turns = new Turns();

  private constructor(bucket: WatchedBucket<WebhookRecord>) {
    this.#bucket = bucket;
    const sort = (key: string, record: WebhookRecord | null) => {
      const [org = ''] = key.split('.');
      const own = this.#byOrg.get(org) ?? new Set();
      if (record === null) own.delete(key);
      else own.add(key);
      if (own.size === 0) this.#byOrg.delete(org);
      else this.#byOrg.set(org, own);
    };
    for (const [key, { value }] of bucket.entries()) sort(key, value);
    bucket.onChange((key, held) => {
      sort(key, held?.value ?? null);
    });
  }

  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<WebhookStore> {
    const parse = (text: string) => webhookRecord.parse(JSON.parse(text));
    return new WebhookStore(
      await WatchedBucket.open(log.nc, await log.bucket('webhooks'), { name: 'webhooks', parse, onProblem }),
    );
  }

  get(org_id: string, webhook_id: string): WebhookRecord | null {
    return this.#bucket.get(webhookKey(org_id, webhook_id)) ?? null;
  }

  count(org_id: string): number {
    return this.#byOrg.get(webhookKey(org_id, '').slice(0, -1))?.size ?? 0;
  }

  /** Returns those of an organization, newest first. */
  list(org_id: string): WebhookRecord[] {
    const keys = this.#byOrg.get(webhookKey(org_id, '').slice(0, -1)) ?? [];
    return [...keys]
      .flatMap((key) => this.#bucket.get(key) ?? [])
      .sort((a, b) =>
        a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.webhook_id < b.webhook_id ? -1 : 1,
      );
  }

  async create(record: WebhookRecord): Promise<void> {
    await this.#bucket.create(webhookKey(record.org_id, record.webhook_id), record);
  }

  /** Applies a change to the newest record; resolves with null if there is none. */
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

  /** Deletes an endpoint; resolves with false if there is none. */
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
