// Two orgs with everything that one must not see of the other: members of each role, API keys of any scopes, an agent, a grant, a
// trace. What the walk, the fuzzing and the search of the logs call an API with.
import type { Role } from '../../../api/http/permissions.ts';
import { ADMIN_TOKEN, asUser, call, ORG, type TestApi, tokenOf } from './an_api.ts';

/** The owner of the org that an API makes at its first start. */
export const OWNER = 'user_local';
export const OTHER_ORG = 'org_other';
const OTHER_OWNER = 'user_other';

export type Headers = Record<string, string | undefined>;

/** Ids of one org's things. */
export interface Things {
  trace_id: string;
  agent_id: string;
  key_id: string;
  user_id: string;
  grant_id: string;
  webhook_id: string;
}

const asOperator: Headers = {
  'X-Org-Api-Key': undefined,
  'X-Org-Id': undefined,
  Authorization: `Bearer ${ADMIN_TOKEN}`,
};

/** Headers with a raw key of an org. */
export const asKey = (raw: string, org = ORG): Headers => ({ 'X-Org-Api-Key': raw, 'X-Org-Id': org });

async function must(
  api: TestApi,
  method: string,
  path: string,
  options: { body?: unknown; headers: Headers },
): Promise<Record<string, unknown>> {
  const answer = await call(api, method, path, options);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${String(answer.status)} ${answer.text}`);
  return (answer.json?.['data'] ?? answer.json) as Record<string, unknown>;
}

/** A raw API key, made by the operator, who may give any scope. */
export async function makeKey(
  api: TestApi,
  scopes: readonly string[],
  org = ORG,
): Promise<{ raw: string; id: string }> {
  const made = await must(api, 'POST', `/admin/orgs/${org}/api-keys`, {
    headers: asOperator,
    body: { name: 'cast', scopes },
  });
  return { raw: String(made['raw_key']), id: String(made['id']) };
}

/** A member of a role, by invitation; gives back their token. */
export async function makeMember(
  api: TestApi,
  role: Role,
  { org = ORG, owner = OWNER } = {},
): Promise<{ user_id: string; token: string }> {
  const user_id = `user_${role}_of_${org}`;
  const email = `${role}@${org.replaceAll('_', '-')}.example`;
  const invite = await must(api, 'POST', `/orgs/${org}/members`, {
    headers: asUser(await tokenOf({ sub: owner }), org),
    body: { email, role },
  });
  const token = await tokenOf({ sub: user_id, email });
  await must(api, 'POST', `/orgs/${org}/members/accept`, {
    headers: asUser(token, org),
    body: { token: invite['token'] },
  });
  return { user_id, token };
}

/** A second org with one of everything; the trace is the caller's to land. */
export async function makeOtherOrg(api: TestApi): Promise<Things & { owner: Headers; raw: string }> {
  await must(api, 'POST', '/admin/orgs', {
    headers: asOperator,
    body: {
      org_id: OTHER_ORG,
      name: 'Other',
      plan_name: 'enterprise',
      rate_limits: { ingest_per_minute: 1_000_000, api_per_minute: 1_000_000, burst: 1_000_000 },
      owner: { user_id: OTHER_OWNER, email: 'owner@other.example' },
    },
  });
  const owner = asUser(await tokenOf({ sub: OTHER_OWNER, email: 'owner@other.example' }), OTHER_ORG);
  const { raw, id: key_id } = await makeKey(api, ['*'], OTHER_ORG);
  const { register_token } = await must(api, 'POST', `/orgs/${OTHER_ORG}/agents/register-tokens`, { headers: owner });
  const { agent_id } = await must(api, 'POST', `/orgs/${OTHER_ORG}/agents/register`, {
    headers: owner,
    body: { agent_id: 'agent_of_other', name: 'Secret agent', framework: 'chain', register_token },
  });
  const { user_id } = await makeMember(api, 'viewer', { org: OTHER_ORG, owner: OTHER_OWNER });
  const grant = await must(api, 'POST', `/orgs/${OTHER_ORG}/grants`, {
    headers: owner,
    body: {
      user_id,
      resource: { type: 'agent', id: agent_id },
      permissions: ['agents:write'],
      expires_at: new Date(Date.now() + 86_400_000).toISOString(),
    },
  });
  const hook = await must(api, 'POST', `/orgs/${OTHER_ORG}/webhooks`, {
    headers: owner,
    body: { url: 'http://127.0.0.1:9/hook', events: ['trace.completed'] },
  });
  return {
    trace_id: 'trc_of_other',
    agent_id: String(agent_id),
    key_id,
    user_id,
    grant_id: String(grant['grant_id']),
    webhook_id: String(hook['webhook_id']),
    owner,
    raw,
  };
}

interface MediaDoc {
  example?: unknown;
}

/** What the document says of an operation. */
export interface Operation {
  /** GET /v1/traces/{trace_id}/tree */
  name: string;
  method: string;
  /** With {names}. */
  template: string;
  access: unknown;
  /** undefined where nothing is declared. */
  audit: unknown;
  /** The example body; {} where there is none, undefined where no body is taken. */
  body: unknown;
  query: { name: string; schema: unknown }[];
}

/** Every operation of an API's own document. */
export async function operationsOf(api: { url: string }): Promise<Operation[]> {
  const { json } = await call(api, 'GET', '/openapi.json');
  const paths = json?.['paths'] as Record<string, Record<string, Record<string, unknown>>>;
  return Object.entries(paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([verb, operation]) => {
      const media = (operation['requestBody'] as { content: Record<string, MediaDoc> } | undefined)?.content[
        'application/json'
      ];
      const method = verb.toUpperCase();
      return {
        name: `${method} ${template}`,
        method,
        template,
        access: operation['x-access'],
        audit: operation['x-audit'],
        body: media === undefined ? undefined : (media.example ?? {}),
        query: ((operation['parameters'] ?? []) as { in: string; name: string; schema: unknown }[]).filter(
          (one) => one.in === 'query',
        ),
      };
    }),
  );
}

/** The path of an operation with these values in the places of its {names}; what is not given becomes a thing that nobody has. */
export function pathOf(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z_]+)\}/g, (_, name: string) => values[name] ?? `no_such_${name}`);
}
