// Holds the receivers of webhook deliveries in memory: endpoints, watched from the bucket
// `webhooks` and indexed by organization, and the addresses of budget alerts, which another part
// looks up. Reads never leave the process.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { type WebhookRecord, webhookSealContext } from '../../schemas/records/webhook.ts';

/** URL of a receiver and the secrets to sign with. */
export interface Target {
  url: string;
  /** Secrets that are valid now, newest first. */
  secrets: readonly string[];
}

/**
 * Looks up a receiver of budget alerts; returns null when it is deleted or disabled.
 * @throws SealBroken when its secret cannot be opened
 */
export type AlertTargetOf = (org_id: string, target_id: string) => Target | null;

interface Endpoint {
  record: WebhookRecord;
  events: ReadonlySet<string>;
  /** Secrets, opened at the first delivery; null before. */
  secrets: readonly { text: string; expires_at: number }[] | null;
}

export interface WebhookTargetsOptions {
  sealer: Sealer;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
  alertTargetOf?: AlertTargetOf;
}

export class WebhookTargets {
  readonly #bucket: WatchedBucket<WebhookRecord>;
  readonly #options: WebhookTargetsOptions;
  /** Endpoints by organization and webhook_id. */
  readonly #orgs = new Map<string, Map<string, Endpoint>>();
  readonly #placeOf = new Map<string, { org_id: string; webhook_id: string }>();

  private constructor(bucket: WatchedBucket<WebhookRecord>, options: WebhookTargetsOptions) {
    this.#bucket = bucket;
    this.#options = options;
    for (const [key, { value }] of bucket.entries()) this.#keep(key, value);
    bucket.onChange((key, held) => {
      if (held === null) this.#forget(key);
      else this.#keep(key, held.value);
    });
  }

  static async open(log: Log, options: WebhookTargetsOptions): Promise<WebhookTargets> {
    return new WebhookTargets(await watch(log, 'webhooks', options.onProblem), options);
  }

  /** True when any organization has an endpoint. */
  get any(): boolean {
    return this.#orgs.size > 0;
  }

  /** Returns the ids of the organization's enabled endpoints that subscribe to an event. */
  subscribersOf(org_id: string, event: string): string[] {
    const own = this.#orgs.get(org_id);
    if (own === undefined) return [];
    const ids: string[] = [];
    for (const { record, events } of own.values()) if (record.enabled && events.has(event)) ids.push(record.webhook_id);
    return ids;
  }

  /**
   * Returns a receiver, or null when it is deleted or disabled.
   * @throws SealBroken when its secret cannot be opened
   */
  targetOf(kind: 'endpoint' | 'alert', org_id: string, target_id: string): Target | null {
    if (kind === 'alert') return this.#options.alertTargetOf?.(org_id, target_id) ?? null;
    const endpoint = this.#orgs.get(org_id)?.get(target_id);
    if (endpoint === undefined || !endpoint.record.enabled) return null;
    const now = this.#options.now();
    endpoint.secrets ??= this.#opened(endpoint.record);
    return {
      url: endpoint.record.url,
      secrets: endpoint.secrets.filter(({ expires_at }) => expires_at > now).map(({ text }) => text),
    };
  }

  close(): void {
    this.#bucket.close();
  }

  #opened({ org_id, webhook_id, secrets }: WebhookRecord): { text: string; expires_at: number }[] {
    return secrets.map(({ sealed, expires_at }) => ({
      text: this.#options.sealer.open(sealed, webhookSealContext(org_id, webhook_id)),
      expires_at: expires_at === null ? Infinity : Date.parse(expires_at),
    }));
  }

  #keep(key: string, record: WebhookRecord): void {
    this.#forget(key);
    const { org_id, webhook_id } = record;
    const own = this.#orgs.get(org_id) ?? new Map<string, Endpoint>();
    own.set(webhook_id, { record, events: new Set(record.events), secrets: null });
    this.#orgs.set(org_id, own);
    this.#placeOf.set(key, { org_id, webhook_id });
  }

  #forget(key: string): void {
    const place = this.#placeOf.get(key);
    if (place === undefined) return;
    this.#placeOf.delete(key);
    const own = this.#orgs.get(place.org_id);
    own?.delete(place.webhook_id);
    if (own?.size === 0) this.#orgs.delete(place.org_id);
  }
}
