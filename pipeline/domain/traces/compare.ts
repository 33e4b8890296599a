// Compares two traces field by field. In: what is known of each, and the change in percent from
// which numbers differ. Out: one row a field. Pure.

/** Fields compared as numbers. */
const NUMBERS = ['duration_ms', 'cost_usd', 'input_tokens', 'output_tokens', 'spans'] as const;
/** Fields compared for equality. */
const VALUES = ['outcome', 'agent_id', 'root_span_name', 'models', 'tags', 'prompt', 'response'] as const;
const SCORE = 'judge_score';
const ONE_JUDGE = `${SCORE}.`;

/** The fields compared by default: all except the texts. */
export const DEFAULT_FIELDS: readonly string[] = [
  ...NUMBERS,
  SCORE,
  ...VALUES.filter((field) => field !== 'prompt' && field !== 'response'),
];
export const COMPARE_FIELDS: readonly string[] = [...NUMBERS, SCORE, ...VALUES];

/** One trace of a comparison. Lists are sorted, as their order means nothing. */
export interface ComparedTrace {
  duration_ms: number;
  cost_usd: number;
  input_tokens: number;
  output_tokens: number;
  spans: number;
  outcome: string;
  agent_id: string | null;
  root_span_name: string | null;
  models: string[];
  tags: string[];
  /** Null when no text is stored, or none was requested. */
  prompt: string | null;
  response: string | null;
  /** Scores of the judges of live traffic. */
  scores: readonly { judge_id: string; judge_name: string; score: number }[];
}

type Value = number | string | string[] | null;

export interface ComparedField {
  field: string;
  baseline: Value;
  candidate: Value;
  /** candidate - baseline; null when either is not a number. */
  delta: number | null;
  /** delta in percent of the baseline; null when that is 0 and the candidate is not. */
  delta_percent: number | null;
  differs: boolean;
}

/** judge_score.<name> is the score of one judge, by its name or id. */
export function isCompareField(field: string): boolean {
  return COMPARE_FIELDS.includes(field) || (field.startsWith(ONE_JUDGE) && field.length > ONE_JUDGE.length);
}

/** @param fields names that isCompareField accepts */
export function compareTraces(
  baseline: ComparedTrace,
  candidate: ComparedTrace,
  fields: readonly string[],
  thresholdPercent: number,
): ComparedField[] {
  return fields.map((field) => {
    const [before, after] = [valueOf(baseline, field), valueOf(candidate, field)];
    return { field, baseline: before, candidate: after, ...difference(before, after, thresholdPercent) };
  });
}

/**
 * Two numbers differ when the change exceeds the threshold, other values when they are not equal.
 */
export function difference(
  baseline: Value,
  candidate: Value,
  thresholdPercent: number,
): Pick<ComparedField, 'delta' | 'delta_percent' | 'differs'> {
  if (typeof baseline !== 'number' || typeof candidate !== 'number')
    return { delta: null, delta_percent: null, differs: JSON.stringify(baseline) !== JSON.stringify(candidate) };
  const delta = rounded(candidate - baseline);
  if (baseline === 0) return { delta, delta_percent: candidate === 0 ? 0 : null, differs: candidate !== 0 };
  const delta_percent = rounded((100 * (candidate - baseline)) / Math.abs(baseline));
  return { delta, delta_percent, differs: Math.abs(delta_percent) > thresholdPercent };
}

function valueOf(trace: ComparedTrace, field: string): Value {
  if (field === SCORE) return mean(trace.scores);
  if (!field.startsWith(ONE_JUDGE)) return trace[field as keyof Omit<ComparedTrace, 'scores'>];
  const judge = field.slice(ONE_JUDGE.length);
  return mean(trace.scores.filter(({ judge_id, judge_name }) => judge_id === judge || judge_name === judge));
}

/** Returns the mean score; null without scores. */
function mean(scores: ComparedTrace['scores']): number | null {
  return scores.length === 0 ? null : rounded(scores.reduce((sum, { score }) => sum + score, 0) / scores.length);
}

/**
 * Rounds to 12 significant digits, beyond which doubles that stand for decimals show rounding
 * errors.
 */
const rounded = (value: number): number => Number(value.toPrecision(12)) + 0;
