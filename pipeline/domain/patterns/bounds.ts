// What bounds the patterns and rules of an org: steps in place, and a runner with a deadline for the rest. In: the runner of the
// process. Out: bounds of own patterns for a PII policy, and results of rules of judges.
import type { JudgeRule } from '../../../schemas/records/judge.ts';
import type { PatternJob, PatternPart, RuleResult } from './jobs.ts';
import { EVENT_STEPS_MAX, type OwnBounds, type OwnFinds } from '../pii/own_patterns.ts';

/** How long the own patterns of an org may run for one event, and its rules for one trace, in the runner. */
const EVENT_MS = 250;
const TRACE_MS = 500;
/** Steps that the rules of an org may take in place for one trace, as EVENT_STEPS_MAX. */
export const TRACE_STEPS_MAX = EVENT_STEPS_MAX;

export interface RunnerJob {
  job: PatternJob;
  bytes: number;
  deadlineMs: number;
  onPart: (part: PatternPart) => void;
}

/** ops/platform/pattern_runner.ts */
export interface Runner {
  /** Resolves with how the job ended; parts come before. */
  run(org_id: string, job: RunnerJob): Promise<'done' | 'late' | 'refused' | 'failed' | 'spent'>;
  isSpent(org_id: string): boolean;
  took(org_id: string, ms: number): void;
}

const sizeOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + 2 * text.length, 0);

/** Bounds of the own patterns of an org. */
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

/** A rule with the texts that it looks at. */
export interface RuleOnTexts {
  rule: JudgeRule;
  texts: readonly string[];
}

/** Why a rule said nothing, by how its job ended. */
const UNDONE = {
  done: 'the rule gave no result',
  late: `the judges of the org took more than the ${String(TRACE_MS)} ms that they have for a trace`,
  refused: 'too many rules of judges waited to be run',
  failed: 'the rule took more memory than it may, or its run failed',
  spent: 'the patterns and judges of the org took more than their share of time before',
} as const;

/** Runs rules under the deadline of a trace. @returns for each rule what it says; those that were not done say why */
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
