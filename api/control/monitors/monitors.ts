// Creates, lists, gets, changes and deletes monitors. A definition is checked as the worker will
// evaluate it, so that a stored monitor can be evaluated by the version that stored it.
import { randomBytes } from 'node:crypto';
import type { MonitorChange, MonitorRecord, MonitorState } from '../../../schemas/records/monitor.ts';
import { namedGroup } from '../../../pipeline/domain/monitors/evaluate.ts';
import { asksForCost, type CheckedQuery, checkedQuery } from '../../../sql/analytics/check.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { refusedAsInvalid } from '../../http/analytics_refusal.ts';
import { fromTo, touched } from '../../http/changes.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf, type PageQuery } from '../../http/list_pages.ts';
import type { OrgSlots } from '../../http/org_slots.ts';
import type { PageMeta } from '../../http/pagination.ts';
import type { CreateBody, Definition, ListQuery, MonitorItem, PatchBody } from './schema.ts';
import type { MonitorStore } from './store.ts';

/** Maximum monitors of one organization: each costs a query a minute. */
export const MONITORS_ORG_MAX = 1000;
const MINUTE_MS = 60_000;
const FIELDS = [
  'name',
  'query',
  'group_by',
  'window_minutes',
  'threshold',
  'for_minutes',
  'channels',
  'severity',
  'enabled',
  'muted_until',
] as const;

