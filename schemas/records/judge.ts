// Judges in KV: one record for each version of a judge, so that old scores keep the judge that gave
// them. The API, rule scoring and LLM judging read them.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const JUDGE_KINDS = ['deterministic', 'llm'] as const;

export const RULE_TYPES = [
  'regex_absent',
  'regex_present',
  'contains',
  'not_contains',
  'equals',
  'json_valid',
  'json_schema',
  'max_length',
  'max_duration_ms',
  'max_cost_usd',
  'outcome_is',
] as const;
export type RuleType = (typeof RULE_TYPES)[number];

/** Rule of a deterministic judge; its parameters depend on its type. */
export const judgeRule = z.object({
  type: z.enum(RULE_TYPES),
  /**
   * Fields of a trace: prompt, response, name, model, outcome, agent_id, source_format, tags,
   * duration_ms, cost_usd, attributes.<key>.
   */
  fields: z.array(z.string()),
  pattern: z.string().optional(),
  value: z.string().optional(),
  schema: z.unknown().optional(),
  max: z.number().optional(),
  outcomes: z.array(z.string()).optional(),
});
export type JudgeRule = z.infer<typeof judgeRule>;

export const judgeRubric = z.object({ scale: z.array(z.number()), criteria: z.array(z.string()) });
export type JudgeRubric = z.infer<typeof judgeRubric>;

export const judgeThreshold = z.object({ pass: z.number(), warn: z.number().optional() });
export type JudgeThreshold = z.infer<typeof judgeThreshold>;

/** Scope: which complete traces are judged. An empty or absent list matches all. */
export const judgeScope = z.object({
  source_format: z.array(z.string()).optional(),
  agent_id: z.array(z.string()).optional(),
  tags: z.array(z.string()).optional(),
});
export type JudgeScope = z.infer<typeof judgeScope>;

/** What a judge does in the gateway with a text that fails its rule. */
export const GUARDS = ['block', 'redact'] as const;

/** One version of a judge. */
export const judgeRecord = z.object({
  org_id: z.string(),
  judge_id: z.string(),
  version: z.int().min(1),
  name: z.string(),
  kind: z.enum(JUDGE_KINDS),
  rule: judgeRule.nullable(),
  prompt_template: z.string().nullable(),
  model: z.string().nullable(),
  rubric: judgeRubric.nullable(),
  threshold: judgeThreshold,
  scope: judgeScope,
  /** LLM judges only: within this time, at most one of an agent's live traces is judged. */
  cooldown_seconds: z.int().min(0),
  enabled: z.boolean(),
  /** Deterministic judges only: the gateway applies the rule to calls before or after they are made. */
  guard: z.enum(GUARDS).optional(),
  /** Creation of version 1. */
  created_at: z.iso.datetime(),
  /** Creation of this version. */
  updated_at: z.iso.datetime(),
});
export type JudgeRecord = z.infer<typeof judgeRecord>;

/** Returns the key of the newest version of a judge. */
export const judgeKey = (org_id: string, judge_id: string): string => `${orgKey(org_id)}.${judge_id}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseJudge(text: string): JudgeRecord {
  return judgeRecord.parse(JSON.parse(text));
}

export type Verdict = 'pass' | 'warn' | 'fail' | 'error';

/**
 * Returns `pass` from threshold.pass upwards, `warn` from threshold.warn upwards, otherwise `fail`.
 */
export function verdictOf(score: number, { pass, warn }: JudgeThreshold): Exclude<Verdict, 'error'> {
  if (score >= pass) return 'pass';
  return warn !== undefined && score >= warn ? 'warn' : 'fail';
}

/**
 * Returns the limit below which a score is a breach: threshold.warn, or threshold.pass when no warn
 * is set.
 */
export function breachLimit({ pass, warn }: JudgeThreshold): number {
  return warn ?? pass;
}

/** Payload of judge.threshold_breach for a judgement. */
export interface Breach {
  event: 'judge.threshold_breach';
  judge_id: string;
  trace_id: string;
  score: number;
  /** The limit that the score is below. */
  threshold: number;
  severity: 'critical';
}

/**
 * Returns the breach that a score is, or null. Every score below the limit has failed, so the
 * severity is always critical.
 */
export function breachOf(
  { judge_id, threshold }: Pick<JudgeRecord, 'judge_id' | 'threshold'>,
  trace_id: string,
  score: number,
): Breach | null {
  const limit = breachLimit(threshold);
  return score < limit
    ? { event: 'judge.threshold_breach', judge_id, trace_id, score, threshold: limit, severity: 'critical' }
    : null;
}

/** Returns the key of an older version of a judge, in judge_versions. */
export const judgeVersionKey = (org_id: string, judge_id: string, version: number): string =>
  `${judgeKey(org_id, judge_id)}.${version}`;
