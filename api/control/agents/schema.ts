// Shapes of the agent registry: what requests bring and what answers show.
import { z } from 'zod';
import { FRAMEWORKS } from '../../../schemas/records/agent.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { booleanParam } from '../../http/common_params.ts';
import { offsetQuery } from '../../http/pagination.ts';

const METADATA_BYTES_MAX = 16 * 1024;
const TAGS_MAX = 50;
/** Letters, digits, marks, punctuation, symbols and spaces of any script. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,128}$/u;

/** Whether an agent can have this id. */
export const isAgentId = (text: string): boolean => PRINTABLE.test(text);

const agentId = z
  .string()
  .regex(PRINTABLE, { error: 'takes 1 to 128 printable characters' })
  .refine(isAddressable, { error: NOT_ADDRESSABLE });
/** Checked by the handler, as an unknown one has an error code of its own. */
const framework = z.string().meta({ enum: [...FRAMEWORKS], description: 'What the agent is built with' });
const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= METADATA_BYTES_MAX, {
    error: `takes an object of at most ${String(METADATA_BYTES_MAX)} bytes of JSON`,
  });

export const agentParams = z.object({ org_id: z.string(), agent_id: z.string() });

export const registerBody = z.object({
  agent_id: agentId.optional().describe('Made by the server where it is left out'),
  name: z.string().trim().min(1).max(200),
  framework: framework.nullish(),
  version: z.string().max(128).nullish(),
  repo_url: z.string().max(2048).nullish(),
  register_token: z.string().min(1).max(256).optional().describe('Needed the first time; rt_…'),
  tags: z.array(z.string().min(1).max(128)).max(TAGS_MAX).optional(),
  metadata: metadata.optional(),
});
export type RegisterBody = z.infer<typeof registerBody>;

export const registeredAnswer = z
  .object({
    agent_id: z.string(),
    registered_at: z.iso.datetime().describe('Of the first registration'),
    is_new: z.boolean(),
  })
  .meta({ id: 'AgentRegistration' });

export const madeTokenAnswer = z
  .object({
    register_token: z.string().describe('Shown this once; only its hash is kept'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'RegisterToken' });

export const listQuery = z.object({
  framework: framework.optional(),
  name: z.string().max(200).optional().describe('Substring of the name, whatever the case'),
  archived: booleanParam
    .default(false)
    .meta({ type: 'boolean', default: false, description: 'Whether archived agents are listed too' }),
  ...offsetQuery,
});
export type ListQuery = z.infer<typeof listQuery>;

export const agentRow = z
  .object({
    agent_id: z.string(),
    name: z.string(),
    framework: z.enum(FRAMEWORKS).nullable(),
    version: z.string().nullable(),
    repo_url: z.string().nullable(),
    registered_at: z.iso.datetime(),
    last_seen_at: z.iso
      .datetime()
      .nullable()
      .describe('When an event of it was received last; follows within 60 seconds'),
    tags: z.array(z.string()),
    metadata: z.record(z.string(), z.unknown()),
    status: z.enum(['registered', 'archived', 'deprecated']),
    archived_at: z.iso.datetime().nullable(),
    deprecated_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Agent' });
export type AgentRow = z.infer<typeof agentRow>;

export const deletedAgent = z.object({ agent_id: z.string(), deleted: z.literal(true) });
