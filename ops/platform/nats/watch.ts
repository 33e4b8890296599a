// Opens the KV buckets of schemas/buckets.ts by name, with the record type that the table declares
// for each of them.
import type { ReportProblem } from '../report_problem.ts';
import { BUCKETS, type RecordBucket, type RecordOf } from '../../../schemas/buckets.ts';
import type { Log } from './open_log.ts';
import { WatchedBucket } from './watched_bucket.ts';

type Buckets = Pick<Log, 'nc' | 'bucket'>;

/**
 * Opens a bucket as a copy in memory that a watch keeps current. Resolves once every present entry is loaded.
 * @param onProblem reports values that are no records of this bucket, and watches that broke and are opened again
 */
export async function watch<N extends RecordBucket>(
  log: Buckets,
  name: N,
  onProblem: ReportProblem,
): Promise<WatchedBucket<RecordOf<N>>> {
  return WatchedBucket.open(log.nc, await log.bucket(name), { name, parse: parserOf(name), onProblem });
}

/**
 * Reads the newest record of a key from the bucket itself.
 * @returns the record with its revision, for a CAS write; null where the key has no value
 * @throws Error when NATS does not answer or the value is no record of this bucket
 */
export async function readEntry<N extends RecordBucket>(
  log: Pick<Buckets, 'bucket'>,
  name: N,
  key: string,
): Promise<{ record: RecordOf<N>; revision: number } | null> {
  const entry = await (await log.bucket(name)).get(key);
  return entry?.operation === 'PUT' ? { record: parserOf(name)(entry.string()), revision: entry.revision } : null;
}

/** Reads like readEntry, and returns the record alone. */
export async function readRecord<N extends RecordBucket>(
  log: Pick<Buckets, 'bucket'>,
  name: N,
  key: string,
): Promise<RecordOf<N> | null> {
  return (await readEntry(log, name, key))?.record ?? null;
}

function parserOf<N extends RecordBucket>(name: N): (text: string) => RecordOf<N> {
  return BUCKETS[name].parse as (text: string) => RecordOf<N>;
}