export interface MonitorsDeps {
  clickhouse: ClickHouse;
  /** Previews in progress. */
  slots: OrgSlots;
  monitors: MonitorStore;
  /** Returns the address of the organization's first owner; null when it has none. */
  ownerEmailOf: (org_id: string) => string | null;
  hasEndpoint: (org_id: string, webhook_id: string) => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Returns the monitor with its state, as responses show it. */
export function itemOf({ monitors }: Pick<MonitorsDeps, 'monitors'>, record: MonitorRecord): MonitorItem {
  const { org_id: _, query, ...fields } = record;
  const stored = monitors.stateOf(record);
  const state = stored !== null && record.enabled && isOf(stored, record) ? stored : null;
  const groups = (state?.groups ?? [])
    .toSorted((a, b) => Number(b.state === 'alerting') - Number(a.state === 'alerting'))
    .map(({ group, state: name, value, since_ms }) => ({
      group: namedGroup(record, group),
      state: name,
      value,
      since: new Date(since_ms).toISOString(),
    }));
  return {
    ...fields,
    query: { ...query, group_by: record.group_by },
    state: stateName(record, state),
    error: state?.error ?? null,
    evaluated_at: state?.evaluated_at ?? null,
    groups,
    truncated: state?.truncated ?? false,
  };
}

/** Returns true when a state belongs to what the monitor measures now. */
const isOf = ({ monitor }: MonitorState, { query, group_by }: MonitorRecord): boolean =>
  JSON.stringify([monitor.query, monitor.group_by]) === JSON.stringify([query, group_by]);

function stateName({ enabled }: MonitorRecord, state: MonitorState | null): MonitorItem['state'] {
  if (!enabled) return 'disabled';
  if (state === null) return 'no_data';
  if (state.error !== null) return 'error';
  const names = new Set(state.groups.map((group) => group.state));
  return names.has('alerting') ? 'alerting' : names.has('ok') ? 'ok' : 'no_data';
}

/** Returns one page of the organization's monitors, by name. */
export function listMonitors(
  deps: MonitorsDeps,
  org_id: string,
  query: ListQuery,
): { data: MonitorItem[]; meta: PageMeta } {
  const found = deps.monitors
    .of(org_id)
    .sort(byName)
    .filter((record) => query.state === undefined || itemOf(deps, record).state === query.state);
  const { data, meta } = pageOf(found, query);
  return { data: data.map((record) => itemOf(deps, record)), meta };
}

/** @throws ApiError not_found */
export function getMonitor({ monitors }: MonitorsDeps, org_id: string, monitor_id: string): MonitorRecord {
  const record = monitors.get(org_id, monitor_id);
  if (record === null) throw notFound(monitor_id);
  return record;
}

/**
 * @throws ApiError invalid_request; forbidden for a query of costs without costs:read; conflict when
 * the organization has the maximum number of monitors
 */
export async function createMonitor(
  deps: MonitorsDeps,
  caller: OrgCredential,
  body: CreateBody,
): Promise<MonitorRecord> {
  const { monitors, now } = deps;
  if (monitors.of(caller.org_id).length >= MONITORS_ORG_MAX)
    throw new ApiError(
      'conflict',
      `This organization has ${MONITORS_ORG_MAX} monitors, the most that it can have. Delete one first.`,
    );
  const at = new Date(now()).toISOString();
  const record: MonitorRecord = {
    org_id: caller.org_id,
    monitor_id: `mon_${randomBytes(8).toString('hex')}`,
    ...definitionOf(deps, caller, body),
    created_at: at,
    updated_at: at,
  };
  await monitors.create(record);
  return record;
}

/**
 * Changes the fields that are given.
 * @returns the monitor and the fields that differ, with their values before and after
 * @throws ApiError not_found, invalid_request, forbidden
 */
export async function changeMonitor(
  deps: MonitorsDeps,
  caller: OrgCredential,
  monitor_id: string,
  patch: PatchBody,
): Promise<{ monitor: MonitorRecord; changes: Record<string, unknown> }> {
  let changes: Record<string, unknown> = {};
  const monitor = await deps.monitors.change(caller.org_id, monitor_id, (before) => {
    const grouped = patch.group_by ?? patch.query?.group_by;
    const body = {
      ...before,
      ...withoutUndefined(patch),
      query: patch.query ?? { ...before.query },
      group_by: grouped ?? (patch.query === undefined ? before.group_by : []),
    } as CreateBody;
    const after = { ...before, ...definitionOf(deps, caller, body) };
    changes = fromTo(before, after, FIELDS);
    return touched(before, after, deps.now());
  });
  if (monitor === null) throw notFound(monitor_id);
  return { monitor, changes };
}

/** @throws ApiError not_found */
export async function deleteMonitor(
  { monitors }: MonitorsDeps,
  org_id: string,
  monitor_id: string,
): Promise<MonitorRecord> {
  const removed = await monitors.remove(org_id, monitor_id);
  if (removed === null) throw notFound(monitor_id);
  return removed;
}

/** Returns one page of the changes of a monitor, the newest first. @throws ApiError not_found */
export function listChanges(
  deps: MonitorsDeps,
  org_id: string,
  monitor_id: string,
  query: PageQuery,
): { data: MonitorChange[]; meta: PageMeta } {
  const state = deps.monitors.stateOf(getMonitor(deps, org_id, monitor_id));
  return pageOf((state?.history ?? []).toReversed(), query);
}

/** Checks a definition and completes it. @throws ApiError invalid_request, forbidden */
function definitionOf(deps: MonitorsDeps, caller: OrgCredential, body: CreateBody): Definition {
  const { org_id } = caller;
  const { query, name, window_minutes, threshold, for_minutes, severity, enabled, muted_until } = body;
  const group_by = groupsOf(body);
  const checked = checkedFor(caller, body, deps.now());
  return {
    name,
    query: {
      view: query.view,
      measures: checked.measures.map(({ measure, agg }) => ({ measure, agg })),
      filters: query.filters.map(({ field, op, value }) => ({ field, op, value })),
    },
    group_by,
    window_minutes,
    threshold,
    for_minutes,
    channels: body.channels.map((channel, index) => channelOf(deps, org_id, channel, index)),
    severity,
    enabled,
    muted_until,
  };
}

type Asked = Pick<CreateBody, 'query' | 'group_by' | 'window_minutes'>;

/** Checks what a monitor asks, over its window up to an instant. @throws ApiError invalid_request, forbidden */
export function checkedFor(caller: OrgCredential, body: Asked, now: number): CheckedQuery {
  const { query, window_minutes } = body;
  const checked = refusedAsInvalid(() =>
    checkedQuery(
      caller.org_id,
      {
        view: query.view,
        measures: query.measures.map(({ measure, agg }) => ({ measure, agg })),
        group_by: groupsOf(body),
        filters: query.filters,
        timezone: 'UTC',
        since: now - window_minutes * MINUTE_MS,
        until: now,
        top: 1,
      },
      now,
    ),
  );
  if (asksForCost(checked) && !may(caller, 'costs:read'))
    throw new ApiError('forbidden', 'A monitor of costs needs the permission costs:read.');
  return checked;
}

/** The dimension may be in the query, as analytics has it, or beside it. */
function groupsOf({ group_by, query }: Pick<Asked, 'query' | 'group_by'>): string[] {
  if (group_by !== undefined && query.group_by !== undefined && group_by.join() !== query.group_by.join())
    throw new ApiError('invalid_request', 'group_by: must be the same as query.group_by, or be given once');
  return group_by ?? query.group_by ?? [];
}

function channelOf(
  { ownerEmailOf, hasEndpoint }: MonitorsDeps,
  org_id: string,
  channel: CreateBody['channels'][number],
  index: number,
): MonitorRecord['channels'][number] {
  if (channel.type === 'webhook') {
    const { webhook_id } = channel;
    if (webhook_id === undefined) return { type: 'webhook' };
    if (!hasEndpoint(org_id, webhook_id))
      throw new ApiError('invalid_request', `channels[${index}].webhook_id: there is no endpoint ${webhook_id}`);
    return { type: 'webhook', webhook_id };
  }
  if (channel.to !== undefined) return { type: 'email', to: [...new Set(channel.to)] };
  const owner = ownerEmailOf(org_id);
  if (owner === null) throw new ApiError('invalid_request', `channels[${index}].to: must name at least one address`);
  return { type: 'email', to: [owner] };
}

function withoutUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}

function byName(a: MonitorRecord, b: MonitorRecord): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.monitor_id < b.monitor_id ? -1 : 1;
}

const notFound = (monitor_id: string) => new ApiError('not_found', `There is no monitor ${monitor_id}.`);
