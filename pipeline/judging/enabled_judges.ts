// Holds the enabled judges of every organization in memory: watched from the bucket `judges`, each
// version compiled once. Guarantees: a judge that cannot be compiled, or whose record cannot be
// parsed, is reported and left out, so that traces complete without it.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { parseJudge, type JudgeRecord } from '../../schemas/records/judge.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { compileJudge, type OrgJudges, type RuleJudge } from './rule_judges.ts';

export interface Judges {
  /**
   * Returns the judges of an organization, or null when it has none: the same object until one of
   * them changes.
   */
  of: (org_id: string) => OrgJudges | null;
  close: () => void;
}

type OnProblem = (problem: string, cause: unknown) => void;

/** Resolves when every judge has been loaded. */
export async function openJudges(log: Log, onProblem: OnProblem): Promise<Judges> {
  const bucket = await WatchedBucket.open(log.nc, await log.bucket('judges'), {
    name: 'judges',
    parse: parseJudge,
    onProblem,
  });
  return followJudges(bucket, onProblem);
}

/** Returns the judges over a bucket that is open. */
export function followJudges(
  bucket: Pick<WatchedBucket<JudgeRecord>, 'entries' | 'onChange' | 'close'>,
  onProblem: OnProblem,
): Judges {
  /** Records of judges by their key, within those of an organization by its key. */
  const records = new Map<string, Map<string, JudgeRecord>>();
  const sorted = new Map<string, OrgJudges | null>();
  const compiled = new WeakMap<JudgeRecord, RuleJudge | null>();
  const take = (key: string, record: JudgeRecord | null): void => {
    const [org = ''] = key.split('.');
    const own = records.get(org) ?? new Map<string, JudgeRecord>();
    if (record?.enabled === true) own.set(key, record);
    else own.delete(key);
    if (own.size === 0) records.delete(org);
    else records.set(org, own);
    sorted.delete(org);
  };
  const ruleOf = (record: JudgeRecord): RuleJudge | null => {
    let rule = compiled.get(record);
    if (rule === undefined) {
      try {
        rule = compileJudge(record);
      } catch (cause) {
        onProblem(`judge ${record.judge_id} of ${record.org_id} cannot be used and is left out`, cause);
        rule = null;
      }
      compiled.set(record, rule);
    }
    return rule;
  };
  const sort = (org: string): OrgJudges | null => {
    const own = [...(records.get(org)?.values() ?? [])].sort(oldestFirst);
    const rules = own.filter(({ kind }) => kind === 'deterministic').flatMap((record) => ruleOf(record) ?? []);
    const llm = own.filter(({ kind }) => kind === 'llm');
    return rules.length + llm.length === 0 ? null : { rules, llm };
  };
  for (const [key, { value }] of bucket.entries()) take(key, value);
  const stop = bucket.onChange((key, held) => {
    take(key, held?.value ?? null);
  });
  return {
    of(org_id) {
      if (records.size === 0) return null;
      const org = orgKey(org_id);
      if (!records.has(org)) return null;
      let judges = sorted.get(org);
      if (judges === undefined) sorted.set(org, (judges = sort(org)));
      return judges;
    },
    close: () => {
      stop();
      bucket.close();
    },
  };
}

function oldestFirst(a: JudgeRecord, b: JudgeRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.judge_id < b.judge_id ? -1 : 1;
}
