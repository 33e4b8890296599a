// Creates, lists, gets, changes and deletes saved views. A private view exists for its maker only:
// every other caller gets the answer for a view that does not exist.
import { randomBytes } from 'node:crypto';
import type { ViewRecord } from '../../../schemas/records/view.ts';
import { fromTo, touched } from '../../http/changes.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf } from '../../http/list_pages.ts';
import type { PageMeta } from '../../http/pagination.ts';
import type { CreateBody, ListQuery, PatchBody, ViewItem } from './schema.ts';
import type { ViewStore } from './store.ts';

/** Maximum views of one organization, and of one maker: every API process holds them in memory. */
export const VIEWS_ORG_MAX = 2000;
export const VIEWS_MAKER_MAX = 200;
/** Permission to create, change and delete views that the whole organization sees. */
const SHARE_PERMISSION = 'judges:write';
const FIELDS = ['name', 'query', 'scope'] as const;

export interface ViewsDeps {
  views: ViewStore;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Returns the view as responses show it. */
export function itemOf(record: ViewRecord): ViewItem {
  const { view_id, name, page, query, scope, made_by, created_at, updated_at } = record;
  return { view_id, name, page, query, scope, made_by, created_at, updated_at };
}

/** Returns one page of the views that the caller may use, by name. */
export function listViews(
  { views }: ViewsDeps,
  caller: OrgCredential,
  query: ListQuery,
): { data: ViewItem[]; meta: PageMeta } {
  const found = views
    .of(caller.org_id)
    .filter((view) => isVisible(view, caller) && (query.page === undefined || view.page === query.page))
    .sort(byName);
  const { data, meta } = pageOf(found, query);
  return { data: data.map(itemOf), meta };
}

/** @throws ApiError not_found */
export function getView({ views }: ViewsDeps, caller: OrgCredential, view_id: string): ViewRecord {
  const view = views.get(caller.org_id, view_id);
  if (view === null) throw notFound(view_id);
  checkVisible(view, caller);
  return view;
}

/**
 * @throws ApiError forbidden for an org view without judges:write; conflict when the organization
 * or the caller has the maximum number of views
 */
export async function createView(
  { views, now }: ViewsDeps,
  caller: OrgCredential,
  body: CreateBody,
): Promise<ViewRecord> {
  if (body.scope === 'org') checkMayShare(caller);
  const own = views.of(caller.org_id);
  if (own.length >= VIEWS_ORG_MAX) throw full('organization', VIEWS_ORG_MAX);
  if (own.filter((view) => isMaker(view, caller)).length >= VIEWS_MAKER_MAX) throw full('caller', VIEWS_MAKER_MAX);
  const at = new Date(now()).toISOString();
  const record: ViewRecord = {
    org_id: caller.org_id,
    view_id: `view_${randomBytes(8).toString('hex')}`,
    ...body,
    maker_kind: caller.kind,
    made_by: makerId(caller),
    created_at: at,
    updated_at: at,
  };
  await views.create(record);
  return record;
}

/**
 * Changes the fields that are given.
 *
 * @returns the view and the fields that differ, with their values before and after
 * @throws ApiError not_found; forbidden for a view that is or becomes an org view without
 * judges:write, and for making another caller's view private
 */
export async function changeView(
  { views, now }: ViewsDeps,
  caller: OrgCredential,
  view_id: string,
  patch: PatchBody,
): Promise<{ view: ViewRecord; changes: Record<string, unknown> }> {
  let changes: Record<string, unknown> = {};
  const view = await views.change(caller.org_id, view_id, (before) => {
    checkVisible(before, caller);
    const { name = before.name, query = before.query, scope = before.scope } = patch;
    if (before.scope === 'org' || scope === 'org') checkMayShare(caller);
    if (before.scope === 'org' && scope === 'private' && !isMaker(before, caller))
      throw new ApiError('forbidden', 'scope: only the maker of a view can make it private.');
    const after = { ...before, name, query, scope };
    changes = fromTo(before, after, FIELDS);
    return touched(before, after, now());
  });
  if (view === null) throw notFound(view_id);
  return { view, changes };
}

/** @throws ApiError not_found; forbidden for an org view without judges:write */
export async function deleteView({ views }: ViewsDeps, caller: OrgCredential, view_id: string): Promise<void> {
  const removed = await views.remove(caller.org_id, view_id, (view) => {
    checkVisible(view, caller);
    if (view.scope === 'org') checkMayShare(caller);
  });
  if (!removed) throw notFound(view_id);
}

const makerId = (caller: OrgCredential): string => (caller.kind === 'user' ? caller.user_id : caller.key_id);
const isMaker = (view: ViewRecord, caller: OrgCredential): boolean =>
  view.maker_kind === caller.kind && view.made_by === makerId(caller);
const isVisible = (view: ViewRecord, caller: OrgCredential): boolean => view.scope === 'org' || isMaker(view, caller);

function checkVisible(view: ViewRecord, caller: OrgCredential): void {
  if (!isVisible(view, caller)) throw notFound(view.view_id);
}

function checkMayShare(caller: OrgCredential): void {
  if (!may(caller, SHARE_PERMISSION))
    throw new ApiError('forbidden', `Views with scope org can be changed only with ${SHARE_PERMISSION}.`);
}

function byName(a: ViewRecord, b: ViewRecord): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.view_id < b.view_id ? -1 : 1;
}

const notFound = (view_id: string) => new ApiError('not_found', `There is no view ${view_id}.`);
const full = (owner: 'organization' | 'caller', max: number) =>
  new ApiError('conflict', `This ${owner} has ${max} views, the most that it can have. Delete one first.`);
