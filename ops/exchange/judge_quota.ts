// Counts the calls of LLM judges that an organization makes in its period. Workers count each call
// before they make it; the API rejects evals that could not be judged. Guarantees: one KV record
// per organization is changed by compare-and-swap, so the count is exact over all processes. A
// counted call stays counted when its process dies, so no more calls than the quota are made.
import type { KV } from '@nats-io/kv';
import { z } from 'zod';
import { orgKey } from '../../schemas/records/org.ts';
import { isLostWrite, waitAfterLostWrite } from '../platform/nats/conflict.ts';
import type { Log } from '../platform/nats/open_log.ts';

/**
 * Maximum tries against other processes; each lost try means that another process has counted a
 * call.
 */
const TRIES_MAX = 50;

const quotaUse = z.object({ period_start: z.int(), used: z.int().min(0) });
type QuotaUse = z.infer<typeof quotaUse>;

/** An organization's quota, and the period that it applies to. */
export interface JudgeQuota {
  org_id: string;
  /** policy.judge_quota_calls; null: unlimited. */
  limit: number | null;
  /**
   * First instant of the organization's period, in milliseconds since the epoch; the count of
   * another period starts at 0.
   */
  period_start: number;
}

/** The quota of an organization's period is used up. */
export class JudgeQuotaExceeded extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`the quota of ${limit} calls of LLM judges in this period is used up`);
    this.name = 'JudgeQuotaExceeded';
    this.limit = limit;
  }
}

/** Returns the number of calls made in the period. @throws Error when NATS does not answer */
export async function judgeCallsUsed(log: Log, { org_id, period_start }: Omit<JudgeQuota, 'limit'>): Promise<number> {
  const kv = await log.bucket('judge_quotas');
  const { use } = await readUse(kv, org_id);
  return use?.period_start === period_start ? use.used : 0;
}

/** Returns true when no LLM judge of the organization can make a call now. */
export async function isJudgeQuotaUsedUp(log: Log, quota: JudgeQuota): Promise<boolean> {
  return quota.limit !== null && (await judgeCallsUsed(log, quota)) >= quota.limit;
}

/**
 * Counts the calls of one process. The calls of one organization are counted one after another, so
 * only other processes can win a write against them.
 */
export class JudgeQuotas {
  readonly #log: Log;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Counts one call, also without a limit, so that a limit which is set later applies from the
   * start of the period. @throws JudgeQuotaExceeded
   */
  async take({ org_id, limit, period_start }: JudgeQuota): Promise<void> {
    await this.#inTurn(org_id, () =>
      this.#change(org_id, (use) => {
        const used = use?.period_start === period_start ? use.used : 0;
        if (limit !== null && used >= limit) throw new JudgeQuotaExceeded(limit);
        return { period_start, used: used + 1 };
      }),
    );
  }

  /** Takes back the count of a call that was never answered. */
  async release({ org_id, period_start }: JudgeQuota): Promise<void> {
    await this.#inTurn(org_id, () =>
      this.#change(org_id, (use) =>
        use?.period_start === period_start && use.used > 0 ? { ...use, used: use.used - 1 } : null,
      ),
    );
  }

  async #change(org_id: string, apply: (use: QuotaUse | null) => QuotaUse | null): Promise<void> {
    const kv = await this.#log.bucket('judge_quotas');
    for (let tries = 1; ; tries++) {
      const { use, revision } = await readUse(kv, org_id);
      const changed = apply(use);
      if (changed === null) return;
      try {
        await kv.put(orgKey(org_id), JSON.stringify(changed), { previousSeq: revision });
        return;
      } catch (error) {
        if (!isLostWrite(error) || tries >= TRIES_MAX) throw error;
        await waitAfterLostWrite(tries);
      }
    }
  }

  async #inTurn(org_id: string, task: () => Promise<void>): Promise<void> {
    const before = this.#turns.get(org_id) ?? Promise.resolve();
    const turn = before.then(task);
    const settled = turn.catch(() => undefined);
    this.#turns.set(org_id, settled);
    try {
      await turn;
    } finally {
      if (this.#turns.get(org_id) === settled) this.#turns.delete(org_id);
    }
  }
}

async function readUse(kv: KV, org_id: string): Promise<{ use: QuotaUse | null; revision: number }> {
  const entry = await kv.get(orgKey(org_id));
  if (entry?.operation !== 'PUT') return { use: null, revision: entry?.revision ?? 0 };
  return { use: quotaUse.parse(entry.json()), revision: entry.revision };
}
