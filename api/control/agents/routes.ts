// Routes of the agent registry: register tokens, registration, reads and archiving.
import { z } from 'zod';
import { pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type SendersDeps, unregisteredSenders } from './senders.ts';
import { type AgentsDeps, archiveAgent, getAgent, listAgents, makeToken, registerAgent } from './agents.ts';
import {
  agentParams,
  agentRow,
  deletedAgent,
  listQuery,
  madeTokenAnswer,
  registerBody,
  sendersMeta,
  sendersQuery,
  unregisteredSender,
  registeredAnswer,
} from './schema.ts';

const TAG = 'Agents';
const resource = { type: 'agent', param: 'agent_id' } as const;

export function agentRoutes(deps: AgentsDeps & SendersDeps): Route[] {
  return [
    createRegisterTokenRoute(deps),
    registerAgentRoute(deps),
    listAgentsRoute(deps),
    listUnregisteredSendersRoute(deps),
    getAgentRoute(deps),
    archiveAgentRoute(deps),
  ];
}

function createRegisterTokenRoute(deps: AgentsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/agents/register-tokens',
    operation_id: 'createRegisterToken',
    summary: 'Create a register token',
    description:
      'Returns a one-time token with which one agent can register for the first time within 24 hours. The token is shown in this response only; the service stores its hash. An organization can create at most 5,000 tokens in 48 hours: further requests fail with 429 `rate_limited` with `Retry-After`.',
    tag: TAG,
    permission: 'agents:invite',
    audit: { action: 'register_token.create', target: 'register_token' },
    params: orgParams,
    status: 201,
    response: madeTokenAnswer,
    secret: true,
    handler: async ({ org_id, audit }) => {
      const { register_token, expires_at, token_id } = await makeToken(deps, org_id);
      audit.target(token_id);
      audit.changes({ expires_at });
      return { data: { register_token, expires_at } };
    },
  });
}

function registerAgentRoute(deps: AgentsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/agents/register',
    operation_id: 'registerAgent',
    summary: 'Register or update an agent',
    description:
      'The first registration of an agent needs an unused `register_token` and returns 201. Later registrations need only the credential and return 200: fields that are given replace the stored ones, fields that are left out stay, and `null` clears a field. Registering an archived or deprecated agent makes it registered again.\n\nWithout `agent_id` the server derives one from the token, so repeating the request returns the same agent. If the agent is already registered with another token, the request fails with 409 `agent_already_registered`. A token that is missing, unknown, used or expired returns 403 `invalid_register_token`.\n\nAn organization has at most 50,000 agents with 64 MiB of records. At the limit, a new agent replaces the one that was archived longest ago; if none is archived, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'agents:write',
    resource: { type: 'agent', body: 'agent_id' },
    audit: { action: 'agent.register', target: 'agent' },
    params: orgParams,
    body: registerBody,
    example: {
      agent_id: 'support-bot',
      name: 'Support bot',
      framework: 'chain',
      version: '1.4.0',
      tags: ['prod'],
      register_token: 'rt_…',
    },
    status: 201,
    also: { 200: 'The agent was already registered' },
    response: registeredAnswer,
    errors: [
      'invalid_register_token',
      'agent_already_registered',
      'invalid_framework',
      'conflict',
      'upstream_unavailable',
    ],
    handler: async ({ org_id, body, audit }) => {
      const { agent, is_new, changes } = await registerAgent(deps, org_id, body);
      const { agent_id, registered_at, name, framework, version } = agent;
      audit.target(agent_id);
      if (Object.keys(changes).length === 0) audit.nothing();
      else audit.changes({ is_new, name, framework, version, ...changes });
      return { status: is_new ? 201 : 200, data: { agent_id, registered_at, is_new } };
    },
  });
}

function listAgentsRoute(deps: AgentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/agents',
    operation_id: 'listAgents',
    summary: 'List agents',
    description:
      'Returns the agents of the organization, the newest registration first. Archived agents are included only with `archived=true`.',
    tag: TAG,
    permission: 'agents:read',
    params: orgParams,
    query: listQuery,
    response: z.array(agentRow),
    meta: pageMeta,
    errors: ['invalid_framework'],
    handler: ({ org_id, query }) => {
      const { rows, total } = listAgents(deps, org_id, query);
      return { data: rows, meta: pageMetaOf(total, query.limit, query.offset) };
    },
  });
}

function listUnregisteredSendersRoute(deps: SendersDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/unregistered-agents',
    operation_id: 'listUnregisteredAgents',
    summary: 'List agents that send events without a registration',
    description:
      'Returns the ids that events of the last days name in `agent_id` and that the registry does not have, the newest event first, at most 200.',
    tag: TAG,
    permission: 'agents:read',
    params: orgParams,
    query: sendersQuery,
    response: z.array(unregisteredSender),
    meta: sendersMeta,
    handler: ({ org_id, query, signal }) => unregisteredSenders(deps, org_id, query.days, signal),
  });
}

function getAgentRoute(deps: AgentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/agents/:agent_id',
    operation_id: 'getAgent',
    summary: 'Get an agent',
    description: 'Returns one registration, archived or not.',
    tag: TAG,
    permission: 'agents:read',
    resource,
    params: agentParams,
    response: agentRow,
    errors: ['agent_not_found'],
    handler: ({ org_id, params }) => ({ data: getAgent(deps, org_id, params.agent_id) }),
  });
}

function archiveAgentRoute(deps: AgentsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/orgs/:org_id/agents/:agent_id',
    operation_id: 'archiveAgent',
    summary: 'Archive an agent',
    description:
      'Sets `archived_at`. The traces of the agent stay readable, and registering the agent again restores it. Archiving an archived agent changes nothing.',
    tag: TAG,
    permission: 'agents:write',
    resource,
    audit: { action: 'agent.archive', target: 'agent', param: 'agent_id' },
    params: agentParams,
    response: deletedAgent,
    errors: ['agent_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params, audit }) => {
      const { agent_id } = params;
      if (!(await archiveAgent(deps, org_id, agent_id))) audit.nothing();
      return { data: { agent_id, deleted: true as const } };
    },
  });
}
