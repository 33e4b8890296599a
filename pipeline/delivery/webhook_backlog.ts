// Bounds the deliveries that wait in WEBHOOKS: for each receiver, for each organization, and in
// all. It polls the counts of the stream every POLL_MS, adds the deliveries that this worker has
// admitted since, and decides whether one more may wait. Guarantees: no receiver and no
// organization can fill the queue for the others. The bounds are BACKLOG for each worker's view:
// several workers can exceed them together by what they admit between two polls.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WEBHOOKS_STREAM, webhookSubject } from '../../schemas/streams.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';

export const BACKLOG = {
  receiver_max: 20_000,
  org_max: 200_000,
  total_max: 1_000_000,
  /**
   * Part of the stream's bytes that new deliveries may use; the rest is room for the next attempts
   * of deliveries.
   */
  bytes_share_max: 0.8,
} as const;
export type BacklogBounds = Readonly<Record<keyof typeof BACKLOG, number>>;

const POLL_MS = 2000;

export class WebhookBacklog {
  readonly #log: Log;
  readonly #logger: Logger;
  readonly #bounds: BacklogBounds;
  /** Counts by subject, and by the token of the organization. */
  #receivers = new Map<string, number>();
  #orgs = new Map<string, number>();
  #total = 0;
  #full = false;
  #admitted = true;
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Log, logger: Logger, bounds: BacklogBounds = BACKLOG) {
    this.#log = log;
    this.#logger = logger;
    this.#bounds = bounds;
  }

  get total(): number {
    return this.#total;
  }

  start(): void {
    this.#timer ??= setInterval(() => {
      // Nothing waits and nothing was admitted since the last poll.
      if (this.#total === 0 && !this.#admitted) return;
      this.poll().catch((error: unknown) => {
        this.#logger.warn({ err: error }, 'the backlog of webhooks could not be counted');
      });
    }, POLL_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  /** Replaces the counts with those of the stream. */
  async poll(): Promise<void> {
    this.#admitted = false;
    const { state, config } = await this.#log.jsm.streams.info(WEBHOOKS_STREAM, { subjects_filter: '>' });
    this.#receivers = new Map(Object.entries(state.subjects ?? {}));
    this.#orgs = new Map();
    for (const [subject, count] of this.#receivers) {
      const org = subject.split('.')[1] ?? '';
      this.#orgs.set(org, (this.#orgs.get(org) ?? 0) + count);
    }
    this.#total = state.messages;
    this.#full = state.bytes > config.max_bytes * this.#bounds.bytes_share_max;
  }

  /** Returns true, and counts the delivery, when one more may wait. */
  admit(org_id: string, target_id: string): boolean {
    const org = tokenOf(org_id);
    const subject = webhookSubject(org, target_id);
    const [own, ofOrg] = [this.#receivers.get(subject) ?? 0, this.#orgs.get(org) ?? 0];
    const { receiver_max, org_max, total_max } = this.#bounds;
    if (own >= receiver_max || ofOrg >= org_max || this.#total >= total_max || this.#full) return false;
    this.#receivers.set(subject, own + 1);
    this.#orgs.set(org, ofOrg + 1);
    this.#total += 1;
    this.#admitted = true;
    return true;
  }
}
