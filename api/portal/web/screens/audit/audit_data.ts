// The records of the audit log as the screen reads and exports them.
import { infiniteQueryOptions } from '@tanstack/react-query';
import { type Answer, get } from '../../client/api.ts';

const LIST = '/orgs/{org_id}/audit-log';
const PAGE = 100;
/** Records of one file, and records of one request for it. */
export const EXPORT_MAX = 10_000;
const EXPORT_PAGE = 200;

export type AuditRecord = Answer<typeof LIST>['data'][number];

export interface AuditFilters {
  action?: string;
  actor_id?: string;
  target_id?: string;
  since?: string;
  until?: string;
}

/** A record lands moments after its change: a person who follows a link from the change must see it. */
const REREAD_MS = 3000;

/** Describes the pages of the log, the newest record first. The first page is read again while it is the only one. */
export const auditQuery = (org_id: string, filters: AuditFilters) =>
  infiniteQueryOptions({
    queryKey: [org_id, LIST, 'pages', filters],
    queryFn: ({ pageParam, signal }) => readPage(org_id, filters, { limit: PAGE, cursor: pageParam }, signal),
    initialPageParam: null as string | null,
    getNextPageParam: ({ meta }) => meta.next_cursor,
    refetchInterval: ({ state: { data } }) => (data?.pages.length === 1 ? REREAD_MS : false),
  });

function readPage(
  org_id: string,
  filters: AuditFilters,
  { limit, cursor }: { limit: number; cursor: string | null },
  signal: AbortSignal,
) {
  const query = { ...filters, limit, ...(cursor === null ? {} : { cursor }) };
  return get(org_id, LIST, { path: { org_id }, query }, { signal });
}

/**
 * Returns the records of a list as NDJSON.
 * @param onProgress called with the number of records that are read
 * @returns truncated true if the list has more than EXPORT_MAX records
 */
export async function exportRecords(
  org_id: string,
  filters: AuditFilters,
  onProgress: (done: number) => void,
  signal: AbortSignal,
): Promise<{ ndjson: string; records: number; truncated: boolean }> {
  const lines: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Answer<typeof LIST> = await readPage(org_id, filters, { limit: EXPORT_PAGE, cursor }, signal);
    lines.push(...page.data.map((record) => JSON.stringify(record)));
    onProgress(lines.length);
    cursor = page.meta.next_cursor;
  } while (cursor !== null && lines.length < EXPORT_MAX);
  return { ndjson: `${lines.join('\n')}\n`, records: lines.length, truncated: cursor !== null };
}
