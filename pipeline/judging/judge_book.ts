// The versions of judges that workers look up: the newest from the watched bucket, older ones read one at a time.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { judgeKey, type JudgeRecord, judgeVersionKey } from '../../schemas/records/judge.ts';

export class JudgeBook {
  readonly #newest: Pick<WatchedBucket<JudgeRecord>, 'get'>;
  readonly #log: Pick<Log, 'bucket'>;

  /** @param newest the watched bucket of judges, which stays its caller's to close */
  constructor(newest: Pick<WatchedBucket<JudgeRecord>, 'get'>, log: Pick<Log, 'bucket'>) {
    this.#newest = newest;
    this.#log = log;
  }

  /** Returns the newest version of a judge; null where there is none. @throws Error when NATS does not answer */
  async newest(org_id: string, judge_id: string): Promise<JudgeRecord | null> {
    const key = judgeKey(org_id, judge_id);
    return this.#newest.get(key) ?? readRecord(this.#log, 'judges', key);
  }

  /** Returns a version of a judge where it is still kept, else the newest. @throws Error when NATS does not answer */
  async version(newest: JudgeRecord, version: number): Promise<JudgeRecord> {
    if (newest.version === version) return newest;
    const key = judgeVersionKey(newest.org_id, newest.judge_id, version);
    return (await readRecord(this.#log, 'judge_versions', key)) ?? newest;
  }
}
