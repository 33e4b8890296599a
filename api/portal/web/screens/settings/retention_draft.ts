// The retention policy as a form holds it, what happens to data on which day, and when a change takes
// effect. Pure. Days and times are UTC.
import type { components } from '../../client/contract.d.ts';
import { parseLimit } from '../costs/amounts.ts';

export type Retention = components['schemas']['RetentionPolicy'];

const DAY_MS = 86_400_000;
/** The nightly run begins at 03:30. */
const RUN_MS = 3.5 * 3_600_000;

/** Returns the last nightly run before a moment, and the next one; milliseconds since the epoch. */
export function runsAround(now: number): { last: number; next: number } {
  const today = Math.floor(now / DAY_MS) * DAY_MS + RUN_MS;
  const last = today <= now ? today : today - DAY_MS;
  return { last, next: last + DAY_MS };
}

export const FIELDS = [
  { id: 'full', name: 'full_prompt_response_days', label: 'Texts to cold storage after', never: false },
  { id: 'metadata', name: 'metadata_only_days', label: 'Attributes dropped after', never: false },
  { id: 'telemetry', name: 'telemetry_events.delete_after_days', label: 'Traces deleted after', never: true },
  { id: 'scores', name: 'judge_scores.delete_after_days', label: 'Judge scores deleted after', never: true },
  { id: 'usage', name: 'usage_events.delete_after_days', label: 'Usage and costs deleted after', never: true },
  { id: 'audit', name: 'audit_log.delete_after_days', label: 'Audit log deleted after', never: true },
] as const;
export type FieldId = (typeof FIELDS)[number]['id'];
export type RetentionDraft = Record<FieldId, string>;

const written = (days: number | null): string => (days === null ? '' : String(days));

export function draftOf({ telemetry_events, judge_scores, usage_events, audit_log }: Retention): RetentionDraft {
  return {
    full: written(telemetry_events.full_prompt_response_days),
    metadata: written(telemetry_events.metadata_only_days),
    telemetry: written(telemetry_events.delete_after_days),
    scores: written(judge_scores.delete_after_days),
    usage: written(usage_events.delete_after_days),
    audit: written(audit_log.delete_after_days),
  };
}

/** Returns the policy of a draft, or the field that is no number of days. */
export function policyOf(draft: RetentionDraft): Retention | { wrong: FieldId } {
  const days = new Map<FieldId, number | null>();
  for (const { id, never } of FIELDS) {
    const value = parseLimit(draft[id]);
    if (value === undefined || value === 0 || (value === null && !never)) return { wrong: id };
    days.set(id, value);
  }
  const of = (id: FieldId): number | null => days.get(id) ?? null;
  return {
    telemetry_events: {
      full_prompt_response_days: of('full') ?? 0,
      metadata_only_days: of('metadata') ?? 0,
      delete_after_days: of('telemetry'),
    },
    judge_scores: { delete_after_days: of('scores') },
    usage_events: { delete_after_days: of('usage') },
    audit_log: { delete_after_days: of('audit') },
  };
}

interface Stage {
  /** What is kept in the stage. */
  kept: 'texts' | 'attributes' | 'numbers' | 'nothing';
  words: string;
  /** First day of the stage, counted from the day on which a span began. */
  from: number;
  /** Day on which the stage ends; null: never. */
  until: number | null;
}

/** Returns the stages of a span's data, from the day on which it began. */
export function stagesOf({ telemetry_events }: Retention): Stage[] {
  const { full_prompt_response_days: full, metadata_only_days: metadata, delete_after_days: end } = telemetry_events;
  const stages: Stage[] = [
    { kept: 'texts', words: 'Prompts, responses, attributes and numbers', from: 0, until: full },
    { kept: 'attributes', words: 'Texts in cold storage; attributes and numbers', from: full, until: metadata },
    { kept: 'numbers', words: 'Texts in cold storage; tokens, costs and scores', from: metadata, until: end },
    ...(end === null
      ? []
      : [{ kept: 'nothing' as const, words: 'Deleted, cold storage included', from: end, until: null }]),
  ];
  return stages.filter(({ from, until }) => until === null || until > from);
}

interface RetentionChange {
  changes: Record<string, unknown>;
}

/**
 * Returns the fields of the policy as they were before some changes, those that differ now; null for none.
 * @param changes the newest first
 */
export function before(changes: readonly RetentionChange[], now: Retention): Partial<Retention> | null {
  const fields: Record<string, unknown> = {};
  for (const { changes: of } of changes)
    for (const [name, change] of Object.entries(of))
      if (typeof change === 'object' && change !== null && 'from' in change) fields[name] = change.from;
  const differing = Object.entries(fields).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(now[name as keyof Retention]),
  );
  return differing.length === 0 ? null : Object.fromEntries(differing);
}
