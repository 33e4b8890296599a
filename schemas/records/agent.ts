// An agent of an org as it lies in KV, and the key under which it lies. Shared by the API, which writes registrations, and
// by the jobs of the pipeline, which mark agents that have gone quiet.
import { z } from 'zod';

/** What an agent may say that it is built with. */
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
  /** Of the first registration. */
  registered_at: z.iso.datetime(),
  /** Of the last registration that changed something, or of the archiving. */
  updated_at: z.iso.datetime(),
  archived_at: z.iso.datetime().nullable(),
  deprecated_at: z.iso.datetime().nullable(),
  /** SHA-256 of the token with which it was registered first, lower-case hex. */
  register_token_hash: z.string(),
});
export type AgentRecord = z.infer<typeof agentRecord>;

/** Text of a stored record to the record. @throws Error when it is none */
export function parseAgentRecord(text: string): AgentRecord {
  return agentRecord.parse(JSON.parse(text));
}

const encoded = (id: string): string => Buffer.from(id, 'utf8').toString('base64url');

/** First token of the KV keys of an org's agents. */
export const agentOrgToken = (org_id: string): string => encoded(org_id);

/** The KV key of an agent. Ids are encoded: KV keys take few characters. */
export function agentKey(org_id: string, agent_id: string): string {
  return `${agentOrgToken(org_id)}.${encoded(agent_id)}`;
}
