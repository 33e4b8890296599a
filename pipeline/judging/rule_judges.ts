// Scores complete traces by deterministic judges. It takes a trace as judges see it and the judges
// of its organization, and returns one judgement for each judge in whose scope it is. Guarantees: a
// judge neither waits nor throws. A rule that would take long is returned as Costly, to run in a
// thread with a deadline.
import type { Breach, JudgeRecord, JudgeRule, Verdict } from '../../schemas/records/judge.ts';
import { breachOf, verdictOf } from '../../schemas/records/judge.ts';
import { compileRule, inScope, readsTexts, type RuleScorer, textsOfRule } from '../domain/judging/rules.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import type { RuleResult } from '../domain/patterns/jobs.ts';

/** One version of a deterministic judge, ready to score. */
export interface RuleJudge {
  readonly record: JudgeRecord;
  readonly rule: JudgeRule;
  /**
   * Returns the compiled rule.
   * @throws RuleError when the rule cannot be used
   */
  readonly scorer: () => RuleScorer;
  /** True when compiling the rule alone may block this thread for long. */
  readonly isLarge: boolean;
  /** True when the rule reads texts, which a trace that sampling thinned does not have. */
  readonly reads_texts: boolean;
}

/** The enabled judges of an organization at the start of a batch. */
export interface OrgJudges {
  readonly rules: readonly RuleJudge[];
  readonly llm: readonly JudgeRecord[];
}

export interface Judgement {
  judge_id: string;
  judge_version: number;
  judge_name: string;
  /** null when the judge has no result. */
  score: number | null;
  verdict: Verdict;
  reason: string;
}

/**
 * Prepares a judge. Its rule is compiled at its first use, in the time budget of its organization;
 * a rule that cannot be used gives each trace the verdict `error`.
 */
export function compileJudge(record: JudgeRecord): RuleJudge {
  const { rule } = record;
  if (rule === null) throw new Error('a deterministic judge without a rule');
  let scorer: RuleScorer | undefined;
  return {
    record,
    rule,
    scorer: () => (scorer ??= compileRule(rule)),
    isLarge: rule.type === 'json_schema' && JSON.stringify(rule.schema ?? null).length > SCHEMA_IN_PLACE_CHARS_MAX,
    reads_texts: readsTexts(rule),
  };
}

/**
 * Maximum characters of a schema that is compiled and run in this thread, in some milliseconds. A
 * larger one takes up to a third of a second.
 */
const SCHEMA_IN_PLACE_CHARS_MAX = 2048;

/**
 * Returns true for a trace that judging itself made: nothing judges it. Its root has the attribute
 * judge_call.
 */
export const isJudgeCall = ({ attributes }: Pick<JudgedTrace, 'attributes'>): boolean =>
  attributes['judge_call'] === true;

/**
 * Returns the judges in whose scope a trace is.
 * @param thinned true when the trace has no texts, which leaves out the judges that read them
 */
export function judgesFor(judges: OrgJudges, trace: JudgedTrace, thinned: boolean): OrgJudges {
  const inScopeOf = ({ scope }: JudgeRecord): boolean => inScope(scope, trace);
  return {
    rules: judges.rules.filter(({ record, reads_texts }) => inScopeOf(record) && !(thinned && reads_texts)),
    llm: thinned ? [] : judges.llm.filter(inScopeOf),
  };
}

/** A rule that takes more steps than it may in this thread, with the texts to run it on. */
export interface Costly {
  texts: readonly string[];
}

/**
 * Judges a trace in this thread where the rule takes no more steps than `pay` allows.
 * @param pay takes steps from those that the trace's rules have in this thread; returns false when
 * there are not enough
 */
export function judge(judge: RuleJudge, trace: JudgedTrace, pay: (steps: number) => boolean): Judgement | Costly {
  const { rule, scorer, isLarge } = judge;
  try {
    if (isLarge) return { texts: textsOfRule(rule, trace) };
    const { steps, texts: textsOf, ofTexts } = scorer();
    const texts = textsOf(trace);
    if (!pay(steps(texts))) return { texts };
    return judgementOf(judge, texts.length === 0 ? scorer()(trace) : ofTexts(texts));
  } catch (error) {
    // The rule cannot be used, or a scorer threw in spite of its contract: the trace completes all
    // the same.
    return notJudged(judge, error instanceof Error ? error.message : String(error));
  }
}

/** Returns the judgement for the result of a rule. */
export function judgementOf(judge: RuleJudge, result: RuleResult): Judgement {
  if ('error' in result) return notJudged(judge, result.error);
  const { record } = judge;
  return {
    ...named(record),
    score: result.score,
    verdict: verdictOf(result.score, record.threshold),
    reason: result.reason,
  };
}

/**
 * Returns the judgement of a judge that did not run, for a reason that lies with its organization.
 */
export function notJudged({ record }: RuleJudge, reason: string): Judgement {
  return { ...named(record), score: null, verdict: 'error', reason };
}

const named = ({ judge_id, version, name }: JudgeRecord) => ({ judge_id, judge_version: version, judge_name: name });

/**
 * Returns the breaches among the judgements of a trace, by the thresholds that their judges have
 * now.
 */
export function breachesOf(rules: readonly RuleJudge[], trace_id: string, judgements: readonly Judgement[]): Breach[] {
  const records = new Map(rules.map(({ record }) => [record.judge_id, record]));
  return judgements.flatMap(({ judge_id, score }) => {
    const record = records.get(judge_id);
    return record === undefined || score === null ? [] : (breachOf(record, trace_id, score) ?? []);
  });
}

/**
 * Returns scores by name, as in trace.completed. Of two judges with one name, the newer one counts.
 */
export function scoresByName(judgements: readonly Judgement[]): Record<string, number> {
  return Object.fromEntries(
    judgements.flatMap(({ judge_name, score }) => (score === null ? [] : [[judge_name, score]])),
  );
}
