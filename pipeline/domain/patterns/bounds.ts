// Bounds the patterns and rules of an organization: by steps in place, and by a runner with a
// deadline for longer work. In: the process's runner. Out: bounds of own patterns for a PII policy,
// and results of judges' rules.
import type { JudgeRule } from '../../../schemas/records/judge.ts';
import type { PatternJob, PatternPart, RuleResult } from './jobs.ts';
import { EVENT_STEPS_MAX, type OwnBounds, type OwnFinds } from '../pii/own_patterns.ts';

/**
 * Maximum time in the runner: for the own patterns of an organization on one event, and for its
 * rules on one trace.
 */
const EVENT_MS = 250;
const TRACE_MS = 500;
/**
 * Maximum steps that an organization's rules may take in place for one trace; compare
 * EVENT_STEPS_MAX.
 */
export const TRACE_STEPS_MAX = EVENT_STEPS_MAX;

export interface RunnerJob {
  job: PatternJob;
  bytes: number;
  deadlineMs: number;
  onPart: (part: PatternPart) => void;
}

/** Implemented by ops/platform/pattern_runner.ts. */
export interface Runner {
  /** Resolves with how the job ended, after its parts were reported. */
  run(org_id: string, job: RunnerJob): Promise<'done' | 'late' | 'refused' | 'failed' | 'spent'>;
  isSpent(org_id: string): boolean;
  took(org_id: string, ms: number): void;
}

const sizeOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + 2 * text.length, 0);

/** Returns the bounds of an organization's own patterns. */
export function ownBounds(runner: Runner, org_id: string): OwnBounds {
  return {
    steps: () => (runner.isSpent(org_id) ? 0 : EVENT_STEPS_MAX),
    took: (ms) => {
      runner.took(org_id, ms);
    },
    search: async (patterns, texts) => {
      const found: OwnFinds[] = [];
      const onPart = (part: PatternPart): void => {
        if ('finds' in part) found.push(part.finds);
      };
      await runner.run(org_id, {
        job: { kind: 'find', patterns, texts },
        bytes: sizeOf(texts),
        deadlineMs: EVENT_MS,
        onPart,
      });
      return texts.map((_, index) => found[index] ?? 'exceeded');
    },
  };
}

/** A rule with the texts that it reads. */
export interface RuleOnTexts {
  rule: JudgeRule;
  texts: readonly string[];
}

/** Reason why a rule has no result, by how its job ended. */
const UNDONE = {
  done: 'the rule gave no result',
  late: `the judges of the org took more than the ${TRACE_MS} ms that they have for a trace`,
  refused: 'too many rules of judges waited to be run',
  failed: 'the rule took more memory than it may, or its run failed',
  spent: 'the patterns and judges of the org took more than their share of time before',
} as const;

/**
 * Runs rules under the deadline of a trace.
 * @returns a result for each rule; those that did not finish give the reason
 */
export async function runRules(runner: Runner, org_id: string, asked: readonly RuleOnTexts[]): Promise<RuleResult[]> {
  const places = new Map<string, number>();
  const rules = asked.map(({ rule, texts }) => ({
    rule,
    places: texts.map((text) => {
      const place = places.get(text) ?? places.size;
      places.set(text, place);
      return place;
    }),
  }));
  const texts = [...places.keys()];
  const results: RuleResult[] = [];
  const onPart = (part: PatternPart): void => {
    if ('result' in part) results.push(part.result);
  };
  const how = await runner.run(org_id, {
    job: { kind: 'judge', rules, texts },
    bytes: sizeOf(texts),
    deadlineMs: TRACE_MS,
    onPart,
  });
  return asked.map((_, index) => results[index] ?? { error: UNDONE[how] });
}
