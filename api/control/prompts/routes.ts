// Routes of the prompt registry: create, list, get, delete.
import { z } from 'zod';
import { pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createPrompt, deletePrompt, getPrompt, itemOf, listPrompts, type PromptsDeps } from './prompts.ts';
import { createBody, deletedPrompt, listQuery, onePrompt, promptItem, promptParams, promptQuery } from './schema.ts';

const TAG = 'Prompts';

export function promptRoutes(deps: PromptsDeps): Route[] {
  return [createPromptRoute(deps), listPromptsRoute(deps), getPromptRoute(deps), deletePromptRoute(deps)];
}

function createPromptRoute(deps: PromptsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/prompts',
    operation_id: 'createPrompt',
    summary: 'Create a prompt version',
    description:
      'The new version becomes the current one. A version never changes: the same template and model again return the existing version, and others return 409 `conflict`. Without `version`, the next whole number is used.',
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
      return { data: itemOf(record) };
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
      'Returns the current version of a prompt, or the one named by `version`, with the list of its versions.',
    tag: TAG,
    permission: 'prompts:read',
    params: promptParams,
    query: promptQuery,
    response: onePrompt,
    errors: ['prompt_not_found'],
    handler: ({ org_id, params, query }) => ({ data: getPrompt(deps, org_id, params.name, query.version) }),
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
