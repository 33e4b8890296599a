// Retention policy of an organization: how long its data is kept, as stored in KV and as answered.
// A parsed record has every field, with its default where none was set.
import { z } from 'zod';

/** A hundred years: the store's dates do not reach further. */
export const RETENTION_DAYS_MAX = 36_500;

const days = z
  .int({ error: `must be a whole number of days, 1 to ${RETENTION_DAYS_MAX}` })
  .min(1)
  .max(RETENTION_DAYS_MAX);
const deleteAfter = days.nullable();

const telemetryEvents = z.object({
  full_prompt_response_days: days.describe(
    'Days after which prompt and response move to cold storage; the row is kept',
  ),
  metadata_only_days: days.describe(
    'Days after which attributes are dropped as well; tokens, cost and judge scores are kept',
  ),
  delete_after_days: deleteAfter.describe(
    'Days after which spans, traces, texts and cold storage are deleted; null: never',
  ),
});
const deletion = (what: string) =>
  z.object({ delete_after_days: deleteAfter.describe(`Days after which ${what} are deleted; null: never`) });

export const retentionPolicy = z
  .object({
    telemetry_events: telemetryEvents,
    judge_scores: deletion('judge scores'),
    usage_events: z.object({
      delete_after_days: deleteAfter.describe(
        "Days after which usage and costs are deleted, those of the budget's current period only once it is over; null: never",
      ),
    }),
    audit_log: deletion('records of the audit log'),
  })
  .meta({ id: 'RetentionPolicy' });
export type RetentionPolicy = z.infer<typeof retentionPolicy>;

/** Policy of an organization that has set none. */
export const DEFAULT_RETENTION: RetentionPolicy = Object.freeze({
  telemetry_events: { full_prompt_response_days: 30, metadata_only_days: 365, delete_after_days: null },
  judge_scores: { delete_after_days: null },
  usage_events: { delete_after_days: 2555 },
  audit_log: { delete_after_days: 2555 },
});

const deletionChange = z.strictObject({ delete_after_days: days.nullish().describe('null: never') });

/**
 * Fields to change. null means never for delete_after_days, and resets the others to their default.
 */
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

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseRetention(text: string): RetentionPolicy {
  const { telemetry_events, judge_scores, usage_events, audit_log } = stored.parse(JSON.parse(text));
  return retentionPolicy.parse({
    telemetry_events: { ...DEFAULT_RETENTION.telemetry_events, ...telemetry_events },
    judge_scores: { ...DEFAULT_RETENTION.judge_scores, ...judge_scores },
    usage_events: { ...DEFAULT_RETENTION.usage_events, ...usage_events },
    audit_log: { ...DEFAULT_RETENTION.audit_log, ...audit_log },
  });
}

/**
 * Returns the policy with a change applied. The result is still to be checked by retentionProblem.
 */
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

/**
 * Returns what is wrong with a policy, naming the field; null when delete ≥ metadata ≥ full holds.
 */
export function retentionProblem({ telemetry_events }: RetentionPolicy): string | null {
  const {
    full_prompt_response_days: full,
    metadata_only_days: metadata,
    delete_after_days: deletion,
  } = telemetry_events;
  if (metadata < full)
    return `telemetry_events.metadata_only_days: must be at least full_prompt_response_days (${full}); got ${metadata}`;
  if (deletion !== null && deletion < metadata)
    return `telemetry_events.delete_after_days: must be at least metadata_only_days (${metadata}), or null; got ${deletion}`;
  return null;
}
