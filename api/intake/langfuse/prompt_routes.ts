// The prompt paths of Langfuse: get, list, create, label, delete. They serve the prompt registry.
import { z } from 'zod';
import type { PromptRecord, PromptTemplate } from '../../../schemas/records/prompt.ts';
import { ApiError } from '../../http/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import {
  createPromptShape,
  isNumbered,
  labelsShape,
  langfusePrompt,
  movable,
  promptAnswer,
  templateOf,
} from './prompts.ts';
import { listMeta, pageQuery, pageOf, TAG } from './shapes.ts';

export interface LangfusePromptsDeps {
  /** @throws ApiError prompt_not_found */
  findPrompt: (
    org_id: string,
    name: string,
    by: { version?: string | undefined; label?: string | undefined },
  ) => PromptRecord;
  /** Returns the newest version of each prompt. */
  prompts: (org_id: string) => PromptRecord[];
  /** Returns the versions of one prompt, newest first. */
  versions: (org_id: string, name: string) => PromptRecord[];
  labelsOfVersion: (record: PromptRecord) => string[];
  tagsOf: (org_id: string, name: string) => readonly string[];
  createPrompt: (
    org_id: string,
    body: { name: string; template: PromptTemplate; config: Record<string, unknown> },
  ) => Promise<PromptRecord>;
  /** @throws ApiError conflict for one label too many, upstream_unavailable */
  setLabels: (record: PromptRecord, labels: readonly string[], tags?: readonly string[]) => Promise<void>;
  /** Resolves with the number of deleted versions. @throws ApiError prompt_not_found, conflict */
  deletePrompt: (org_id: string, name: string) => Promise<number>;
}

const ONE = '/api/public/v2/prompts/:name';
const nameParam = z.object({ name: z.string() });

export function langfusePromptRoutes(deps: LangfusePromptsDeps): Route[] {
  return [listRoute(deps), createRoute(deps), getRoute(deps), labelRoute(deps), deleteRoute(deps)];
}

const shown = (deps: LangfusePromptsDeps, record: PromptRecord) =>
  langfusePrompt(record, deps.labelsOfVersion(record), deps.tagsOf(record.org_id, record.name));

function getRoute(deps: LangfusePromptsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'langfuseGetPrompt',
    summary: 'Get a prompt (Langfuse)',
    description:
      'Returns the version that `version` or `label` names, else the one labeled `production`, else the newest.',
    tag: TAG,
    permission: 'prompts:read',
    any_query: true,
    params: nameParam,
    query: z.object({ version: z.string().optional(), label: z.string().optional() }),
    response: promptAnswer,
    bare: true,
    errors: ['prompt_not_found', 'conflict'],
    handler: ({ org_id, params: { name }, query: { version, label } }) => {
      if (version !== undefined || label !== undefined)
        return { bare: shown(deps, deps.findPrompt(org_id, name, version === undefined ? { label } : { version })) };
      try {
        return { bare: shown(deps, deps.findPrompt(org_id, name, { label: 'production' })) };
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'prompt_not_found') throw error;
        return { bare: shown(deps, deps.findPrompt(org_id, name, {})) };
      }
    },
  });
}

function listRoute(deps: LangfusePromptsDeps): Route {
  const item = z.looseObject({ name: z.string(), versions: z.array(z.int()), labels: z.array(z.string()) });
  return defineRoute({
    method: 'get',
    path: '/api/public/v2/prompts',
    operation_id: 'langfuseListPrompts',
    summary: 'List prompts (Langfuse)',
    description: 'Returns each prompt with its versions and labels. `name`, `label` and `tag` filter.',
    tag: TAG,
    permission: 'prompts:read',
    any_query: true,
    query: pageQuery.extend({
      name: z.string().optional(),
      label: z.string().optional(),
      tag: z.string().optional(),
    }),
    response: z.object({ data: z.array(item), meta: listMeta }).meta({ id: 'LangfusePrompts' }),
    bare: true,
    handler: ({ org_id, query }) => {
      const items = deps
        .prompts(org_id)
        .filter(({ name }) => query.name === undefined || name === query.name)
        .map((newest) => {
          const versions = deps.versions(org_id, newest.name).filter(isNumbered);
          return {
            name: newest.name,
            type: typeof newest.template === 'string' ? 'text' : 'chat',
            versions: versions.map(({ version }) => Number(version)),
            labels: [...new Set(versions.flatMap(deps.labelsOfVersion))],
            tags: deps.tagsOf(org_id, newest.name),
            lastUpdatedAt: newest.created_at,
            lastConfig: newest.config ?? {},
          };
        })
        .filter(({ labels }) => query.label === undefined || labels.includes(query.label))
        .filter(({ tags }) => query.tag === undefined || tags.includes(query.tag));
      return { bare: pageOf(items, query) };
    },
  });
}

