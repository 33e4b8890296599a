// Holds the enabled judges of every organization in memory, from the watched bucket `judges`:
// sorted once for each change of an organization's judges, and compiled once for each version. A
// judge that cannot be compiled is reported and left out, so that traces complete without it.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { OrgIndex, orgTokenOf } from '../../ops/platform/nats/org_index.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import { orgOfKey } from '../../schemas/records/org.ts';
import { compileJudge, type OrgJudges, type RuleJudge } from './rule_judges.ts';

export interface Judges {
  /**
   * Returns the judges of an organization, or null when it has none: the same object until one of
   * them changes.
   */
  of: (org_id: string) => OrgJudges | null;
}

/** Follows the judges of a bucket, which the caller closes. */
export function followJudges(
  bucket: Pick<WatchedBucket<JudgeRecord>, 'entries' | 'onChange'>,
  onProblem: ReportProblem,
): Judges {
  const byOrg = new OrgIndex(bucket);
  const sorted = new Map<string, OrgJudges | null>();
  const compiled = new WeakMap<JudgeRecord, RuleJudge | null>();
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
  const sort = (records: Iterable<JudgeRecord>): OrgJudges | null => {
    const enabled = [...records].filter((record) => record.enabled).sort(oldestFirst);
    const rules = enabled.filter(({ kind }) => kind === 'deterministic').flatMap((record) => ruleOf(record) ?? []);
    const llm = enabled.filter(({ kind }) => kind === 'llm');
    return rules.length + llm.length === 0 ? null : { rules, llm };
  };
  bucket.onChange((key) => sorted.delete(orgOfKey(orgTokenOf(key))));
  return {
    of(org_id) {
      const records = byOrg.of(org_id);
      if (records.size === 0) return null;
      let judges = sorted.get(org_id);
      if (judges === undefined) sorted.set(org_id, (judges = sort(records.values())));
      return judges;
    },
  };
}

function oldestFirst(a: JudgeRecord, b: JudgeRecord): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? -1 : 1;
  return a.judge_id < b.judge_id ? -1 : 1;
}
