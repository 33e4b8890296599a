// Divides the partitions among the live workers. Pure: takes the live workers, the present owners and
// the streams of the partitions; returns an owner for each partition. Every worker computes the same
// from the same facts.
//
// The division is even: the numbers of partitions of two workers differ by one at most. It is sticky:
// each worker keeps its partitions as far as an even division lets it, so no even division moves fewer.
// The size of each share depends on the numbers of partitions that the workers own, and not on which.
// It stays the same while partitions are released and claimed one by one, so workers that see these
// steps at different times agree on it.

export interface Facts {
  /** Ids of the live workers, sorted. */
  workers: readonly string[];
  /** Live owner of each partition, by partition; null if it has none. */
  owners: readonly (string | null)[];
  /** Stream of each partition, by partition. */
  streams: readonly number[];
}

/** The share of a worker while partitions are divided. */
interface Share {
  worker: string;
  /** Number of partitions that the worker is to own. */
  size: number;
  /** Partitions of the share that are known so far. */
  partitions: number[];
}

/** A worker whose share is not complete, and the stream from which it gets partitions. */
interface Offer {
  share: Share;
  stream: number;
  /** Number of partitions of the stream in the share. */
  read: number;
  /** Number of partitions of the stream that are in no share. */
  left: number;
}

/** Returns the worker that is to own each partition, by partition; an empty list without a live worker. */
export function divide({ workers, owners, streams }: Facts): string[] {
  if (workers.length === 0) return [];
  const owned = Map.groupBy(owners.keys(), (partition) => owners[partition] ?? null);
  const sizes = sizesOf(
    workers.map((worker) => owned.get(worker)?.length ?? 0),
    owners.length,
  );
  const shares = workers.map((worker, index): Share => {
    const size = sizes[index] ?? 0;
    return { worker, size, partitions: keepingOrder(owned.get(worker) ?? [], streams).slice(0, size) };
  });
  const kept = new Set(shares.flatMap(({ partitions }) => partitions));
  dealOut(
    shares,
    [...owners.keys()].filter((partition) => !kept.has(partition)),
    streams,
  );
  const divided = new Array<string>(owners.length);
  for (const { worker, partitions } of shares) for (const partition of partitions) divided[partition] = worker;
  return divided;
}

/**
 * Divides the partitions as workers of an older version do, by the sorted ids of workers, in ranges if the log
 * has several streams. While such a worker lives, all divide so, because two divisions that differ may
 * leave a partition without an owner.
 */
export function divideByIds({ workers, owners, streams }: Facts): string[] {
  const isRanged = new Set(streams).size > 1;
  return owners.flatMap((_, partition) => {
    const index = isRanged ? Math.floor((partition * workers.length) / owners.length) : partition % workers.length;
    return workers[index] ?? [];
  });
}

/**
 * Returns the size of the share of each worker.
 *
 * The partitions that are left over by an even division go first to workers that own one more than the
 * others already, because it would have to move otherwise. A worker that claims one of them becomes such
 * a worker, so a claim changes no size.
 *
 * @param owned number of partitions that each worker owns, in the order of ids
 */
function sizesOf(owned: readonly number[], partitions: number): number[] {
  const least = Math.floor(partitions / owned.length);
  const [few, many] = [
    [...owned.keys()].filter((index) => (owned[index] ?? 0) <= least),
    [...owned.keys()].filter((index) => (owned[index] ?? 0) > least),
  ];
  const larger = new Set([...many, ...few].slice(0, partitions % owned.length));
  return owned.map((_, index) => (larger.has(index) ? least + 1 : least));
}

/** Sorts the partitions of a worker so that it gives up those first of whose stream it has fewest. */
function keepingOrder(partitions: readonly number[], streams: readonly number[]): number[] {
  const byStream = Map.groupBy(partitions, (partition) => streams[partition]);
  const inStream = (partition: number): number => byStream.get(streams[partition])?.length ?? 0;
  return partitions.toSorted((a, b) => inStream(b) - inStream(a) || a - b);
}

/** Completes the shares with the partitions that are in none, so that a stream has few readers. */
function dealOut(shares: readonly Share[], partitions: readonly number[], streams: readonly number[]): void {
  const left = Map.groupBy(partitions, (partition) => streams[partition] ?? 0);
  const isOne = new Set(streams).size === 1;
  // Every worker reads a single stream anyway, so its shares are filled in the order of ids.
  const readOf = ({ partitions: own }: Share, stream: number): number =>
    isOne ? 0 : own.filter((partition) => streams[partition] === stream).length;
  for (;;) {
    const offer = shares
      .filter((share) => share.partitions.length < share.size)
      .flatMap((share) =>
        [...left].map(([stream, { length }]): Offer => ({ share, stream, read: readOf(share, stream), left: length })),
      )
      .reduce<Offer | null>((best, next) => (best === null || isBetter(next, best) ? next : best), null);
    if (offer === null) return;
    const { share, stream } = offer;
    const dealt = left.get(stream) ?? [];
    share.partitions.push(...dealt.splice(0, share.size - share.partitions.length));
    if (dealt.length === 0) left.delete(stream);
  }
}

/**
 * A worker gets partitions of a stream that it reads, first where it has most of them. Another gets as
 * many partitions of one stream as there are.
 */
const isBetter = (next: Offer, best: Offer): boolean =>
  next.read > best.read || (next.read === best.read && next.share === best.share && next.left > best.left);
