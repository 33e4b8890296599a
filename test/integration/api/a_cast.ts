// Two organizations, each with everything that the other must not see: members of each role, API
// keys of any scopes, an agent, a grant, a trace. The access walk, the fuzz test and the search for
// secrets in logs call an API with them.
import type { Role } from '../../../api/http/permissions.ts';
import { ADMIN_TOKEN, asUser, call, ORG, type TestApi, tokenOf } from './an_api.ts';

/** Owner of the organization that an API creates at its first start. */
export const OWNER = 'user_local';
export const OTHER_ORG = 'org_other';
const OTHER_OWNER = 'user_other';

export type Headers = Record<string, string | undefined>;

/** Ids of the resources of one organization. */
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

/** Returns the headers that call as a raw key of an organization. */
export const asKey = (raw: string, org = ORG): Headers => ({ 'X-Org-Api-Key': raw, 'X-Org-Id': org });

async function must(
  api: TestApi,
  method: string,
  path: string,
  options: { body?: unknown; headers: Headers },
): Promise<Record<string, unknown>> {
  const answer = await call(api, method, path, options);
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return (answer.json?.['data'] ?? answer.json) as Record<string, unknown>;
}

/**
 * Creates an API key and returns its raw value. The operator creates it, because the operator may
 * grant any scope.
 */
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

/** Invites a person to a role, accepts the invitation and returns the new member's token. */
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

/** Creates a second organization with one resource of each kind. The caller lands the trace. */
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

/** An operation as the OpenAPI document describes it. */
export interface Operation {
  /** Method and path template, for example `GET /v1/traces/{trace_id}/tree`. */
  name: string;
  method: string;
  /** Path with its {names}. */
  template: string;
  access: unknown;
  /** undefined if the operation declares no audit action. */
  audit: unknown;
  /** Example body; {} if the document gives none, undefined if the operation accepts no body. */
  body: unknown;
  query: { name: string; schema: unknown }[];
}

/** Returns every operation of an API's own OpenAPI document. */
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

/**
 * Returns the path of an operation with these values in place of its {names}. A name without a
 * value becomes the id of a resource that does not exist.
 */
export function pathOf(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z_]+)\}/g, (_, name: string) => values[name] ?? `no_such_${name}`);
}
