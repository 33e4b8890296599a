// Request and response shapes of monitors. The names of measures, dimensions and fields are checked by
// sql/analytics/check.ts, because they depend on the view.
import { z } from 'zod';
import {
  MONITOR_RESOLUTIONS,
  MONITOR_SEVERITIES,
  MONITOR_STATES,
  type MonitorRecord,
  monitorThreshold,
} from '../../../schemas/records/monitor.ts';
import { AGGS, VIEWS } from '../../../sql/analytics/catalog.ts';
import { FILTER_OPS } from '../../../sql/attribute_path.ts';
import { offsetQuery } from '../../http/pagination.ts';

const NAME_CHARS_MAX = 100;
const FIELD_CHARS_MAX = 300;
const VALUE_CHARS_MAX = 1024;
const VALUES_MAX = 100;
const FILTERS_MAX = 10;
const CHANNELS_MAX = 5;
const ADDRESSES_MAX = 10;
const ADDRESS_CHARS_MAX = 254;
const MINUTES_MAX = 1440;

const filterValue = z.union([z.string().max(VALUE_CHARS_MAX), z.number(), z.boolean()], {
  error: `must be a text of up to ${VALUE_CHARS_MAX} characters, a number, true or false`,
});
const dimensions = z
  .array(z.string().max(64), { error: 'must be a list with the name of one dimension, or empty' })
  .max(1, { error: 'must have at most one dimension' });
const monitoredQuery = z.object({
  view: z
    .enum(VIEWS)
    .exclude(['usage'], { error: 'must be spans, traces or scores; the view usage counts days' })
    .describe('`spans`, `traces` or `scores`'),
  measures: z
    .array(
      z.object({
        measure: z.string().max(64).describe('A measure of the view'),
        agg: z
          .enum(AGGS)
          .exclude(['histogram'], { error: 'must give one number; a histogram gives many' })
          .optional()
          .describe('The first aggregation of the measure unless given'),
      }),
      { error: 'must be a list with one measure' },
    )
    .length(1, { error: 'must have exactly one measure' }),
  group_by: dimensions.optional(),
  filters: z
    .array(
      z.object({
        field: z.string().max(FIELD_CHARS_MAX),
        op: z.enum(FILTER_OPS).default('eq'),
        value: z
          .union([filterValue, z.array(filterValue).min(1).max(VALUES_MAX)], {
            error: `must be a text, a number, true or false; with in and not_in a list of 1 to ${VALUES_MAX} of them`,
          })
          .default(true),
      }),
    )
    .max(FILTERS_MAX, { error: `must have at most ${FILTERS_MAX} filters` })
    .default([]),
  granularity: z.undefined({ error: 'must be left out: a monitor evaluates its whole window as one value' }).optional(),
});

const threshold = z
  .object({ above: z.number().optional(), below: z.number().optional() })
  .refine(({ above, below }) => (above === undefined) !== (below === undefined), {
    error: 'must have one of above and below, a number',
  })
  .transform(({ above, below }) => (above === undefined ? { below: below ?? 0 } : { above }))
  .pipe(monitorThreshold)
  .describe('The monitor alerts when the value is above `above`, or below `below`');

const address = z.email({ error: 'must be an email address' }).max(ADDRESS_CHARS_MAX);
const channel = z.discriminatedUnion(
  'type',
  [
    z.strictObject({
      type: z.literal('webhook'),
      webhook_id: z
        .string()
        .optional()
        .describe(
          'An endpoint of the organization, subscribed to the events or not. Unless given, the subscribed ones',
        ),
    }),
    z.strictObject({
      type: z.literal('email'),
      to: z
        .preprocess(
          (value) => (typeof value === 'string' ? [value] : value),
          z.array(address).min(1).max(ADDRESSES_MAX),
        )
        .optional()
        .describe(`1 to ${ADDRESSES_MAX} addresses; the owner of the organization unless given`),
    }),
  ],
  { error: 'must be {type: "webhook"} or {type: "email"}' },
);

const minutes = (min: number) =>
  z
    .int({ error: `must be an integer between ${min} and ${MINUTES_MAX}` })
    .min(min)
    .max(MINUTES_MAX);
const fields = {
  name: z.string().trim().min(1).max(NAME_CHARS_MAX),
  query: monitoredQuery.describe(
    'An analytics query with one measure and without granularity. `since` and `until` are ignored: the window decides',
  ),
  group_by: dimensions.describe(
    'A dimension of the view: each of its values has a state of its own. Same as query.group_by',
  ),
  window_minutes: minutes(1).describe('Length of the time up to now that is measured'),
  threshold,
  for_minutes: minutes(0).describe('How long the value must be past the threshold before the monitor alerts'),
  channels: z.array(channel).max(CHANNELS_MAX).describe('Receivers besides the endpoints that subscribe to the events'),
  severity: z.enum(MONITOR_SEVERITIES),
  enabled: z.boolean(),
  muted_until: z.iso
    .datetime({ offset: true, error: 'must be a time in ISO 8601, or null' })
    .transform((text) => new Date(text).toISOString())
    .nullable()
    .describe(
      'Until then nobody is notified of new alerts. The monitor is evaluated, and what still alerts afterwards is reported then',
    ),
};

