// Drops the postings (span_words) of weeks in which no text is left. The postings of a single text stay
// until then: nothing finds a text by them once its row is gone, and to remove them, all postings of
// the week would be rewritten, as erasures do (posting_rewrites.ts).
//
// Guarantees: no posting of a text that exists or is being moved is dropped. A part is dropped only if
// it was there before the texts were looked for, first among those that are to be moved and then among
// those that were moved. The text of a posting is in one of the two tables at any time, and comes to
// the second before it leaves the first. So a part of a week without texts has postings of none.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { dropPart } from './rewrites.ts';

const TIMEOUT_MS = 110_000;

/** @returns the number of parts dropped; a part that is merged meanwhile is left to the next call */
export async function dropPostingWeeks(client: ClickHouse, signal: AbortSignal): Promise<number> {
  const rows = await read(
    client,
    'posting_parts',
    "SELECT name AS part, partition_id AS week FROM system.parts WHERE database = currentDatabase() AND table = 'span_words' AND active",
  );
  const parts = z.array(z.object({ part: z.string(), week: z.string() })).parse(rows);
  const kept = await weeksOfTexts(client, new Set(parts.map(({ week }) => week)));
  let dropped = 0;
  for (const { part } of parts.filter(({ week }) => !kept.has(week))) {
    signal.throwIfAborted();
    if (await dropPart(client, 'span_words', part)) dropped += 1;
  }
  return dropped;
}

/** Returns those of the given weeks that have texts, and others with texts that are to be moved. */
async function weeksOfTexts(client: ClickHouse, weeks: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const waiting = await read(
    client,
    'waiting_weeks',
    'SELECT DISTINCT toString(toYYYYMMDD(toMonday(drop_on))) AS week FROM span_texts_recent',
  );
  const found = new Set(
    z
      .array(z.object({ week: z.string() }))
      .parse(waiting)
      .map(({ week }) => week),
  );
  for (const week of weeks) {
    // A projection might return masked rows.
    const sql =
      'SELECT 1 FROM span_texts WHERE _partition_id = {week:String} LIMIT 1 SETTINGS optimize_use_projections = 0';
    if ((await read(client, 'week_has_texts', sql, { week })).length > 0) found.add(week);
  }
  return found;
}

function read(client: ClickHouse, name: string, sql: string, params: Record<string, unknown> = {}): Promise<unknown[]> {
  return client.rows<unknown>({ name, sql, params, timeoutMs: TIMEOUT_MS });
}
