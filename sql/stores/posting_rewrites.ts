// Erases the postings of documents that span_texts does not have. Guarantees: afterwards no part of
// span_words that is read or merged has a place of such a document, whether its text was erased,
// expired earlier, or was never moved because a move failed; the postings of all other documents
// stay whole. Needs no list of the documents, so it may be repeated after a crash at any point. A
// statement takes a bounded number of segments, with one bit for each of their documents.
//
// A move writes postings before the texts. The fence of the text mover is therefore raised first: no
// document of an earlier epoch appears after that, and only earlier epochs are rewritten.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { raiseMoverFence } from './landing_fences.ts';
import { countDocuments, readOrphanedSegments, removeOrphans } from './postings.ts';
import { waitForMoves, waitForMutations } from './rewrites.ts';

const TIMEOUT_MS = 110_000;
/** Name under which the fence is raised. */
const FENCED_BY = 'erasure';
const FENCE_TRIES_MAX = 10;
/** Segments of an epoch of the text mover are numbered from 2^20 times the epoch on. */
const SEGMENT_BITS = 20n;
/** Segments that one statement searches, 16 million documents: each statement reads all lists of its segments' parts. */
const SEARCHED_AT_ONCE = 256;
/** Segments that one statement rewrites: 33 million documents, whose bits are 4 MB. */
const REWRITTEN_AT_ONCE = 512;
/** Removals after which postings that are left are an error. */
const REMOVALS_MAX = 3;
/** Texts by which the mutations of numberTexts and removeOrphans are known. */
const NUMBERING = 'UPDATE doc';
const REMOVAL = 'UPDATE places';

/**
 * Erases the postings of documents that do not exist, and searches again.
 * @throws Error when the engine cannot carry it out, or when some are left
 */
export async function eraseDeadPostings(client: ClickHouse, signal: AbortSignal): Promise<void> {
  const end = await closeSegments(client, signal);
  // This also waits for mutations that a dead worker started.
  await waitForMutations(client, 'span_words', REMOVAL, signal);
  let dead = await deadAmong(client, await segmentsBefore(client, end), signal);
  // A removal does nothing where documents were deleted since they were counted.
  for (let tries = 1; dead.length > 0; tries += 1) {
    if (tries > REMOVALS_MAX)
      throw new Error(`${dead.length} segments of span_words still have postings of erased documents`);
    for (const some of groupsOf(dead, REWRITTEN_AT_ONCE))
      await removeOrphans(client, some, await countDocuments(client, some));
    await waitForMutations(client, 'span_words', REMOVAL, signal);
    dead = await deadAmong(client, dead, signal);
  }
}

/**
 * Ends the epoch of the text mover, which then takes a new one. Resolves once every document of
 * earlier epochs is in span_texts or will never be.
 * @returns the first segment of later epochs
 */
async function closeSegments(client: ClickHouse, signal: AbortSignal): Promise<bigint> {
  for (let tries = 1; tries <= FENCE_TRIES_MAX; tries++) {
    const { epoch, rivals } = await raiseMoverFence(client, FENCED_BY);
    // The mover raised the fence at the same time, and may write in this epoch.
    if (rivals.length > 0) continue;
    await waitForMoves(client, signal);
    await waitForMutations(client, 'span_texts', NUMBERING, signal);
    return BigInt(epoch) << SEGMENT_BITS;
  }
  throw new Error('workers raise the fence of the text mover all the time');
}

/** Returns the segments before the given one that have postings, in order. */
async function segmentsBefore(client: ClickHouse, end: bigint): Promise<bigint[]> {
  const rows = await client.rows<unknown>({
    name: 'erase_segments',
    sql: 'SELECT DISTINCT segment FROM span_words WHERE segment < {end:UInt64} ORDER BY segment',
    params: { end },
    timeoutMs: TIMEOUT_MS,
  });
  return z
    .array(z.object({ segment: z.coerce.bigint() }))
    .parse(rows)
    .map(({ segment }) => segment);
}

/** Returns those of the segments, in order, that have a posting of a document that does not exist. */
async function deadAmong(client: ClickHouse, segments: readonly bigint[], signal: AbortSignal): Promise<bigint[]> {
  const dead: bigint[] = [];
  for (const some of groupsOf(segments, SEARCHED_AT_ONCE)) {
    signal.throwIfAborted();
    dead.push(...(await readOrphanedSegments(client, some)));
  }
  return dead;
}

function groupsOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}
