// Record of an agent in KV and its key. The API writes registrations; jobs of the pipeline mark
// agents that fell silent.
import { z } from 'zod';

/** Frameworks that an agent may say it is built with. */
export const FRAMEWORKS = ['chatcompletion', 'messages', 'chain', 'custom', 'app', 'otlp', 'mcp'] as const;
export type Framework = (typeof FRAMEWORKS)[number];

export const agentRecord = z.object({
  org_id: z.string(),
  agent_id: z.string(),
  name: z.string(),
  framework: z.enum(FRAMEWORKS).nullable(),
  version: z.string().nullable(),
  repo_url: z.string().nullable(),
  tags: z.array(z.string()),
  metadata: z.record(z.string(), z.unknown()),
  /** Time of the first registration. */
  registered_at: z.iso.datetime(),
  /** Time of the last registration that changed the agent, or of its archiving. */
  updated_at: z.iso.datetime(),
  archived_at: z.iso.datetime().nullable(),
  deprecated_at: z.iso.datetime().nullable(),
  /** SHA-256 of the token of the first registration, lower-case hex. */
  register_token_hash: z.string(),
});
export type AgentRecord = z.infer<typeof agentRecord>;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseAgentRecord(text: string): AgentRecord {
  return agentRecord.parse(JSON.parse(text));
}

const encoded = (id: string): string => Buffer.from(id, 'utf8').toString('base64url');

/** Returns the first token of the KV keys of an organization's agents. */
export const agentOrgToken = (org_id: string): string => encoded(org_id);

/** Returns the KV key of an agent. Ids are encoded, as KV keys allow few characters. */
export function agentKey(org_id: string, agent_id: string): string {
  return `${agentOrgToken(org_id)}.${encoded(agent_id)}`;
}
