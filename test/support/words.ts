// The ways in which trace lists find the traces that have words, for the tests of lists.
import { DocumentSearch } from '../../api/telemetry/spans/postings/document_search.ts';
import type { WordsDeps } from '../../api/telemetry/traces/words.ts';
import type { ClickHouse } from '../../sql/client/client.ts';

/** Returns the words of a store, found as the service finds them. */
export function wordsDeps(clickhouse: ClickHouse): WordsDeps {
  const documents = new DocumentSearch(clickhouse);
  return { clickhouse, findByWords: (query, signal) => documents.traces(query, signal) };
}

/**
 * Returns every way to find words, by name: from memory as in the service, with nothing in memory,
 * with too many traces for a statement, and in the store alone.
 */
export const waysToFind = (clickhouse: ClickHouse): Record<string, () => WordsDeps> => {
  const held = wordsDeps(clickhouse);
  return {
    held: () => held,
    cold: () => wordsDeps(clickhouse),
    many: () => ({ ...held, keysMax: 0 }),
    store: () => ({ clickhouse, findByWords: () => Promise.resolve(null) }),
  };
};
