// Looks up judges by version: the newest version of each from memory, watched from the bucket
// `judges`, older ones from the bucket `judge_versions`, one read each.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { judgeKey, type JudgeRecord, judgeVersionKey } from '../../schemas/records/judge.ts';

export class JudgeVersions {
  readonly #newest: Pick<WatchedBucket<JudgeRecord>, 'get'>;
  readonly #log: Pick<Log, 'bucket'>;

  /** @param newest the watched bucket of judges, which the caller closes */
  constructor(newest: Pick<WatchedBucket<JudgeRecord>, 'get'>, log: Pick<Log, 'bucket'>) {
    this.#newest = newest;
    this.#log = log;
  }

  /**
   * Resolves with the newest version, or with null when there is no such judge.
   * @throws Error when NATS does not answer
   */
  async newest(org_id: string, judge_id: string): Promise<JudgeRecord | null> {
    const key = judgeKey(org_id, judge_id);
    return this.#newest.get(key) ?? readRecord(this.#log, 'judges', key);
  }

  /**
   * Resolves with a version, or with the newest one when the version is no longer known.
   * @throws Error when NATS does not answer
   */
  async version(newest: JudgeRecord, version: number): Promise<JudgeRecord> {
    if (newest.version === version) return newest;
    const key = judgeVersionKey(newest.org_id, newest.judge_id, version);
    return (await readRecord(this.#log, 'judge_versions', key)) ?? newest;
  }
}
