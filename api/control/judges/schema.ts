// Request and response shapes of judges. The rubric is checked separately, since it has its own
// error code.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { FIELD_NAMES } from '../../../pipeline/domain/judging/fields.ts';
import {
  GUARDS,
  JUDGE_KINDS,
  judgeRubric,
  judgeScope,
  judgeThreshold,
  RULE_TYPES,
} from '../../../schemas/records/judge.ts';
import { booleanParam } from '../../http/common_params.ts';
import { cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';

const NAME_CHARS_MAX = 200;
const TEMPLATE_CHARS_MAX = 50_000;
const VALUE_CHARS_MAX = 10_000;
const FIELDS_MAX = 20;
const LIST_MAX = 100;
const LABEL_CHARS_MAX = 512;
const CRITERIA_MAX = 50;
const CRITERION_CHARS_MAX = 2000;
const COOLDOWN_SECONDS_MAX = 30 * 24 * 3600;

const label = z.string().min(1).max(LABEL_CHARS_MAX);
const labels = z.array(label).max(LIST_MAX);

const rule = z
  .strictObject({
    type: z
      .enum(RULE_TYPES)
      .describe(
        'With several fields, regex_absent, not_contains, json_valid, json_schema and max_length must hold for all of them; regex_present, contains and equals for any of them',
      ),
    fields: z
      .array(label)
      .min(1)
      .max(FIELDS_MAX)
      .nullish()
      .describe(
        `Fields that the rule reads, of ${FIELD_NAMES.join(', ')}. Defaults to [response]. A field that a trace lacks is an empty text. max_duration_ms, max_cost_usd and outcome_is always read their own field`,
      ),
    pattern: z
      .string()
      .min(1)
      .optional()
      .describe(
        'For regex_absent and regex_present. A regular expression in RE2 syntax, without look-around and back-references, of at most 1000 instructions with its repetitions expanded. If the rules of the organization take too long on a trace, the rules that have not finished get the verdict error',
      ),
    value: z.string().max(VALUE_CHARS_MAX).optional().describe('For contains, not_contains and equals'),
    schema: z
      .union([z.record(z.string(), z.unknown()), z.boolean()])
      .optional()
      .describe(
        'For json_schema. A JSON schema of draft 2020-12, or of draft-07 if $schema says so, without references',
      ),
    max: z.number().min(0).optional().describe('For max_length (characters), max_duration_ms and max_cost_usd'),
    outcomes: z.array(outcome).min(1).max(3).optional().describe('outcome_is'),
  })
  .describe('Rule of a deterministic judge, which scores 1 or 0. Takes exactly the parameter of its type');

const rubric = z.unknown().meta({
  description:
    'scale: at least two rising numbers; criteria: at least one text. Anything else returns 422 invalid_rubric',
});

/** Shape that a rubric must have. */
export const rubricShape = z.strictObject({
  scale: z
    .array(z.number())
    .min(2, { error: 'must have at least two numbers' })
    .max(LIST_MAX)
    .refine((scale) => scale.every((value, index) => index === 0 || value > (scale[index - 1] ?? -Infinity)), {
      error: 'must be rising numbers',
    }),
  criteria: z
    .array(z.string().trim().min(1).max(CRITERION_CHARS_MAX))
    .min(1, { error: 'must have at least one text' })
    .max(CRITERIA_MAX),
});

const threshold = z
  .strictObject({ pass: z.number(), warn: z.number().nullish() })
  .refine(({ pass, warn }) => warn == null || warn <= pass, {
    path: ['warn'],
    error: 'must be a number up to threshold.pass',
  })
  .describe(
    "A score of at least pass has the verdict pass, of at least warn the verdict warn, any other score fail. Both lie on the judge's scale: from the first to the last number of rubric.scale, or from 0 to 1 for a deterministic judge",
  );
const scope = z
  .strictObject({ source_format: labels.nullish(), agent_id: labels.nullish(), tags: labels.nullish() })
  .describe(
    'Complete traces that are judged. An empty or missing list matches all traces; tags matches any of its tags',
  );

const name = z.string().trim().min(1).max(NAME_CHARS_MAX);
const template = z
  .string()
  .min(1)
  .max(TEMPLATE_CHARS_MAX)
  .describe(
    'Template of the prompt. Variables: {{prompt}}, {{response}}, {{criteria}}, {{scale}}, {{trace_id}}; in dataset runs also {{input}} and {{expected}}',
  );
const cooldown = z
  .int()
  .min(0)
  .max(COOLDOWN_SECONDS_MAX)
  .describe('Minimum seconds between two live judgements of the same agent');

const common = {
  name,
  threshold,
  scope: scope.nullish(),
  enabled: z.boolean().nullish().describe('Whether the judge scores live traffic. Defaults to true'),
};
const guard = z
  .enum(GUARDS)
  .nullable()
  .describe(
    'The gateway applies the rule to prompts before a call (field prompt) and to responses after it (field response). block: the caller gets 403 naming the judge. redact, for regex_absent and not_contains: matches are replaced by [REDACTED]; a streamed response with a match is blocked. Streams are held until they are checked. null: the judge guards nothing',
  );
const deterministic = z.strictObject({ kind: z.literal('deterministic'), ...common, rule, guard: guard.optional() });
const llm = z.strictObject({
  kind: z.literal('llm'),
  ...common,
  prompt_template: template,
  model: label,
  rubric: rubric.optional(),
  cooldown_seconds: cooldown.nullish(),
});

export const createBody = z.discriminatedUnion('kind', [deterministic, llm]);
export type CreateBody = z.output<typeof createBody>;

/** Changes of a judge: a field that is given replaces the stored one as a whole. */
export const patchBody = z.strictObject({
  name: name.optional(),
  threshold: threshold.optional(),
  scope: scope.nullish().describe('null: all traces'),
  enabled: z.boolean().optional(),
  rule: rule.optional(),
  guard: guard.optional(),
  prompt_template: template.optional(),
  model: label.optional(),
  rubric: rubric.optional(),
  cooldown_seconds: cooldown.optional(),
});
export type PatchBody = z.output<typeof patchBody>;
export type RuleBody = z.output<typeof rule>;

export const listQuery = z.object({
  ...cursorQuery(),
  name: z.string().min(1).optional().describe('Judges whose name contains this text, ignoring case'),
  kind: z.enum(JUDGE_KINDS).optional().describe('Judges of this kind only'),
  enabled: booleanParam.optional().describe('true lists enabled judges only, false disabled ones only'),
});
export type ListQuery = z.output<typeof listQuery>;

export const judgeParams = z.object({ judge_id: z.string() });

export const createdJudge = z.object({ judge_id: z.string(), version: z.int(), created_at: z.iso.datetime() });

export const judgeItem = z
  .object({
    judge_id: z.string(),
    version: z.int().describe('Rises with every change. Scores keep the version that gave them'),
    name: z.string(),
    kind: z.enum(JUDGE_KINDS),
    rule: z.record(z.string(), z.unknown()).nullable().describe('null for LLM judges'),
    prompt_template: z.string().nullable().describe('null for deterministic judges, as are model and rubric'),
    model: z.string().nullable(),
    rubric: judgeRubric.nullable(),
    threshold: judgeThreshold,
    scope: judgeScope,
    cooldown_seconds: z.int(),
    enabled: z.boolean(),
    guard: z.enum(GUARDS).nullable(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime().describe('When this version was created'),
  })
  .meta({ id: 'Judge' });
export type JudgeItem = z.infer<typeof judgeItem>;

export const deletedJudge = z.object({ judge_id: z.string(), deleted: z.literal(true) });

/** Position after which a page begins: a judge. It is stable while judges are created. */
export interface JudgePlace {
  created_at: string;
  judge_id: string;
  /** Number of judges before the page. */
  before: number;
}

const placeTuple = z.tuple([z.iso.datetime(), z.string().regex(/^judge_[0-9a-f]{16}$/), z.int().min(0)]);

export function cursorOf({ created_at, judge_id, before }: JudgePlace): string {
  return encodeCursor([created_at, judge_id, before]);
}

/** @throws ApiError invalid_request for a cursor that this list did not return */
export function placeOf(cursor: string): JudgePlace {
  const [created_at, judge_id, before] = decodeCursor(cursor, placeTuple);
  return { created_at, judge_id, before };
}
