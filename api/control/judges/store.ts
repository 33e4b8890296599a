// Judges in JetStream KV. The newest version of each is watched into memory, older ones are read
// one by one. Writes compare the revision; an older version is stored before the newer one replaces
// it, so that no version is ever without its record.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { Turns } from '../../../ops/platform/turns.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { judgeKey, type JudgeRecord, judgeVersionKey, parseJudge } from '../../../schemas/records/judge.ts';
import { ApiError } from '../../http/errors.ts';

/** Maximum attempts of a change against concurrent changes of the same judge. */
const CHANGE_TRIES_MAX = 8;
/**
 * Older versions of a judge that are kept for judgements in progress. A judgement whose version is
 * gone uses the newest.
 */
export const OLD_VERSIONS_MAX = 50;

/** Older versions that are read concurrently. */
const READS_AT_ONCE = 8;

export class JudgeStore {
  readonly #bucket: WatchedBucket<JudgeRecord>;
  readonly #versions: KV;
  readonly #jsm: Log['jsm'];
  readonly #onProblem: ReportProblem;
  readonly #byOrg: OrgIndex<JudgeRecord>;
  /**
   * Serializes changes of one judge by this process, which would otherwise conflict with each
   * other.
   */
  readonly #turns = new Turns();

  private constructor(bucket: WatchedBucket<JudgeRecord>, versions: KV, { jsm }: Log, onProblem: ReportProblem) {
    this.#bucket = bucket;
    this.#versions = versions;
    this.#jsm = jsm;
    this.#onProblem = onProblem;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<JudgeStore> {
    const [bucket, versions] = await Promise.all([watch(log, 'judges', onProblem), log.bucket('judge_versions')]);
    return new JudgeStore(bucket, versions, log, onProblem);
  }

  /** Returns the newest version. */
  get(org_id: string, judge_id: string): JudgeRecord | null {
    return this.#bucket.get(judgeKey(org_id, judge_id)) ?? null;
  }

  /** Returns an organization's judges, newest first. */
  list(org_id: string): JudgeRecord[] {
    return [...this.#byOrg.of(org_id).values()].sort(newestFirst);
  }

  /**
   * Resolves with the asked versions of a judge, in their order. Those that are no longer kept are
   * left out.
   * @throws Error when NATS does not answer
   */
  async versions(newest: JudgeRecord, asked: readonly number[]): Promise<JudgeRecord[]> {
    const found: JudgeRecord[] = [];
    for (let at = 0; at < asked.length; at += READS_AT_ONCE) {
      const some = asked.slice(at, at + READS_AT_ONCE).map(async (version) => {
        if (version === newest.version) return newest;
        const entry = await this.#versions.get(judgeVersionKey(newest.org_id, newest.judge_id, version));
        return entry?.operation === 'PUT' ? parseJudge(entry.string()) : null;
      });
      found.push(...(await Promise.all(some)).filter((record) => record !== null));
    }
    return found;
  }

  async create(record: JudgeRecord): Promise<void> {
    await this.#bucket.create(judgeKey(record.org_id, record.judge_id), record);
  }

  /**
   * Replaces the newest version. `next` is called again when another change came first. An
   * exception of `next` ends the change; a record returned unchanged changes nothing.
   * @returns the current record; null when there is no such judge
   * @throws what `next` throws; ApiError conflict when other processes were faster every time
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
      // Repeatable: the contents of a version never change.
      await this.#versions.put(judgeVersionKey(org_id, judge_id, before.version), JSON.stringify(before));
      await this.#forgetVersion(org_id, judge_id, before.version - OLD_VERSIONS_MAX);
      const written: JudgeRecord[] = [];
      const now = await this.#bucket.change(key, (record) => {
        // Another change came first: its version has to be stored too.
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

  /**
   * A failure is harmless: the version is deleted after the change that follows OLD_VERSIONS_MAX
   * later. Nothing waits for it.
   */
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
