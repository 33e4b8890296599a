// Policy by which an organization's telemetry is redacted before it is stored, as stored in KV and
// as answered. The API writes it; the pipeline and exports read it.
import { z } from 'zod';

export const PII_KINDS = ['email', 'phone', 'card', 'ip', 'ssn'] as const;
export type PiiKind = (typeof PII_KINDS)[number];

export const CUSTOM_PATTERNS_MAX = 20;
export const CUSTOM_PATTERN_CHARS_MAX = 500;

const customPattern = z.strictObject({
  label: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,32}$/, { error: 'must be 1 to 32 letters, digits, _ and -' })
    .describe('Text that replaces a match, in brackets'),
  pattern: z
    .string()
    .min(1)
    .max(CUSTOM_PATTERN_CHARS_MAX)
    .describe(
      'A regular expression in the syntax of RE2: no look-around and no back-references; (?i) in front for any case. At most 500 instructions once its repetitions are written out: a{1,20} has 41',
    ),
});
export type CustomPattern = z.infer<typeof customPattern>;

const fields = {
  enabled: z.boolean().describe('Whether events are redacted before they are stored'),
  kinds: z
    .array(z.enum(PII_KINDS))
    .max(50)
    .overwrite((kinds) => PII_KINDS.filter((kind) => kinds.includes(kind)))
    .describe('Kinds of personal data that are redacted'),
  custom: z
    .array(customPattern)
    .max(CUSTOM_PATTERNS_MAX)
    .describe('Further patterns that are redacted, each with a label of its own'),
  mode: z
    .enum(['redact', 'hash'])
    .describe(
      'redact: [EMAIL] stands for every address. hash: [EMAIL:…] with a keyed hash, the same for the same address within the org',
    ),
};

export const piiPolicy = z.object(fields).meta({ id: 'PiiPolicy' });
export type PiiPolicy = z.infer<typeof piiPolicy>;

/**
 * Policy of an organization that has set none. An export that is to be anonymized redacts all
 * kinds.
 */
export const DEFAULT_PII_POLICY: PiiPolicy = Object.freeze({
  enabled: false,
  kinds: [...PII_KINDS],
  custom: [],
  mode: 'redact',
});

/** Fields to change; null resets a field to its default. */
export const piiPolicyChange = z.strictObject({
  enabled: fields.enabled.nullish(),
  kinds: fields.kinds.nullish(),
  custom: fields.custom.nullish(),
  mode: fields.mode.nullish(),
});
export type PiiPolicyChange = z.output<typeof piiPolicyChange>;

const piiRecord = piiPolicy.extend({
  /**
   * Key of the organization's hashes, sealed; created when hashes are first requested, and kept
   * from then on.
   */
  hash_key: z.string().nullable(),
});
export type PiiRecord = z.infer<typeof piiRecord>;

/** Returns the sealing context of hash_key: it opens in no other. */
export const hashKeyContext = (org_id: string): string => `pii hash key of ${org_id}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parsePiiRecord(text: string): PiiRecord {
  return piiRecord.parse(JSON.parse(text));
}

/** Returns the policy with a change applied. */
export function changedPiiPolicy(before: PiiPolicy, change: PiiPolicyChange): PiiPolicy {
  const next = <K extends keyof PiiPolicy>(name: K): PiiPolicy[K] => {
    const given = change[name] as PiiPolicy[K] | null | undefined;
    return given === undefined ? before[name] : (given ?? DEFAULT_PII_POLICY[name]);
  };
  return { enabled: next('enabled'), kinds: next('kinds'), custom: next('custom'), mode: next('mode') };
}
