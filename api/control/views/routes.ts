// Routes of saved views: create, list, get, change, delete.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { createBody, deletedView, listQuery, patchBody, viewItem, viewParams } from './schema.ts';
import { changeView, createView, deleteView, getView, itemOf, listViews, type ViewsDeps } from './views.ts';

const TAG = 'Views';
const ROOT = '/v1/views';
const ONE = `${ROOT}/:view_id`;

export function viewRoutes(deps: ViewsDeps): Route[] {
  return [
    createViewRoute(deps),
    listViewsRoute(deps),
    getViewRoute(deps),
    changeViewRoute(deps),
    deleteViewRoute(deps),
  ];
}

function createViewRoute(deps: ViewsDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createView',
    summary: 'Create a saved view',
    description:
      'Saves the query of a page under a name. A `private` view is visible to the user or the API key that created it; an `org` view is visible to everybody in the organization who may read traces, and needs `judges:write`. A maker can have at most 200 views and an organization 2,000; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'traces:read',
    audit: { action: 'view.create', target: 'view' },
    body: createBody,
    example: { name: 'Failed refunds', page: 'traces', query: 'agent_id=planner&outcome=error', scope: 'private' },
    status: 201,
    response: viewItem,
    errors: ['conflict'],
    handler: async ({ credential, body, audit }) => {
      const view = await createView(deps, credential, body);
      audit.target(view.view_id);
      audit.changes({ name: view.name, page: view.page, scope: view.scope });
      return { data: itemOf(view) };
    },
  });
}

function listViewsRoute(deps: ViewsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listViews',
    summary: 'List saved views',
    description: "Returns the caller's private views and the views of the organization, by name.",
    tag: TAG,
    permission: 'traces:read',
    query: listQuery,
    response: z.array(viewItem),
    meta: pageMeta,
    handler: ({ credential, query }) => listViews(deps, credential, query),
  });
}

function getViewRoute(deps: ViewsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getView',
    summary: 'Get a saved view',
    description: 'Returns one view. A private view of another maker is 404 `not_found`.',
    tag: TAG,
    permission: 'traces:read',
    params: viewParams,
    response: viewItem,
    errors: ['not_found'],
    handler: ({ credential, params }) => ({ data: itemOf(getView(deps, credential, params.view_id)) }),
  });
}

function changeViewRoute(deps: ViewsDeps): Route {
  return defineRoute({
    method: 'patch',
    path: ONE,
    operation_id: 'changeView',
    summary: 'Update a saved view',
    description:
      'Changes the fields that are given. A view that is or becomes an `org` view needs `judges:write`. Only its maker can make an `org` view private.',
    tag: TAG,
    permission: 'traces:read',
    audit: { action: 'view.update', target: 'view', param: 'view_id' },
    params: viewParams,
    body: patchBody,
    example: { name: 'Failed refunds of this week' },
    response: viewItem,
    errors: ['not_found'],
    handler: async ({ credential, params, body, audit }) => {
      const { view, changes } = await changeView(deps, credential, params.view_id, body);
      audit.changes(changes);
      return { data: itemOf(view) };
    },
  });
}

function deleteViewRoute(deps: ViewsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteView',
    summary: 'Delete a saved view',
    description: 'Deletes the view. An `org` view needs `judges:write`.',
    tag: TAG,
    permission: 'traces:read',
    audit: { action: 'view.delete', target: 'view', param: 'view_id' },
    params: viewParams,
    response: deletedView,
    errors: ['not_found', 'conflict'],
    handler: async ({ credential, params }) => {
      await deleteView(deps, credential, params.view_id);
      return { data: { view_id: params.view_id, deleted: true as const } };
    },
  });
}