function createRoute(deps: LangfusePromptsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/api/public/v2/prompts',
    operation_id: 'langfuseCreatePrompt',
    summary: 'Create a prompt version (Langfuse)',
    description: 'Creates the next version and moves `labels` to it.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.create', target: 'prompt' },
    any_query: true,
    body: createPromptShape,
    example: { name: 'support-answer', type: 'text', prompt: 'Answer {{question}}', labels: ['production'] },
    response: promptAnswer,
    bare: true,
    errors: ['conflict', 'upstream_unavailable'],
    handler: async ({ org_id, body, audit }) => {
      const { name, prompt, config, labels, tags } = body;
      const record = await deps.createPrompt(org_id, { name, template: templateOf(prompt), config: config ?? {} });
      audit.target(`${record.name}@${record.version}`);
      const moved = movable(labels ?? []);
      audit.changes({ name: record.name, version: record.version, model: record.model, labels: moved });
      if (moved.length > 0 || tags != null) await deps.setLabels(record, moved, tags ?? undefined);
      return { bare: shown(deps, record) };
    },
  });
}

function labelRoute(deps: LangfusePromptsDeps): Route {
  return defineRoute({
    method: 'patch',
    path: `${ONE}/versions/:version`,
    operation_id: 'langfuseLabelPrompt',
    summary: 'Label a prompt version (Langfuse)',
    description: 'Moves `newLabels` to the version. Its other labels stay.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.label', target: 'prompt', param: 'name' },
    any_query: true,
    params: z.object({ name: z.string(), version: z.string() }),
    body: labelsShape,
    example: { newLabels: ['production'] },
    response: promptAnswer,
    bare: true,
    errors: ['prompt_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params: { name, version }, body, audit }) => {
      const record = deps.findPrompt(org_id, name, { version });
      const moved = movable(body.newLabels);
      const before = deps.labelsOfVersion(record);
      const [only] = moved;
      await deps.setLabels(record, moved);
      if (moved.some((label) => !before.includes(label)))
        audit.changes({ ...(moved.length === 1 ? { label: only } : { labels: moved }), version });
      return { bare: shown(deps, record) };
    },
  });
}

function deleteRoute(deps: LangfusePromptsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'langfuseDeletePrompt',
    summary: 'Delete a prompt (Langfuse)',
    description: 'Deletes every version. Single versions cannot be deleted: `version` and `label` are answered 501.',
    tag: TAG,
    permission: 'prompts:write',
    audit: { action: 'prompt.delete', target: 'prompt', param: 'name' },
    any_query: true,
    params: nameParam,
    query: z.object({ version: z.string().optional(), label: z.string().optional() }),
    response: z.object({ message: z.string() }).meta({ id: 'LangfuseDeleted' }),
    bare: true,
    errors: ['prompt_not_found', 'conflict', 'upstream_unavailable', 'not_implemented'],
    handler: async ({ org_id, params: { name }, query, audit }) => {
      if (query.version !== undefined || query.label !== undefined)
        throw new ApiError(
          'not_implemented',
          'Single versions cannot be deleted. Delete the prompt, or remove a label at DELETE /v1/prompts/{name}/labels/{label}.',
        );
      audit.changes({ versions: await deps.deletePrompt(org_id, name) });
      return { bare: { message: `The prompt ${name} was deleted.` } };
    },
  });
}
