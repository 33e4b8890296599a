// Routes of the prompt registry: create, list, get, label, usage, delete.
import { z } from 'zod';
import { pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import {
  createPrompt,
  deletePrompt,
  getPrompt,
  itemOf,
  listPrompts,
  moveLabel,
  type PromptsDeps,
  removeLabel,
} from './prompts.ts';
import {
  callsQuery,
  createBody,
  deletedLabel,
  deletedPrompt,
  labelBody,
  labelParams,
  listQuery,
  movedLabel,
  onePrompt,
  promptCall,
  promptItem,
  promptParams,
  promptQuery,
  promptUsage,
  usageMeta,
  usageQuery,
} from './schema.ts';
import { listCalls, showUsage, type UsageDeps } from './usage.ts';

const TAG = 'Prompts';

export function promptRoutes(deps: PromptsDeps & UsageDeps): Route[] {
  return [
    createPromptRoute(deps),
    listPromptsRoute(deps),
    getPromptRoute(deps),
    getPromptUsageRoute(deps),
    listPromptCallsRoute(deps),
    moveLabelRoute(deps),
    deleteLabelRoute(deps),
    deletePromptRoute(deps),
  ];
}

function createPromptRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/prompts',
    operation_id: 'createPrompt',
    summary: 'Create a prompt version',
    description:
      'The new version becomes the current one. A version never changes: the same template, model and config again return the existing version, and others return 409 `conflict`. Without `version`, the next whole number is used.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.create', target: 'prompt' },
    body: createBody,
    example: {
      name: 'support-answer',
      template: 'Answer {{customer}} in one sentence: {{question}}',
      model: 'gpt-4o-mini',
    },
    status: 201,
    response: promptItem,
    errors: ['conflict', 'upstream_unavailable'],
    handler: async ({ org_id, body, audit }) => {
      const { record, made } = await createPrompt(deps, org_id, body);
      audit.target(`${record.name}@${record.version}`);
      if (made) audit.changes({ name: record.name, version: record.version, model: record.model });
      else audit.nothing();
      return { data: itemOf(deps.store, record) };
    },
  });
}

function listPromptsRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/prompts',
    operation_id: 'listPrompts',
    summary: 'List prompts',
    description: 'Returns the current version of each prompt, newest first.',
    tag: TAG,
    permission: 'prompts:read',
    query: listQuery,
    response: z.array(promptItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => {
      const { items, total } = listPrompts(deps, org_id, query);
      return { data: items, meta: pageMetaOf(total, query.limit, query.offset) };
    },
  });
}

function getPromptRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/prompts/:name',
    operation_id: 'getPrompt',
    summary: 'Get a prompt',
    description:
      'Returns the current version of a prompt, or the one named by `version` or `label`, with the list of its versions.',
    tag: TAG,
    permission: 'prompts:read',
    params: promptParams,
    query: promptQuery,
    response: onePrompt,
    errors: ['prompt_not_found'],
    handler: ({ org_id, params, query }) => ({ data: getPrompt(deps, org_id, params.name, query) }),
  });
}

function getPromptUsageRoute(deps: UsageDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/prompts/:name/usage',
    operation_id: 'getPromptUsage',
    summary: 'Get the usage of a prompt',
    description:
      'Returns the calls, cost, duration, errors and scores of a prompt by version. A call belongs to the prompt and the version that its attributes `prompt_name` and `prompt_version` name, or that X-Service-Prompt-Name and X-Service-Prompt-Version named at the gateway; the prompt does not have to exist in the registry. The score of a trace counts for each version that the trace called.',
    tag: TAG,
    permission: 'traces:read',
    params: promptParams,
    query: usageQuery,
    response: promptUsage,
    meta: usageMeta,
    handler: ({ org_id, params, query, signal }) => showUsage(deps, { org_id, ...params, ...query }, signal),
  });
}

function listPromptCallsRoute(deps: UsageDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/prompts/:name/calls',
    operation_id: 'listPromptCalls',
    summary: 'List calls of a prompt',
    description:
      'Returns the newest model calls that named the prompt, with the values of its variables: real inputs for another version. `GET /v1/traces?prompt_name=` lists all traces of the prompt.',
    tag: TAG,
    permission: 'traces:read',
    params: promptParams,
    query: callsQuery,
    response: z.array(promptCall),
    handler: async ({ org_id, params, query, signal }) => ({
      data: await listCalls(deps, { org_id, ...params, ...query }, signal),
    }),
  });
}

function moveLabelRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/v1/prompts/:name/labels/:label',
    operation_id: 'movePromptLabel',
    summary: 'Move a label of a prompt',
    description:
      'Makes the label name this version, so that callers who ask for the label get it from now on. A label that is new to the prompt is created; a prompt has at most 20 besides `latest`, which always names the newest version. `name@label` is accepted wherever `name@version` is; a version of the same name counts first.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.label', target: 'prompt', param: 'name' },
    params: labelParams,
    body: labelBody,
    example: { version: '3' },
    response: movedLabel,
    errors: ['prompt_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params: { name, label }, body: { version }, audit }) => {
      const previous_version = await moveLabel(deps, org_id, { name, label, version });
      if (previous_version !== version) audit.changes({ label, version, previous_version });
      return { data: { name, label, version } };
    },
  });
}

function deleteLabelRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/v1/prompts/:name/labels/:label',
    operation_id: 'deletePromptLabel',
    summary: 'Delete a label of a prompt',
    description: 'Removes the label. The version that it named stays.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.unlabel', target: 'prompt', param: 'name' },
    params: labelParams,
    response: deletedLabel,
    errors: ['prompt_not_found', 'not_found', 'upstream_unavailable'],
    handler: async ({ org_id, params: { name, label }, audit }) => {
      audit.changes({ label, version: await removeLabel(deps, org_id, { name, label }) });
      return { data: { name, label, deleted: true as const } };
    },
  });
}

function deletePromptRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/v1/prompts/:name',
    operation_id: 'deletePrompt',
    summary: 'Delete a prompt',
    description:
      'Deletes every version. Returns 409 `conflict` while a running eval uses one of them; the detail names the eval. Past evals and traces keep the name of the version that they used. The same name and version can be created again with another template, and numbering restarts at 1.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.delete', target: 'prompt', param: 'name' },
    params: promptParams,
    response: deletedPrompt,
    errors: ['prompt_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params: { name }, audit }) => {
      audit.changes({ versions: await deletePrompt(deps, org_id, name) });
      return { data: { name, deleted: true as const } };
    },
  });
}
