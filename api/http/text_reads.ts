// Reads many texts whole, as streams. Texts may have several MB each: a statement ends after a number of
// bytes and another asks for the rest, so that none exceeds its time, and other requests run between
// the texts.
import { Pauses } from '../../sql/client/pauses.ts';

/** Bytes of texts after which a statement ends. */
const STATEMENT_BYTES_MAX = 32 * 1024 * 1024;

interface Texts {
  prompt: string;
  response: string;
}

export interface TextReads<Wanted, Row extends Texts> {
  stream: (wanted: readonly Wanted[]) => AsyncIterable<readonly Row[]>;
  keyOf: (of: Wanted | Row) => string;
  take: (row: Row) => void;
  /** Returns false for a text that another has made needless; every text is wanted if absent. */
  isWanted?: (text: Wanted) => boolean;
  signal: AbortSignal;
  bytesMax?: number;
}

/**
 * Calls `take` for the rows of texts, in any order, perhaps more than once for a text.
 * @returns the texts that were not asked to the end, because they are not wanted any more
 */
export async function readTexts<Wanted, Row extends Texts>(
  texts: readonly Wanted[],
  { stream, keyOf, take, isWanted = () => true, signal, bytesMax = STATEMENT_BYTES_MAX }: TextReads<Wanted, Row>,
): Promise<Wanted[]> {
  const pauses = new Pauses(signal);
  const left: Wanted[] = [];
  let open = texts;
  while (open.length > 0) {
    const read = new Set<string>();
    let bytes = 0;
    for await (const rows of stream(open)) {
      for (const row of rows) {
        read.add(keyOf(row));
        bytes += Buffer.byteLength(row.prompt) + Buffer.byteLength(row.response);
        take(row);
        await pauses.give();
      }
      if (bytes >= bytesMax) break;
    }
    if (bytes < bytesMax) return left;
    const { wanted = [], needless = [] } = Object.groupBy(
      open.filter((text) => !read.has(keyOf(text))),
      (text) => (isWanted(text) ? 'wanted' : 'needless'),
    );
    left.push(...needless);
    open = wanted;
  }
  return left;
}