export const createBody = z.strictObject({
  ...fields,
  group_by: fields.group_by.optional(),
  for_minutes: fields.for_minutes.default(0),
  channels: fields.channels.default([]),
  severity: fields.severity.default('warning'),
  enabled: fields.enabled.default(true),
  muted_until: fields.muted_until.default(null),
});
export type CreateBody = z.output<typeof createBody>;

export const patchBody = z.strictObject(fields).partial();
export type PatchBody = z.output<typeof patchBody>;

export const listQuery = z.object({
  ...offsetQuery,
  state: z.enum([...MONITOR_STATES, 'error', 'disabled']).optional(),
});
export type ListQuery = z.output<typeof listQuery>;

export const monitorParams = z.object({ monitor_id: z.string() });

export const monitorItem = z
  .object({
    monitor_id: z.string(),
    name: z.string(),
    query: z.object({
      view: z.string(),
      measures: z.array(z.object({ measure: z.string(), agg: z.string() })),
      group_by: z.array(z.string()),
      filters: z.array(z.object({ field: z.string(), op: z.string(), value: z.unknown() })),
    }),
    group_by: z.array(z.string()),
    window_minutes: z.int(),
    threshold: monitorThreshold,
    for_minutes: z.int(),
    channels: z.array(z.looseObject({ type: z.enum(['webhook', 'email']) })),
    severity: z.enum(MONITOR_SEVERITIES),
    enabled: z.boolean(),
    muted_until: z.iso.datetime().nullable().describe('null when the monitor is not muted'),
    state: z
      .enum([...MONITOR_STATES, 'error', 'disabled'])
      .describe('alerting when any group is; error when the monitor cannot be evaluated'),
    error: z.string().nullable().describe('Why the monitor cannot be evaluated; null when it can'),
    evaluated_at: z.iso.datetime().nullable().describe('null before the first evaluation'),
    groups: z
      .array(
        z.object({
          group: z.record(z.string(), z.string()).describe('Dimension and value; empty without group_by'),
          state: z.enum(MONITOR_STATES),
          value: z.number().nullable().describe('null when there is no data'),
          since: z.iso.datetime().describe('Start of the state'),
        }),
      )
      .describe('Groups that alert first'),
    truncated: z.boolean().describe('True when there are more groups than the 100 most extreme, which are evaluated'),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Monitor' });
export type MonitorItem = z.infer<typeof monitorItem>;

export const monitorChange = z.object({
  event: z.enum(['monitor.alerting', 'monitor.resolved']),
  group: z.record(z.string(), z.string()).describe('Dimension and value; empty without group_by'),
  value: z.number().nullable().describe('null when there was no data'),
  reason: z.enum(MONITOR_RESOLUTIONS).nullable().describe('Why the alert ended; null for an alert'),
  at: z.iso.datetime(),
  notified: z.boolean().describe('False for a change that a muted monitor did not report'),
});

const HOURS_MAX = 168;
const HOURS_DEFAULT = 24;

export const previewBody = z.strictObject({
  query: fields.query,
  group_by: fields.group_by.optional(),
  window_minutes: fields.window_minutes,
  threshold,
  for_minutes: fields.for_minutes.default(0),
  hours: z
    .int({ error: `must be an integer between 1 and ${HOURS_MAX}` })
    .min(1)
    .max(HOURS_MAX)
    .default(HOURS_DEFAULT)
    .describe('Length of the past that is evaluated'),
});
export type PreviewBody = z.output<typeof previewBody>;

export const monitorPreview = z
  .object({
    since: z.iso.datetime().describe('First evaluation'),
    until: z.iso.datetime().describe('Last evaluation'),
    step_minutes: z.int().describe('Minutes between two evaluations; a stored monitor is evaluated every minute'),
    groups: z
      .array(
        z.object({
          group: z.record(z.string(), z.string()).describe('Dimension and value; empty without group_by'),
          values: z.array(z.number().nullable()).describe('Value at each evaluation; null without data'),
        }),
      )
      .describe('The most extreme groups, at most 10'),
    truncated: z.boolean().describe('True when there are more groups'),
    alerts: z.array(
      z.object({
        group: z.record(z.string(), z.string()),
        from: z.iso.datetime(),
        until: z.iso.datetime().nullable().describe('null when the group alerts at the last evaluation'),
        value: z.number().nullable().describe('Value at which the alert begins'),
      }),
    ),
  })
  .meta({ id: 'MonitorPreview' });
export type MonitorPreview = z.infer<typeof monitorPreview>;

export const deletedMonitor = z.object({ monitor_id: z.string(), deleted: z.literal(true) });

/** Fields of a definition that a request sets, as the record holds them. */
export type Definition = Pick<
  MonitorRecord,
  | 'name'
  | 'query'
  | 'group_by'
  | 'window_minutes'
  | 'threshold'
  | 'for_minutes'
  | 'channels'
  | 'severity'
  | 'enabled'
  | 'muted_until'
>;
