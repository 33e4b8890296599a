// Open incidents show the error of one of their traces: records in KV lose it with the trace. Whoever keeps them writes rows from the
// records, so these are emptied before the rows.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { incidentKey, parseIncident } from '../../schemas/records/incident.ts';

const TRIES_MAX = 10;

/** Empties the samples of an org's open incidents that are among these. */
export async function emptyOpenSamples(
  log: Log,
  org_id: string,
  samples: readonly { cluster_id: string; sample: string }[],
): Promise<void> {
  const kv = await log.bucket('incidents');
  const meant = Map.groupBy(samples, ({ cluster_id }) => cluster_id);
  for (const [cluster_id, own] of meant) {
    const key = incidentKey(org_id, cluster_id);
    for (let tries = 1; ; tries++) {
      const entry = await kv.get(key);
      if (entry?.operation !== 'PUT') break;
      const record = parseIncident(entry.string());
      if (!own.some(({ sample }) => sample === record.sample)) break;
      const written = await kv.update(key, JSON.stringify({ ...record, sample: '' }), entry.revision).then(
        () => true,
        (error: unknown) => {
          if (tries >= TRIES_MAX) throw error;
          return false;
        },
      );
      if (written) break;
    }
  }
}
