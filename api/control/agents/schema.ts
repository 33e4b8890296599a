// Request and response shapes of the agent registry.
import { z } from 'zod';
import { FRAMEWORKS } from '../../../schemas/records/agent.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { booleanParam } from '../../http/common_params.ts';
import { offsetQuery } from '../../http/pagination.ts';

const METADATA_BYTES_MAX = 16 * 1024;
const TAGS_MAX = 50;
/** Letters, digits, marks, punctuation, symbols and spaces of any script. */
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,128}$/u;

/** Returns whether a text is a valid agent id: 1 to 128 printable characters. */
export const isAgentId = (text: string): boolean => PRINTABLE.test(text);

const agentId = z
  .string()
  .regex(PRINTABLE, { error: 'must be 1 to 128 printable characters' })
  .refine(isAddressable, { error: NOT_ADDRESSABLE });
/** A plain string, since the handler checks it: an unknown framework has its own error code. */
const framework = z.string().meta({ enum: [...FRAMEWORKS], description: 'Framework that the agent is built with' });
const metadata = z
  .record(z.string(), z.unknown())
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= METADATA_BYTES_MAX, {
    error: `must be an object of at most ${METADATA_BYTES_MAX} bytes of JSON`,
  });

export const agentParams = z.object({ org_id: z.string(), agent_id: z.string() });

export const registerBody = z.object({
  agent_id: agentId.optional().describe('Derived from register_token if left out'),
  name: z.string().trim().min(1).max(200),
  framework: framework.nullish(),
  version: z.string().max(128).nullish(),
  repo_url: z.string().max(2048).nullish(),
  register_token: z.string().min(1).max(256).optional().describe('Required for the first registration; rt_…'),
  tags: z.array(z.string().min(1).max(128)).max(TAGS_MAX).optional(),
  metadata: metadata.optional(),
});
export type RegisterBody = z.infer<typeof registerBody>;

export const registeredAnswer = z
  .object({
    agent_id: z.string(),
    registered_at: z.iso.datetime().describe('Time of the first registration'),
    is_new: z.boolean(),
  })
  .meta({ id: 'AgentRegistration' });

export const madeTokenAnswer = z
  .object({
    register_token: z.string().describe('Shown in this response only; the service stores its hash'),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'RegisterToken' });

export const listQuery = z.object({
  framework: framework.optional(),
  name: z.string().max(200).optional().describe('Agents whose name contains this text, ignoring case'),
  archived: booleanParam
    .default(false)
    .meta({ type: 'boolean', default: false, description: 'Whether the list includes archived agents' }),
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
      .describe('When the last event of the agent was received. Follows within 60 seconds; null if none was'),
    tags: z.array(z.string()),
    metadata: z.record(z.string(), z.unknown()),
    status: z.enum(['registered', 'archived', 'deprecated']),
    archived_at: z.iso.datetime().nullable(),
    deprecated_at: z.iso.datetime().nullable(),
    deprecates_at: z.iso
      .datetime()
      .nullable()
      .describe(
        'When drift detection deprecates the agent unless it registers or sends an event; null unless registered',
      ),
  })
  .meta({ id: 'Agent' });
export type AgentRow = z.infer<typeof agentRow>;

/** Longest time of the unregistered senders, in days. */
const SENDERS_DAYS_MAX = 90;
const SENDERS_DAYS_DEFAULT = 7;
const DAYS_RULE = { error: `must be an integer between 1 and ${SENDERS_DAYS_MAX}` };
/** Maximum senders of one answer. */
export const SENDERS_MAX = 200;

export const sendersQuery = z.object({
  days: z
    .string()
    .regex(/^\d{1,2}$/, DAYS_RULE)
    .transform(Number)
    .pipe(z.int().min(1, DAYS_RULE).max(SENDERS_DAYS_MAX, DAYS_RULE))
    .default(SENDERS_DAYS_DEFAULT)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: SENDERS_DAYS_MAX,
      default: SENDERS_DAYS_DEFAULT,
      description: 'Senders of the last days',
    }),
});
export const unregisteredSender = z
  .object({ agent_id: z.string(), last_seen_at: z.iso.datetime() })
  .meta({ id: 'UnregisteredSender' });
export const sendersMeta = z.object({
  truncated: z.boolean().describe(`True when more than ${SENDERS_MAX} senders are not registered`),
});

export const deletedAgent = z.object({ agent_id: z.string(), deleted: z.literal(true) });
