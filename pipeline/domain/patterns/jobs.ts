// Jobs of the pattern thread. In: a job. Out: its parts in order, one for each text or rule. Pure
// except for its cache of compiled patterns. No step budget applies here: the job's deadline does.
import type { JudgeRule } from '../../../schemas/records/judge.ts';
import type { CustomPattern } from '../../../schemas/records/pii_policy.ts';
import { compileRule, type RuleScore, type RuleScorer } from '../judging/rules.ts';
import { type OwnFinds, OwnPatterns } from '../pii/own_patterns.ts';

/**
 * `find`: own patterns in each text. `judge`: each rule on its own texts, given as indexes into
 * `texts`.
 */
export type PatternJob =
  | { kind: 'find'; patterns: readonly CustomPattern[]; texts: readonly string[] }
  | { kind: 'judge'; rules: readonly { rule: JudgeRule; places: readonly number[] }[]; texts: readonly string[] };

/** A rule that is invalid or failed has the reason instead. */
export type RuleResult = RuleScore | { error: string };

export type PatternPart = { finds: OwnFinds } | { result: RuleResult };

/** Maximum policies and rules kept compiled. */
const COMPILED_MAX = 200;

const payAll = (): boolean => true;
const policies = new Map<string, OwnPatterns>();
const rules = new Map<string, RuleScorer>();

export function* runJob(job: PatternJob): Generator<PatternPart> {
  if (job.kind === 'find') {
    const own = kept(policies, JSON.stringify(job.patterns), () => new OwnPatterns(job.patterns));
    for (const text of job.texts) yield { finds: own.find(text, payAll) };
    return;
  }
  for (const { rule, places } of job.rules)
    yield {
      result: resultOf(
        rule,
        places.map((place) => job.texts[place] ?? ''),
      ),
    };
}

function resultOf(rule: JudgeRule, texts: readonly string[]): RuleResult {
  try {
    return kept(rules, JSON.stringify(rule), () => compileRule(rule)).ofTexts(texts);
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

/**
 * Returns the cached value, or compiles it; the least recently used one is evicted when there are
 * too many.
 */
function kept<T>(held: Map<string, T>, key: string, compile: () => T): T {
  const value = held.get(key) ?? compile();
  held.delete(key);
  held.set(key, value);
  const [oldest] = held.keys();
  if (held.size > COMPILED_MAX && oldest !== undefined) held.delete(oldest);
  return value;
}
