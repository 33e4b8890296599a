// The operator's view of the whole service: the checks of /readyz, the workers with their backlog, the partitions with
// their owners, the NATS streams and the store. Each part is read by itself and is null where it cannot be read, so the
// page still shows the rest while the store or a worker is away.
import type { JetStreamManager } from '@nats-io/jetstream';
import { z } from 'zod';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readEngineLoad } from '../../sql/stores/engine.ts';
import { isIngestStream, streamConfigs } from '../../schemas/streams.ts';
import { defineOperatorRoute, type Route } from '../http/route.ts';
import { readiness, type ReadinessWatch } from './readiness.ts';
import { readGauges } from './worker_gauges.ts';

/** Maximum time to read the streams or the store. */
const PART_MS_MAX = 2000;

export interface StatusDeps {
  readiness: Pick<ReadinessWatch, 'check' | 'cluster'>;
  jsm: Pick<JetStreamManager, 'streams'>;
  connected: () => boolean;
  clickhouse: ClickHouse;
}

const worker = z.object({
  worker_id: z.string(),
  up: z.boolean().describe('True once all parts of the worker have started'),
  heard_ms: z.int().describe('Milliseconds since its last heartbeat'),
  partitions: z.array(z.int()).describe('Partitions that it owns'),
  backlog: z
    .object({
      lag_seconds: z.number().describe('Age of the oldest message of the ingest log that has not landed'),
      lag_messages: z.number().describe('Messages of the ingest log that have not landed'),
      open_traces: z.number(),
      texts_waiting: z.number().describe('Texts that have landed and are not indexed for search yet'),
    })
    .nullable()
    .describe('null where the metrics of the worker cannot be read, for example those of a worker on another machine'),
});
const partition = z.object({
  partition: z.int(),
  state: z.enum(['up', 'starting', 'unowned']),
  owner: z.string().nullable(),
  epoch: z.int().nullable().describe('Number of the ownership; each takeover raises it'),
  checkpoint: z.int().nullable().describe('Position in the ingest log up to which everything has landed'),
  changed_at: z.iso.datetime().nullable(),
});
const stream = z.object({ name: z.string(), messages: z.int(), bytes: z.int(), max_bytes: z.int() });
const store = z.object({
  parts_max: z.int().describe('Parts of the table partition with the most parts'),
  free_bytes: z.number().describe('Free space of the fullest local disk'),
  total_bytes: z.number(),
});
const status = z
  .object({
    readiness,
    workers: z.array(worker),
    partitions: z.array(partition),
    streams: z.array(stream).nullable().describe('null where NATS cannot be reached'),
    store: store.nullable().describe('null where ClickHouse cannot be reached'),
  })
  .meta({ id: 'ServiceStatus' });
type Status = z.input<typeof status>;

export function statusRoutes(deps: StatusDeps): Route[] {
  return [statusRoute(deps)];
}

function statusRoute(deps: StatusDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/status',
    operation_id: 'getServiceStatus',
    summary: 'Get the state of the whole service',
    description:
      'Returns the checks of /readyz, the workers with their backlog, the partitions with their owners, the NATS streams, and the parts and disk of the store. A part that cannot be read is null.',
    tag: 'Operator',
    response: status,
    handler: async ({ signal }) => ({ data: await statusOf(deps, signal) }),
  });
}

async function statusOf(
  { readiness: watch, jsm, connected, clickhouse }: StatusDeps,
  signal: AbortSignal,
): Promise<Status> {
  const { workers, partitions } = watch.cluster();
  const bound = AbortSignal.any([signal, AbortSignal.timeout(PART_MS_MAX)]);
  const [checks, streams, store, backlogs] = await Promise.all([
    watch.check(),
    connected() ? orNull(streamsOf(jsm), bound) : null,
    orNull(readEngineLoad(clickhouse, {}, { signal: bound }), bound),
    Promise.all(workers.map(({ metrics_url }) => readGauges(metrics_url, bound))),
  ]);
  return {
    readiness: checks,
    workers: workers.map(({ worker_id, up, heard_ms }, index) => ({
      worker_id,
      up,
      heard_ms,
      partitions: partitions.flatMap(({ partition: number, record }) => (record?.owner === worker_id ? [number] : [])),
      backlog: backlogs[index] ?? null,
    })),
    partitions: partitions.map(({ partition: number, record, state }) => ({
      partition: number,
      state,
      owner: record === null || record.owner === '' ? null : record.owner,
      epoch: record?.epoch ?? null,
      checkpoint: record?.checkpoint ?? null,
      changed_at: record === null ? null : new Date(record.at).toISOString(),
    })),
    streams,
    store: store?.[0] ?? null,
  };
}

/** Streams of the service beside those of the ingest log, by the table that creates them; buckets are streams too and are left out. */
const NAMES: ReadonlySet<string> = new Set(streamConfigs({ replicas: 1 }).map(({ name }) => name));

async function streamsOf(jsm: StatusDeps['jsm']): Promise<z.input<typeof stream>[]> {
  const found: z.input<typeof stream>[] = [];
  for await (const { config, state } of jsm.streams.list())
    if (NAMES.has(config.name) || isIngestStream(config.name))
      found.push({ name: config.name, messages: state.messages, bytes: state.bytes, max_bytes: config.max_bytes });
  return found.toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Resolves with null when the work rejects, or when the signal aborts first. */
async function orNull<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const end = (): void => {
    late.resolve(null);
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([work, late.promise]);
  } catch {
    return null;
  } finally {
    signal.removeEventListener('abort', end);
  }
}
