// Opens what remembers Idempotency-Keys: one store for declared routes, two for ingest. Wiring only.
import type { Log } from '../../ops/nats/open_log.ts';
import { ANSWERS_TENANT_MAX, Idempotency } from '../http/idempotency.ts';
import { KeyedStore } from '../http/keyed_store.ts';
import { INGEST_KEYS_TENANT_MAX, IngestOnce } from '../ingest/once.ts';
import type { NatsWaits } from './parts.ts';

export interface KeyedDeps {
  log: Log;
  tracked: { readonly connected: boolean };
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: (problem: string, cause: unknown) => void;
  waits?: NatsWaits | undefined;
}

/** What the edge and ingest need to do the work of a key once. */
export async function openKeyed({
  log,
  tracked,
  now,
  onProblem,
  waits,
}: KeyedDeps): Promise<{ idempotency: Idempotency; once: IngestOnce }> {
  const open = async (bucket: 'idempotency' | 'ingest_keys' | 'ingest_claims', keep: number): Promise<KeyedStore> =>
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
  return {
    idempotency: new Idempotency({ store: await open('idempotency', ANSWERS_TENANT_MAX), now, onProblem }),
    once: new IngestOnce({
      claims: await open('ingest_claims', INGEST_KEYS_TENANT_MAX),
      outcomes: await open('ingest_keys', INGEST_KEYS_TENANT_MAX),
      onProblem,
    }),
  };
}
