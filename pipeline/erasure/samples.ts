// Samples of open incidents. The KV record of an open incident contains the error of one of its
// traces and loses it with the trace. Workers write rows from these records, so an erasure empties
// the records before the rows.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { incidentKey, parseIncident } from '../../schemas/records/incident.ts';

const TRIES_MAX = 10;

/** Empties the samples of an organization's open incidents that are among the given ones. */
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
