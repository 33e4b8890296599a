// Looks up judges by version: the newest version of each from memory, watched from the bucket
// `judges`, older ones from the bucket `judge_versions`, one read each.
import type { KV } from '@nats-io/kv';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { judgeKey, type JudgeRecord, judgeVersionKey, parseJudge } from '../../schemas/records/judge.ts';

export class JudgeVersions {
  readonly #newest: WatchedBucket<JudgeRecord>;
  readonly #kv: KV;
  readonly #versions: KV;

  private constructor(newest: WatchedBucket<JudgeRecord>, kv: KV, versions: KV) {
    this.#newest = newest;
    this.#kv = kv;
    this.#versions = versions;
  }

  /** Resolves when every judge has been loaded. */
  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<JudgeVersions> {
    const [kv, versions] = await Promise.all([log.bucket('judges'), log.bucket('judge_versions')]);
    const newest = await WatchedBucket.open(log.nc, kv, { name: 'judges', parse: parseJudge, onProblem });
    return new JudgeVersions(newest, kv, versions);
  }

  /**
   * Resolves with the newest version, or with null when there is no such judge.
   * @throws Error when NATS does not answer
   */
  async newest(org_id: string, judge_id: string): Promise<JudgeRecord | null> {
    const key = judgeKey(org_id, judge_id);
    return this.#newest.get(key) ?? read(this.#kv, key);
  }

  /** Resolves with a version, or with the newest one when the version is no longer known. */
  async version(newest: JudgeRecord, version: number): Promise<JudgeRecord> {
    if (newest.version === version) return newest;
    return (await read(this.#versions, judgeVersionKey(newest.org_id, newest.judge_id, version))) ?? newest;
  }

  close(): void {
    this.#newest.close();
  }
}

async function read(kv: KV, key: string): Promise<JudgeRecord | null> {
  const entry = await kv.get(key);
  return entry?.operation === 'PUT' ? parseJudge(entry.string()) : null;
}
