// Lists the audit records of an organization: newest first, with an exact total, in pages by
// cursor. A page reads a short period first, and a longer one only while it is not full.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { type CursorMeta, cursorPage } from '../../http/list_pages.ts';
import { type AuditPlace, type AuditQuery, type AuditRecord, cursorOf, placeOf } from './schema.ts';
import { type AuditFilters, type AuditRow, readAuditPage, readAuditTotal } from './store.ts';

export interface AuditDeps {
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * A change without an outcome after this time is no longer in progress: no request takes longer
 * (REQUEST_MS_MAX of api/http/server.ts).
 */
const UNDER_WAY_MS_MAX = 130_000;
const DAY_MS = 86_400_000;
/** Periods that a page reads in turn; the last read has no bound. */
const STRETCHES_MS = [7 * DAY_MS, 180 * DAY_MS];

/**
 * Serves GET /orgs/{org_id}/audit-log. @throws ApiError invalid_request for a cursor that this list
 * did not return
 */
export async function listAudit(
  { clickhouse, now }: AuditDeps,
  org_id: string,
  query: AuditQuery,
  signal: AbortSignal,
): Promise<{ data: AuditRecord[]; meta: CursorMeta }> {
  const place = query.cursor === undefined ? null : placeOf(query.cursor);
  const filters = {
    org_id,
    settled_ms: now() - UNDER_WAY_MS_MAX,
    action: query.action,
    actor_id: query.actor_id,
    target_id: query.target_id,
    since_ms: query.since,
    until_ms: query.until,
  };
  const [[counted], rows] = await Promise.all([
    readAuditTotal(clickhouse, filters, { signal }),
    readRows(clickhouse, filters, place, { newest: now(), rows: query.limit + 1, signal }),
  ]);
  const page = cursorPage(rows, {
    limit: query.limit,
    total: counted?.total ?? 0,
    before: place?.before ?? 0,
    byCursor: place !== null,
    cursorAfter: (last, before) => cursorOf({ ms: last.created_ms, audit_id: last.audit_id, before }),
  });
  return { data: page.data.map(recordOf), meta: page.meta };
}

/** Returns fewer rows than requested only at the end of the list. */
async function readRows(
  clickhouse: ClickHouse,
  filters: AuditFilters,
  place: AuditPlace | null,
  { newest, rows, signal }: { newest: number; rows: number; signal: AbortSignal },
): Promise<AuditRow[]> {
  const from = place === null ? {} : { from_ms: place.ms, from_id: place.audit_id };
  const top = Math.min(place?.ms ?? Infinity, filters.until_ms ?? Infinity, newest);
  for (const stretch of STRETCHES_MS) {
    const since_ms = Math.max(top - stretch, filters.since_ms ?? -Infinity);
    if (since_ms === filters.since_ms) break;
    const found = await readAuditPage(clickhouse, { ...filters, ...from, since_ms, rows }, { signal });
    if (found.length === rows) return found;
  }
  return readAuditPage(clickhouse, { ...filters, ...from, rows }, { signal });
}

const orNull = (text: string): string | null => (text === '' ? null : text);

function recordOf(row: AuditRow): AuditRecord {
  return {
    audit_id: row.audit_id,
    org_id: row.org_id,
    actor: { type: row.actor_type, id: row.actor_id },
    action: row.action,
    target: { type: row.target_type, id: row.target_id },
    changes: row.changes,
    request_id: orNull(row.request_id),
    ip: orNull(row.ip),
    created_at: new Date(row.created_ms).toISOString(),
    outcome: row.outcome,
  };
}
