// How long each org's data is kept, as stored in KV by org and as answered. Read by the API and by the pipeline.
// In: the text of a value, or fields to change. Out: every field, with the default where none was set; days in an order that holds.
import { z } from 'zod';

/** A hundred years: more than what the store can name as a day is of no meaning. */
export const RETENTION_DAYS_MAX = 36_500;

const days = z
  .int({ error: `takes a whole number of days, 1 to ${String(RETENTION_DAYS_MAX)}` })
  .min(1)
  .max(RETENTION_DAYS_MAX);
const deleteAfter = days.nullable();

const telemetryEvents = z.object({
  full_prompt_response_days: days.describe('After this, prompt and response go to cold storage; the row is kept'),
  metadata_only_days: days.describe(
    'After this, attributes are dropped as well; tokens, cost and judge scores are kept',
  ),
  delete_after_days: deleteAfter.describe('After this, spans, traces, texts and cold storage are deleted; null: never'),
});
const deletion = (what: string) =>
  z.object({ delete_after_days: deleteAfter.describe(`After this, ${what} are deleted; null: never`) });

export const retentionPolicy = z
  .object({
    telemetry_events: telemetryEvents,
    judge_scores: deletion('judge scores'),
    usage_events: z.object({
      delete_after_days: deleteAfter.describe(
        "After this, usage and costs are deleted, those of the budget's current period only once it is over; null: never",
      ),
    }),
    audit_log: deletion('records of the audit log'),
  })
  .meta({ id: 'RetentionPolicy' });
export type RetentionPolicy = z.infer<typeof retentionPolicy>;

/** What holds for an org that has set nothing. */
export const DEFAULT_RETENTION: RetentionPolicy = Object.freeze({
  telemetry_events: { full_prompt_response_days: 30, metadata_only_days: 365, delete_after_days: null },
  judge_scores: { delete_after_days: null },
  usage_events: { delete_after_days: 2555 },
  audit_log: { delete_after_days: 2555 },
});

const deletionChange = z.strictObject({ delete_after_days: days.nullish().describe('null: never') });

/** Fields to change. null is never for delete_after_days, and the default again for the others. */
export const retentionChange = z.strictObject({
  telemetry_events: z
    .strictObject({
      full_prompt_response_days: days.nullish().describe('null: the default'),
      metadata_only_days: days.nullish().describe('null: the default'),
      delete_after_days: days.nullish().describe('null: never'),
    })
    .optional(),
  judge_scores: deletionChange.optional(),
  usage_events: deletionChange.optional(),
  audit_log: deletionChange.optional(),
});
export type RetentionChange = z.infer<typeof retentionChange>;

const stored = z.object({
  telemetry_events: telemetryEvents.partial().optional(),
  judge_scores: z.object({ delete_after_days: deleteAfter }).partial().optional(),
  usage_events: z.object({ delete_after_days: deleteAfter }).partial().optional(),
  audit_log: z.object({ delete_after_days: deleteAfter }).partial().optional(),
});

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseRetention(text: string): RetentionPolicy {
  const { telemetry_events, judge_scores, usage_events, audit_log } = stored.parse(JSON.parse(text));
  return retentionPolicy.parse({
    telemetry_events: { ...DEFAULT_RETENTION.telemetry_events, ...telemetry_events },
    judge_scores: { ...DEFAULT_RETENTION.judge_scores, ...judge_scores },
    usage_events: { ...DEFAULT_RETENTION.usage_events, ...usage_events },
    audit_log: { ...DEFAULT_RETENTION.audit_log, ...audit_log },
  });
}

/** The policy with the change made; what it says has still to be checked, see retentionProblem. */
export function changedRetention(before: RetentionPolicy, change: RetentionChange): RetentionPolicy {
  const { telemetry_events: given = {} } = change;
  const { telemetry_events: old } = before;
  const standard = DEFAULT_RETENTION.telemetry_events;
  const daysOf = (key: 'full_prompt_response_days' | 'metadata_only_days'): number =>
    given[key] === undefined ? old[key] : (given[key] ?? standard[key]);
  const deletionOf = (key: 'judge_scores' | 'usage_events' | 'audit_log') => {
    const days = change[key]?.delete_after_days;
    return { delete_after_days: days === undefined ? before[key].delete_after_days : days };
  };
  return {
    telemetry_events: {
      full_prompt_response_days: daysOf('full_prompt_response_days'),
      metadata_only_days: daysOf('metadata_only_days'),
      delete_after_days: given.delete_after_days === undefined ? old.delete_after_days : given.delete_after_days,
    },
    judge_scores: deletionOf('judge_scores'),
    usage_events: deletionOf('usage_events'),
    audit_log: deletionOf('audit_log'),
  };
}

/** What is wrong with a policy, naming the field; null when delete ≥ metadata ≥ full holds. */
export function retentionProblem({ telemetry_events }: RetentionPolicy): string | null {
  const {
    full_prompt_response_days: full,
    metadata_only_days: metadata,
    delete_after_days: deletion,
  } = telemetry_events;
  if (metadata < full)
    return `telemetry_events.metadata_only_days: takes at least full_prompt_response_days (${String(full)}); got ${String(metadata)}`;
  if (deletion !== null && deletion < metadata)
    return `telemetry_events.delete_after_days: takes at least metadata_only_days (${String(metadata)}), or null; got ${String(deletion)}`;
  return null;
}
