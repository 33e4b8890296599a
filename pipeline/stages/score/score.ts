// Scores of deterministic judges. In: a complete trace as judges see it, and the judges of its org. Out: one judgement by each judge
// in whose scope it is. It runs at the completion of a trace, not on events. A judge is a synchronous, total function: it neither
// waits nor throws.
import type { Breach, JudgeRecord, Verdict } from '../../../schemas/records/judge.ts';
import { breachOf, verdictOf } from '../../../schemas/records/judge.ts';
import { compileRule, inScope, readsTexts, type RuleScorer } from '../../domain/judge_rules.ts';
import type { JudgedTrace } from '../../domain/judged_trace.ts';

/** One version of a deterministic judge, ready to score. */
export interface RuleJudge {
  readonly record: JudgeRecord;
  readonly score: RuleScorer;
  /** Whether it looks at what a trace that sampling thinned does not have. */
  readonly reads_texts: boolean;
}

/** The enabled judges of an org, as they stand when a batch begins. */
export interface OrgJudges {
  readonly rules: readonly RuleJudge[];
  readonly llm: readonly JudgeRecord[];
}

export interface Judgement {
  judge_id: string;
  judge_version: number;
  judge_name: string;
  /** null where the judge did not come to one. */
  score: number | null;
  verdict: Verdict;
  reason: string;
}

/** @throws RuleError for a rule that cannot be used */
export function compileJudge(record: JudgeRecord): RuleJudge {
  if (record.rule === null) throw new Error('a deterministic judge without a rule');
  return { record, score: compileRule(record.rule), reads_texts: readsTexts(record.rule) };
}

/** A trace that judging itself has made is judged by nobody: its root says judge_call. */
export const isJudgeCall = ({ attributes }: Pick<JudgedTrace, 'attributes'>): boolean => attributes['judge_call'] === true;

/** Judges in whose scope a trace is. `thinned`: its texts are not at hand, so that those who read them say nothing. */
export function judgesFor(judges: OrgJudges, trace: JudgedTrace, thinned: boolean): OrgJudges {
  const inScopeOf = ({ scope }: JudgeRecord): boolean => inScope(scope, trace);
  return {
    rules: judges.rules.filter(({ record, reads_texts }) => inScopeOf(record) && !(thinned && reads_texts)),
    llm: thinned ? [] : judges.llm.filter(inScopeOf),
  };
}

export function judge({ record, score: scorer }: RuleJudge, trace: JudgedTrace): Judgement {
  let scored: ReturnType<RuleScorer>;
  try {
    scored = scorer(trace);
  } catch (error) {
    // A scorer is total. Should one not be, its trace is complete all the same.
    return { ...named(record), score: null, verdict: 'error', reason: error instanceof Error ? error.message : String(error) };
  }
  const { score, reason } = scored;
  return { ...named(record), score, verdict: verdictOf(score, record.threshold), reason };
}

/** The judgement of a judge that was not asked, for a reason that lies with its org. */
export function notJudged({ record }: RuleJudge, reason: string): Judgement {
  return { ...named(record), score: null, verdict: 'error', reason };
}

const named = ({ judge_id, version, name }: JudgeRecord) => ({ judge_id, judge_version: version, judge_name: name });

/** The breaches that judgements of a trace are, by what holds for their judges now. */
export function breachesOf(rules: readonly RuleJudge[], trace_id: string, judgements: readonly Judgement[]): Breach[] {
  const records = new Map(rules.map(({ record }) => [record.judge_id, record]));
  return judgements.flatMap(({ judge_id, score }) => {
    const record = records.get(judge_id);
    return record === undefined || score === null ? [] : (breachOf(record, trace_id, score) ?? []);
  });
}

/** Scores by name, as trace.completed tells them. Of two judges of one name the one that was made last is told. */
export function scoresByName(judgements: readonly Judgement[]): Record<string, number> {
  return Object.fromEntries(judgements.flatMap(({ judge_name, score }) => (score === null ? [] : [[judge_name, score]])));
}
