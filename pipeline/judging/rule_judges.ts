// Scores of deterministic judges. In: a complete trace as judges see it, and the judges of its org. Out: one judgement by each judge
// in whose scope it is. It runs at the completion of a trace, not on events. A judge neither waits nor throws; what would take long is
// given back, to be run where a deadline ends it.
import type { Breach, JudgeRecord, JudgeRule, Verdict } from '../../schemas/records/judge.ts';
import { breachOf, verdictOf } from '../../schemas/records/judge.ts';
import { compileRule, inScope, readsTexts, type RuleScorer, textsOfRule } from '../domain/judging/rules.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import type { RuleResult } from '../domain/patterns/jobs.ts';

/** One version of a deterministic judge, ready to score. */
export interface RuleJudge {
  readonly record: JudgeRecord;
  readonly rule: JudgeRule;
  /** @throws RuleError for a rule that cannot be used */
  readonly scorer: () => RuleScorer;
  /** Whether compiling it alone may hold up this thread. */
  readonly isLarge: boolean;
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

/**
 * Makes a judge ready. Its rule is compiled when it is first asked, in the time of its org: a rule that cannot be used gives the
 * verdict error to each of its traces.
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

/** Characters of a schema that is compiled and run in this thread: some milliseconds. A larger one takes up to a third of a second. */
const SCHEMA_IN_PLACE_CHARS_MAX = 2048;

/** A trace that judging itself has made is judged by nobody: its root says judge_call. */
export const isJudgeCall = ({ attributes }: Pick<JudgedTrace, 'attributes'>): boolean =>
  attributes['judge_call'] === true;

/** Judges in whose scope a trace is. `thinned`: its texts are not at hand, so that those who read them say nothing. */
export function judgesFor(judges: OrgJudges, trace: JudgedTrace, thinned: boolean): OrgJudges {
  const inScopeOf = ({ scope }: JudgeRecord): boolean => inScope(scope, trace);
  return {
    rules: judges.rules.filter(({ record, reads_texts }) => inScopeOf(record) && !(thinned && reads_texts)),
    llm: thinned ? [] : judges.llm.filter(inScopeOf),
  };
}

/** What a judge is to be asked elsewhere: its rule takes more than it may in place. */
export interface Costly {
  texts: readonly string[];
}

/**
 * Judges a trace in place where its rule takes no more than `pay` allows.
 * @param pay takes steps from what the trace's rules may take in place; false where they are more
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
    // The rule cannot be used, or a scorer is not as total as it is to be: the trace is complete all the same.
    return notJudged(judge, error instanceof Error ? error.message : String(error));
  }
}

/** The judgement that a rule's result is. */
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
  return Object.fromEntries(
    judgements.flatMap(({ judge_name, score }) => (score === null ? [] : [[judge_name, score]])),
  );
}
