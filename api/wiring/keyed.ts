// Opens the stores of idempotency keys: one for declared routes, two for ingest.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { BUCKETS } from '../../schemas/buckets.ts';
import { ANSWERS_TENANT_BYTES_MAX, ANSWERS_TENANT_MAX, Idempotency } from '../http/idempotency.ts';
import { TenantShares } from '../http/keyed_shares.ts';
import { KeyedStore } from '../http/keyed_store.ts';
import { INGEST_KEYS_TENANT_MAX, IngestOnce } from '../intake/ingest/once.ts';
import type { NatsWaits } from './parts.ts';

export interface KeyedDeps {
  log: Log;
  tracked: { readonly connected: boolean };
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
  waits?: NatsWaits | undefined;
}

/** Opens what the edge and ingest use to carry out the work of a key once. */
export async function openKeyed({
  log,
  tracked,
  now,
  onProblem,
  waits,
}: KeyedDeps): Promise<{ idempotency: Idempotency; once: IngestOnce }> {
  const open = async (
    bucket: 'idempotency' | 'ingest_keys' | 'ingest_claims',
    keep: number | null,
  ): Promise<KeyedStore> =>
    new KeyedStore({
      bucket,
      nc: log.nc,
      kv: await log.bucket(bucket),
      jsm: log.jsm,
      keep,
      storeMsMax: waits?.keyMsMax,
      connected: () => tracked.connected,
      onProblem,
    });
  const answers = await open('idempotency', null);
  const shares = new TenantShares({
    bytesMax: ANSWERS_TENANT_BYTES_MAX,
    recordsMax: ANSWERS_TENANT_MAX,
    ttlMs: BUCKETS.idempotency.ttlHours * 3_600_000,
    measure: (tenant) => answers.measure(tenant),
    now,
    onProblem,
  });
  return {
    idempotency: new Idempotency({ store: answers, shares, now, onProblem }),
    once: new IngestOnce({
      claims: await open('ingest_claims', INGEST_KEYS_TENANT_MAX),
      outcomes: await open('ingest_keys', INGEST_KEYS_TENANT_MAX),
      onProblem,
    }),
  };
}
