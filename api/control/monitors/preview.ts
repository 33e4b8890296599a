// Answers when a definition would have alerted: reads the values of its window at evenly spaced
// instants of the past, and evaluates them by the worker's own rules. Bounded in time, instants and
// groups, and in previews of one organization; nothing is stored.
import { aggregateOf } from '../../../sql/analytics/plan.ts';
import { readRolling, ROLLING_GROUPS_MAX } from '../../../sql/analytics/rolling.ts';
import { namedGroup } from '../../../pipeline/domain/monitors/evaluate.ts';
import { wouldAlert } from '../../../pipeline/domain/monitors/would_alert.ts';
import type { MonitorRecord } from '../../../schemas/records/monitor.ts';
import type { OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { checkedFor, type MonitorsDeps } from './monitors.ts';
import type { MonitorPreview, PreviewBody } from './schema.ts';

/** Previews of one organization that one API process reads at a time. */
export const PREVIEWS_ORG_MAX = 2;
const READ_MS_MAX = 10_000;
const MINUTE_MS = 60_000;
/** Instants that a preview has where the window allows it: five minutes of a day. */
const INSTANTS = 288;
const INSTANTS_MAX = 1440;
/** Windows in which a row counts at most; a row costs as much as this many. */
const OVERLAP_MAX = 12;

/** @throws ApiError invalid_request, forbidden or rate_limited */
export async function previewMonitor(
  deps: MonitorsDeps,
  caller: OrgCredential,
  body: PreviewBody,
  signal: AbortSignal,
): Promise<MonitorPreview> {
  const until = Math.floor(deps.now() / MINUTE_MS) * MINUTE_MS;
  const { query } = checkedFor(caller, body, until);
  const { step_minutes, count } = instantsOf(body);
  const first = until - (count - 1) * step_minutes * MINUTE_MS;
  const release = deps.slots.take(caller.org_id);
  if (release === null)
    throw new ApiError(
      'rate_limited',
      `This organization has ${PREVIEWS_ORG_MAX} previews in progress. Retry after the number of seconds in Retry-After.`,
      { headers: { 'Retry-After': '1' } },
    );
  const began = performance.now();
  try {
    const windows = { first, step: step_minutes * MINUTE_MS, count, window: body.window_minutes * MINUTE_MS };
    const order = 'above' in body.threshold ? 'largest' : 'smallest';
    const found = await readRolling(deps.clickhouse, query, windows, { order, timeoutMs: READ_MS_MAX, signal });
    const [measure] = query.measures;
    const missing = measure !== undefined && aggregateOf(query, measure).additive ? 0 : null;
    const monitor = draftOf(caller.org_id, body, query.group_by);
    const groups = (found.length === 0 && query.group_by.length === 0 ? [NOTHING(count)] : found)
      .slice(0, ROLLING_GROUPS_MAX)
      .map(({ group, values }) => ({
        group: query.group_by.length === 0 ? null : group,
        values: filled(values, query.group_by.length === 0, missing),
      }));
    return {
      since: new Date(first).toISOString(),
      until: new Date(until).toISOString(),
      step_minutes,
      groups: groups.map(({ group, values }) => ({ group: namedGroup(monitor, group), values })),
      truncated: found.length > ROLLING_GROUPS_MAX,
      alerts: wouldAlert(monitor, groups, { first, step: windows.step }),
    };
  } catch (error) {
    if (signal.aborted || performance.now() - began < READ_MS_MAX) throw error;
    const detail = `hours: the preview took longer than ${READ_MS_MAX / 1000} seconds. Ask for fewer hours`;
    throw new ApiError('invalid_request', detail, { cause: error });
  } finally {
    release();
  }
}

const NOTHING = (count: number) => ({ group: '', values: new Array<null>(count).fill(null) });

/** Returns values with that of no rows where there are none. A group is not known before its first row. */
function filled(values: readonly (number | null)[], isKnown: boolean, missing: number | null): (number | null)[] {
  const first = isKnown ? 0 : values.findIndex((value) => value !== null);
  return values.map((value, at) => value ?? (first >= 0 && at >= first ? missing : null));
}

/** Returns how often a definition is evaluated: no instant is skipped, and windows overlap a bounded number of times. */
function instantsOf({ hours, window_minutes }: PreviewBody): { step_minutes: number; count: number } {
  const minutes = hours * 60;
  const wanted = Math.ceil(minutes / INSTANTS);
  const step_minutes = Math.max(1, Math.ceil(window_minutes / OVERLAP_MAX), Math.min(window_minutes, wanted));
  const count = Math.floor(minutes / step_minutes) + 1;
  if (count > INSTANTS_MAX + 1)
    throw new ApiError(
      'invalid_request',
      `hours: must be at most ${Math.floor((INSTANTS_MAX * step_minutes) / 60)} with a window of ${window_minutes} minutes`,
    );
  return { step_minutes, count };
}

/** Returns the definition as the worker would have it, without receivers. */
function draftOf(org_id: string, body: PreviewBody, group_by: readonly string[]): MonitorRecord {
  const at = new Date(0).toISOString();
  const { query, window_minutes, threshold, for_minutes } = body;
  return {
    org_id,
    monitor_id: 'preview',
    name: '',
    query: { view: query.view, measures: [], filters: [] },
    group_by: [...group_by],
    window_minutes,
    threshold,
    for_minutes,
    channels: [],
    severity: 'info',
    enabled: true,
    muted_until: null,
    created_at: at,
    updated_at: at,
  };
}
