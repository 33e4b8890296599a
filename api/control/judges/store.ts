// Judges in JetStream KV. The newest version of each judge is watched into memory, older ones are
// read on demand. Writes compare-and-swap on the revision; a version is archived before the next
// one replaces it, so that no version is ever without its record.
import type { KV } from '@nats-io/kv';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { Turns } from '../../../ops/platform/turns.ts';
import { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { judgeKey, type JudgeRecord, judgeVersionKey, parseJudge } from '../../../schemas/records/judge.ts';
import { ApiError } from '../../http/errors.ts';

/** Attempts of one change against concurrent changes of the same judge. */
const CHANGE_TRIES_MAX = 8;
/**
 * Older versions of a judge that are kept for judgements in progress. A judgement whose version no
 * longer exists uses the newest.
 */
export const OLD_VERSIONS_MAX = 50;

type OnProblem = (problem: string, cause: unknown) => void;

export class JudgeStore {
  readonly #bucket: WatchedBucket<JudgeRecord>;
  readonly #versions: KV;
  readonly #jsm: Log['jsm'];
  readonly #onProblem: OnProblem;
  /** Keys of each org's judges. */
  readonly #byOrg = new Map<string, Set<string>>();
  /** Changes of one judge by this process, which would lose against each other. */
  readonly #turns = new Turns();

  private constructor(bucket: WatchedBucket<JudgeRecord>, versions: KV, { jsm }: Log, onProblem: OnProblem) {
    this.#bucket = bucket;
    this.#versions = versions;
    this.#jsm = jsm;
    this.#onProblem = onProblem;
    const sort = (key: string, exists: boolean): void => {
      const [org = ''] = key.split('.');
      const own = this.#byOrg.get(org) ?? new Set();
      if (exists) own.add(key);
      else own.delete(key);
      if (own.size === 0) this.#byOrg.delete(org);
      else this.#byOrg.set(org, own);
    };
    for (const [key] of bucket.entries()) sort(key, true);
    bucket.onChange((key, held) => {
      sort(key, held !== null);
    });
  }

  static async open(log: Log, onProblem: OnProblem): Promise<JudgeStore> {
    const [judges, versions] = await Promise.all([log.bucket('judges'), log.bucket('judge_versions')]);
    const bucket = await WatchedBucket.open(log.nc, judges, { name: 'judges', parse: parseJudge, onProblem });
    return new JudgeStore(bucket, versions, log, onProblem);
  }

  /** The newest version. */
  get(org_id: string, judge_id: string): JudgeRecord | null {
    return this.#bucket.get(judgeKey(org_id, judge_id)) ?? null;
  }

  /** Returns those of an organization, newest first. */
  list(org_id: string): JudgeRecord[] {
    const keys = this.#byOrg.get(judgeKey(org_id, '').slice(0, -1)) ?? [];
    return [...keys].flatMap((key) => this.#bucket.get(key) ?? []).sort(newestFirst);
  }

  async create(record: JudgeRecord): Promise<void> {
    await this.#bucket.create(judgeKey(record.org_id, record.judge_id), record);
  }

  /**
   * Replaces the newest version with the next. `next` is called again if another change came first;
   * if it throws, nothing changes; if it returns its argument, nothing is written.
   *
   * @returns the stored judge; null if there is no such judge
   * @throws what `next` throws; ApiError conflict when other processes won every attempt
   */
  change(org_id: string, judge_id: string, next: (record: JudgeRecord) => JudgeRecord): Promise<JudgeRecord | null> {
    return this.#turns.take(judgeKey(org_id, judge_id), () => this.#change(org_id, judge_id, next));
  }

  async #change(
    org_id: string,
    judge_id: string,
    next: (record: JudgeRecord) => JudgeRecord,
  ): Promise<JudgeRecord | null> {
    const key = judgeKey(org_id, judge_id);
    for (let tries = 1; ; tries += 1) {
      const before = this.#bucket.get(key);
      if (before === undefined) return null;
      if (next(before) === before) return before;
      // Writing a version again is harmless: its content never differs.
      await this.#versions.put(judgeVersionKey(org_id, judge_id, before.version), JSON.stringify(before));
      await this.#forgetVersion(org_id, judge_id, before.version - OLD_VERSIONS_MAX);
      const written: JudgeRecord[] = [];
      const now = await this.#bucket.change(key, (record) => {
        // Another change came first: its version has to be archived too.
        if (record?.version !== before.version) return null;
        const made = next(record);
        written.push(made);
        return made;
      });
      if (now === undefined) return null;
      if (written.includes(now)) return now;
      if (tries >= CHANGE_TRIES_MAX)
        throw new ApiError('conflict', 'The judge is being changed by other requests. Try again.');
    }
  }

  /** Deletes an archived version. A failure is reported and leaves the version in the archive. */
  async #forgetVersion(org_id: string, judge_id: string, version: number): Promise<void> {
    if (version < 1) return;
    await this.#jsm.streams
      .purge('KV_judge_versions', { filter: `$KV.judge_versions.${judgeVersionKey(org_id, judge_id, version)}` })
      .catch((cause: unknown) => {
        this.#onProblem('an old version of a judge could not be deleted', cause);
      });
  }

  close(): void {
    this.#bucket.close();
  }
}

export function newestFirst(
  a: Pick<JudgeRecord, 'created_at' | 'judge_id'>,
  b: Pick<JudgeRecord, 'created_at' | 'judge_id'>,
): number {
  if (a.created_at !== b.created_at) return a.created_at > b.created_at ? -1 : 1;
  return a.judge_id < b.judge_id ? -1 : a.judge_id > b.judge_id ? 1 : 0;
}
