// Prompt templates of an organization in KV: one record for each version of a prompt, which never
// changes, and one record for each prompt with its labels. The API reads them, and the workers that
// run a prompt over a dataset or a trace.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Maximum bytes of one template as JSON. */
export const TEMPLATE_BYTES_MAX = 64 * 1024;
const MESSAGES_MAX = 100;
const MODEL_CHARS_MAX = 256;
/** Maximum bytes of the settings of one version as JSON. */
const CONFIG_BYTES_MAX = 16 * 1024;
/** Maximum labels of one prompt, besides `latest`. */
export const LABELS_MAX = 20;
const TAGS_MAX = 20;
/** The label that always names the newest version. Nobody can move it. */
export const LATEST = 'latest';

/** Names contain no @: name@version names a version. */
export const promptName = z
  .string()
  .regex(/^[A-Za-z0-9_.:/-]{1,128}$/, { error: 'must be 1 to 128 of letters, digits, _ . : / -' });
export const promptVersion = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,64}$/, { error: 'must be 1 to 64 of letters, digits, _ . -' });
export const promptLabel = z
  .string()
  .regex(/^[a-z0-9_-]{1,36}$/, { error: 'must be 1 to 36 of lower-case letters, digits, _ -' });
export const promptModel = z.string().min(1).max(MODEL_CHARS_MAX);

const message = z.strictObject({ role: z.string().min(1).max(32), content: z.string() });
export type PromptMessage = z.infer<typeof message>;

/** A text, which is sent as one message of the user, or the messages of a chat. */
export const promptTemplate = z
  .union([z.string().min(1), z.array(message).min(1).max(MESSAGES_MAX)], {
    error: 'must be a text, or a list of messages {role, content}',
  })
  .refine((template) => Buffer.byteLength(JSON.stringify(template)) <= TEMPLATE_BYTES_MAX, {
    error: `must have at most ${TEMPLATE_BYTES_MAX} bytes`,
  });
export type PromptTemplate = z.infer<typeof promptTemplate>;

/** Settings that a client keeps with a version, such as a temperature. The service does not read them. */
export const promptConfig = z
  .record(z.string(), z.unknown())
  .refine((config) => Buffer.byteLength(JSON.stringify(config)) <= CONFIG_BYTES_MAX, {
    error: `must have at most ${CONFIG_BYTES_MAX} bytes`,
  });

/** Tags that clients of other systems keep with a prompt. */
export const promptTags = z.array(z.string().min(1).max(200)).max(TAGS_MAX);

/** Returns the kind of a template, as the API names it. */
export const templateType = (template: PromptTemplate): 'text' | 'chat' =>
  typeof template === 'string' ? 'text' : 'chat';

export const promptRecord = z.object({
  org_id: z.string(),
  name: promptName,
  version: promptVersion,
  template: promptTemplate,
  /** Model that the prompt is meant for; null leaves the choice to the caller. */
  model: promptModel.nullable(),
  /** Unset in records of versions without settings. */
  config: promptConfig.optional(),
  created_at: z.iso.datetime(),
});
export type PromptRecord = z.infer<typeof promptRecord>;

/** The labels and tags of one prompt. */
export const promptLabels = z.object({
  org_id: z.string(),
  name: promptName,
  /** The version that each label names. */
  labels: z.record(promptLabel, promptVersion),
  tags: promptTags,
});
export type PromptLabels = z.infer<typeof promptLabels>;

const encoded = (text: string): string => Buffer.from(text, 'utf8').toString('base64url');

/** Returns the key of one version. Names are encoded, as KV keys allow few characters. */
export const promptKey = (org_id: string, name: string, version: string): string =>
  `${orgKey(org_id)}.${encoded(name)}.${encoded(version)}`;

/** Returns the key of the labels of a prompt. */
export const promptLabelsKey = (org_id: string, name: string): string => `${orgKey(org_id)}.${encoded(name)}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parsePrompt(text: string): PromptRecord {
  return promptRecord.parse(JSON.parse(text));
}

/** Splits name@version or name@label; a name alone means its newest version. */
export function parsePromptRef(ref: string): { name: string; version: string | null } {
  const at = ref.lastIndexOf('@');
  return at === -1 ? { name: ref, version: null } : { name: ref.slice(0, at), version: ref.slice(at + 1) };
}
