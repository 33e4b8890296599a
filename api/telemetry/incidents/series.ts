// Counts the failing traces of an incident's cluster over time: during the incident, and for a while
// before it, so that a reader sees whether the cluster is new.
import { findIncident, type IncidentsDeps } from './incidents.ts';
import { type IncidentSeries, SERIES_BUCKETS_MAX } from './schema.ts';
import { readIncidentSeries } from './store.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1440 * MINUTE_MS;
/** Lengths of a bucket; the shortest with which the buckets cover the time is used. */
const BUCKETS_MS = [1, 5, 15, 60, 180, 360, 1440].map((minutes) => minutes * MINUTE_MS);
/** Failing traces are kept for as long. */
const KEPT_MS = 90 * DAY_MS;
/** Time before the incident: as long as the incident, within these bounds. */
const BEFORE_MS = { min: 30 * MINUTE_MS, max: 7 * DAY_MS };

/** @throws ApiError incident_not_found */
export async function readSeries(
  deps: IncidentsDeps,
  org_id: string,
  incident_id: string,
  signal: AbortSignal,
): Promise<IncidentSeries> {
  const incident = await findIncident(deps, org_id, incident_id, signal);
  const now = deps.now();
  const resolvedMs = incident.status === 'resolved' ? Date.parse(incident.resolved_at) : null;
  const endMs = Math.max(incident.from_ms, resolvedMs ?? now);
  const lengthMs = endMs - incident.from_ms;
  const before = Math.min(BEFORE_MS.max, Math.max(BEFORE_MS.min, lengthMs));
  const sinceMs = Math.max(incident.from_ms - before, endMs - KEPT_MS);
  // One bucket more may be needed, as the time begins and ends within a bucket.
  const bucket_ms =
    BUCKETS_MS.find((ms) => (endMs - sinceMs) / ms <= SERIES_BUCKETS_MAX - 2) ?? BUCKETS_MS.at(-1) ?? DAY_MS;
  const first = Math.floor(sinceMs / bucket_ms);
  const last = Math.floor(endMs / bucket_ms);
  const rows = await readIncidentSeries(
    deps.clickhouse,
    {
      org_id,
      cluster_id: incident.cluster_id,
      bucket_ms,
      from_ms: first * bucket_ms,
      to_ms: (last + 1) * bucket_ms,
      first_ms: incident.from_ms,
      last_ms: incident.status === 'open' ? (last + 1) * bucket_ms : incident.until_ms,
    },
    { signal },
  );
  const counts = new Map(rows.map((row) => [row.bucket, row]));
  return {
    incident_id,
    cluster_id: incident.cluster_id,
    bucket_seconds: bucket_ms / 1000,
    opened_at: new Date(incident.opened_ms).toISOString(),
    resolved_at: resolvedMs === null ? null : new Date(resolvedMs).toISOString(),
    buckets: Array.from({ length: last - first + 1 }, (_, index) => ({
      at: new Date((first + index) * bucket_ms).toISOString(),
      traces: counts.get(first + index)?.traces ?? 0,
      of_incident: counts.get(first + index)?.of_incident ?? 0,
    })),
  };
}
