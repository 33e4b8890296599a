// How many calls of LLM judges an org has made in its period. Used by workers, that count each call before they make it, and by the API,
// that refuses what could not be judged. Guarantees: counted in one KV record an org by CAS, so exactly over all processes; a call that
// was counted when its process died stays counted: never more calls than the quota are made.
import type { KV } from '@nats-io/kv';
import { z } from 'zod';
import { orgKey } from '../../schemas/records/org.ts';
import { isLostWrite, waitAfterLostWrite } from '../platform/nats/conflict.ts';
import type { Log } from '../platform/nats/open_log.ts';

/** Other processes may be faster so often, each time one of them has counted. */
const TRIES_MAX = 50;

const quotaUse = z.object({ period_start: z.int(), used: z.int().min(0) });
type QuotaUse = z.infer<typeof quotaUse>;

/** An org's quota and the period that it counts in. */
export interface JudgeQuota {
  org_id: string;
  /** policy.judge_quota_calls; null: as many as it takes. */
  limit: number | null;
  /** First instant of the org's period, milliseconds since the epoch; another one begins at 0. */
  period_start: number;
}

/** The quota of an org's period is used up. */
export class JudgeQuotaExceeded extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`the quota of ${String(limit)} calls of LLM judges in this period is used up`);
    this.name = 'JudgeQuotaExceeded';
    this.limit = limit;
  }
}

/** Calls that were made in the period. @throws Error when NATS does not answer */
export async function judgeCallsUsed(log: Log, { org_id, period_start }: Omit<JudgeQuota, 'limit'>): Promise<number> {
  const kv = await log.bucket('judge_quotas');
  const { use } = await readUse(kv, org_id);
  return use?.period_start === period_start ? use.used : 0;
}

/** Whether an LLM judge of the org can make no call now. */
export async function isJudgeQuotaUsedUp(log: Log, quota: JudgeQuota): Promise<boolean> {
  return quota.limit !== null && (await judgeCallsUsed(log, quota)) >= quota.limit;
}

/** Counts calls of one process; those of an org one after the other, so that only other processes can be in its way. */
export class JudgeQuotas {
  readonly #log: Log;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Counts one call. Without a limit it is counted too: a limit that is set later counts from the period's start. @throws JudgeQuotaExceeded */
  async take({ org_id, limit, period_start }: JudgeQuota): Promise<void> {
    await this.#inTurn(org_id, () =>
      this.#change(org_id, (use) => {
        const used = use?.period_start === period_start ? use.used : 0;
        if (limit !== null && used >= limit) throw new JudgeQuotaExceeded(limit);
        return { period_start, used: used + 1 };
      }),
    );
  }

  /** Takes the count of a call back that was never answered. */
  async giveBack({ org_id, period_start }: JudgeQuota): Promise<void> {
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
