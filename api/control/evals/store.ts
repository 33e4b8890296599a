// Eval records in JetStream KV, watched into memory. Lists and polls read from memory.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { queueChunks } from '../../../ops/exchange/eval_queue.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import {
  evalJudgeKey,
  evalKey,
  evalPartKey,
  evalPromptKey,
  type EvalRecord,
  parseEval,
  PART_IDS,
} from '../../../schemas/records/eval.ts';
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { cancelledEval } from '../../../pipeline/domain/evals/chunks.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import type { PromptRecord } from '../../../schemas/records/prompt.ts';

/** Parts that are written concurrently. */
const PARTS_AT_ONCE = 8;
/** Old evals that are deleted for one new eval. */
const FORGET_MAX = 10;

export class EvalStore {
  readonly #log: Log;
  readonly #bucket: WatchedBucket<EvalRecord>;
  readonly #kv: KV;
  readonly #parts: KV;
  readonly #byOrg: OrgIndex<EvalRecord>;

  private constructor(log: Log, bucket: WatchedBucket<EvalRecord>, kv: KV, parts: KV) {
    this.#log = log;
    this.#bucket = bucket;
    this.#kv = kv;
    this.#parts = parts;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<EvalStore> {
    const bucket = await watch(log, 'evals', onProblem);
    return new EvalStore(log, bucket, await log.bucket('evals'), await log.bucket('eval_chunks'));
  }

  get(org_id: string, eval_id: string): EvalRecord | null {
    return this.#bucket.get(evalKey(org_id, eval_id)) ?? null;
  }

  /** Returns those of an organization, newest first. */
  list(org_id: string): EvalRecord[] {
    return [...this.#byOrg.of(org_id).values()].sort(newestFirst);
  }

  /** Stores an eval with its parts. The eval is accepted when this resolves. */
  async create(
    record: EvalRecord,
    given: { trace_ids: readonly string[]; judge: JudgeRecord; prompt: PromptRecord | null },
  ): Promise<void> {
    const { org_id, eval_id } = record;
    const values: [key: string, text: string][] = [[evalJudgeKey(org_id, eval_id), JSON.stringify(given.judge)]];
    if (given.prompt !== null) values.push([evalPromptKey(org_id, eval_id), JSON.stringify(given.prompt)]);
    for (let at = 0; at < given.trace_ids.length; at += PART_IDS)
      values.push([
        evalPartKey(org_id, eval_id, at / PART_IDS),
        JSON.stringify(given.trace_ids.slice(at, at + PART_IDS)),
      ]);
    for (let at = 0; at < values.length; at += PARTS_AT_ONCE)
      await Promise.all(values.slice(at, at + PARTS_AT_ONCE).map(([key, text]) => this.#parts.put(key, text)));
    await this.#bucket.create(evalKey(org_id, eval_id), record);
  }

  /**
   * Cancels a running eval: workers stop and store no further score. An eval that has ended stays
   * as it is.
   *
   * @param now milliseconds since the epoch
   * @returns the stored eval, and whether this call cancelled it; null if the organization has no
   * eval with this id
   */
  async cancel(
    org_id: string,
    eval_id: string,
    now: number,
  ): Promise<{ record: EvalRecord; cancelled: boolean } | null> {
    let cancelled = false;
    const record = await this.#bucket.change(evalKey(org_id, eval_id), (current) => {
      cancelled = current?.status === 'running';
      return current === undefined || !cancelled ? null : cancelledEval(current, now);
    });
    return record === undefined ? null : { record, cancelled };
  }

  /**
   * Stores the statistics of a cancelled eval, unless a worker has counted it. @returns the stored
   * eval
   */
  async noteStats(record: EvalRecord, stats: EvalRecord['stats']): Promise<EvalRecord> {
    const key = evalKey(record.org_id, record.eval_id);
    const noted = await this.#bucket.change(key, (current) =>
      current?.status === 'cancelled' && current.stats === null ? { ...current, stats } : null,
    );
    return noted ?? record;
  }

  /**
   * Returns the running evals of an organization, read from the bucket instead of the watch. An
   * organization has at most 10,000 evals of about 1 kB each.
   */
  async runningNow(org_id: string): Promise<EvalRecord[]> {
    const running: EvalRecord[] = [];
    for await (const entry of await this.#kv.history({ key: `${orgKey(org_id)}.*` })) {
      if (entry.operation !== 'PUT') continue;
      const record = parseEval(entry.string());
      if (record.status === 'running') running.push(record);
    }
    return running;
  }

  /** Deletes an eval that no worker has started. */
  async withdraw({ org_id, eval_id }: EvalRecord): Promise<void> {
    await this.#kv.delete(evalKey(org_id, eval_id));
    await this.#parts.purge(evalJudgeKey(org_id, eval_id));
    await this.#parts.purge(evalPromptKey(org_id, eval_id));
  }

  /**
   * Enqueues the first chunks of an eval. If this fails, a worker enqueues them: the record says
   * which chunks are open.
   */
  async queue(record: EvalRecord): Promise<void> {
    await queueChunks(this.#log, record);
  }

  /**
   * Resolves with the newest state of an eval when the eval has ended, was deleted, or the signal
   * aborts.
   */
  async ended(org_id: string, eval_id: string, signal: AbortSignal): Promise<EvalRecord | null> {
    const key = evalKey(org_id, eval_id);
    const over = Promise.withResolvers<undefined>();
    const look = (): void => {
      if (this.#bucket.get(key)?.status !== 'running') over.resolve(undefined);
    };
    const stop = this.#bucket.onChange((changed) => {
      if (changed === key) look();
    });
    const give_up = (): void => {
      over.resolve(undefined);
    };
    signal.addEventListener('abort', give_up, { once: true });
    if (signal.aborted) give_up();
    look();
    try {
      await over.promise;
    } finally {
      stop();
      signal.removeEventListener('abort', give_up);
    }
    return this.get(org_id, eval_id);
  }

  /** Calls back with every eval that changes. @returns a function that ends the subscription */
  onChange(listener: (record: EvalRecord) => void): () => void {
    return this.#bucket.onChange((_key, held) => {
      if (held !== null) listener(held.value);
    });
  }

  /**
   * Deletes the oldest ended evals, at most FORGET_MAX at a time, until the organization has at
   * most `keep`.
   */
  async forgetOldest(org_id: string, keep: number): Promise<void> {
    const all = this.list(org_id);
    if (all.length <= keep) return;
    const old = all
      .filter(({ status, settled }) => status !== 'running' && settled)
      .slice(-Math.min(FORGET_MAX, all.length - keep));
    for (const { eval_id } of old) {
      const key = evalKey(org_id, eval_id);
      const held = this.#bucket.held(key);
      if (held === undefined) continue;
      try {
        await this.#bucket.delete(key, held.revision);
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
      }
    }
  }

  close(): void {
    this.#bucket.close();
  }
}

function newestFirst(a: EvalRecord, b: EvalRecord): number {
  if (a.started_at !== b.started_at) return a.started_at > b.started_at ? -1 : 1;
  return a.eval_id > b.eval_id ? -1 : 1;
}
